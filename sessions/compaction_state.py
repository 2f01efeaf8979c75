"""What a process remembers of the compactions of its sessions: which one is running, what was warned of, what it left.

It belongs to a session's id and not to a session object, of which there may be many, each used once.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict

import msgspec

REMEMBERED = 1_000
"""How many sessions are remembered that nobody uses at the moment."""


class Mark(msgspec.Struct, frozen=True):
    """What the view came to after an automatic compaction, or after one that changed nothing; and its leaf."""

    tokens: int
    leaf_id: str | None


class CompactionState:
    """What is remembered of one session.

    While `lock` is held a compaction is running. `warned` names what was logged already, and `mark` is what a view has
    to grow beyond before it is compacted automatically again.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.warned: set[str] = set()
        self.mark: Mark | None = None


class CompactionStates:
    """The states of a store's sessions: one for each id, kept while it is used and for some time after."""

    def __init__(self) -> None:
        self._used: weakref.WeakValueDictionary[str, CompactionState] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[str, CompactionState] = OrderedDict()

    def of(self, session_id: str) -> CompactionState:
        """The state of a session."""
        state = self._used.get(session_id)
        if state is None:
            state = self._used[session_id] = CompactionState()
        self._recent[session_id] = state
        self._recent.move_to_end(session_id)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        return state
