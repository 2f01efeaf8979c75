"""Texts that a store keeps: blocks of one session, blocks that are shared by key, and the frozen prompt.

What must be true when it is written is decided in the write transaction: the end of an append, and which of two
prompts that are frozen at once came first.
"""

from __future__ import annotations

from collections.abc import Callable

from eventstore.errors import LimitExceededError
from eventstore.events import ContextBlockRemoved, ContextBlockSet, Event, PromptFrozen
from eventstore.heads import Head
from eventstore.limits import Limits, check_id, clean_text
from eventstore.log import BESIDE
from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections.context_blocks import find_block, find_prompt
from sessions.appending import check_open
from sessions.arguments import checked_session_id, checked_store
from sessions.context import check_size, checked_content, joined
from sessions.store import Store

Check = Callable[[str], None]
"""Raises a typed error for a text that a block may not have."""

SHARED = "context:"
"""What the id of a shared context's stream starts with; its key follows."""


class StoredText:
    """One text in a stream of the store."""

    def __init__(self, store: Store, stream_id: str, label: str) -> None:
        self._store = store
        self._stream_id = stream_id
        self._label = label

    async def get(self) -> str | None:
        """The text; None when it was never set."""
        return await self._store.log.read(lambda tx: self._find(tx, find_stream(tx, self._stream_id)[0]))

    async def set(self, content: str, *, check: Callable[[str | None], None] | None = None) -> None:
        """Replace the text; the same text again writes nothing.

        What `check` raises for the text that is there at the moment of writing, None for none, refuses it.
        """
        text = self._checked(content)

        def replaced(held: str | None) -> str:
            if check is not None:
                check(held)
            return text

        await self._transact(replaced, text)

    async def append(self, content: str, *, check: Check | None = None) -> str:
        """Put a text behind the one that is there at the moment of writing, on a line of its own, and give the whole.

        The whole must be no larger than a block may be, and what `check` raises for it refuses the append.
        """
        text = self._checked(content)

        def appended(held: str | None) -> str:
            whole = joined(held, text)
            check_size(whole, self._store.limits, self._label)
            if check is not None:
                check(whole)
            return whole

        return await self._transact(appended, text)

    async def keep(self, content: str) -> str:
        """Set the text unless there is one, and give the one that there is then."""
        text = self._checked(content)
        return await self._transact(lambda held: text if held is None else held, text)

    def _checked(self, content: object) -> str:
        return checked_content(content, self._store.limits, self._label)

    async def _transact(self, change: Callable[[str | None], str], given: str) -> str:
        def decide(tx: Tx, head: Head) -> tuple[list[Event], str]:
            check_open(tx, head)
            held = self._find(tx, head.stream_no)
            text = change(held)
            return ([] if text == held else [self._event(text)]), text

        committed = await self._store.log.transact(self._stream_id, decide, size=BESIDE + len(given))
        return str(committed.result)

    def _find(self, tx: Tx, stream_no: int) -> str | None:
        return find_block(tx, stream_no, self._label)

    def _event(self, text: str) -> Event:
        return ContextBlockSet(label=self._label, content=text)


class StoredContext(StoredText):
    """A text that a store keeps under a key, for every session that is given it; appends are atomic."""

    def __init__(self, store: Store, key: str) -> None:
        limits = checked_store(store).limits
        label = check_id(key, "key", limits)
        super().__init__(store, check_id(SHARED + label, "key", limits), label)

    async def remove(self) -> bool:
        """Remove the text, so that it is as if it had never been set; returns whether there was one."""

        def decide(tx: Tx, head: Head) -> tuple[list[Event], bool]:
            tx.flush()
            is_there = self._find(tx, head.stream_no) is not None
            return ([ContextBlockRemoved(label=self._label)] if is_there else []), is_there

        return bool((await self._store.log.transact(self._stream_id, decide)).result)


class SessionBlock(StoredText):
    """A block of one session, in the session's own stream."""

    def __init__(self, store: Store, session_id: str, label: str) -> None:
        super().__init__(store, checked_session_id(session_id, store), label)


class StoredPrompt(StoredText):
    """The system prompt of one session, in the session's own stream."""

    def __init__(self, store: Store, session_id: str) -> None:
        super().__init__(store, checked_session_id(session_id, store), "")

    def _checked(self, content: object) -> str:
        # It is made of blocks, each of which was let in: what bounds it is what an event may hold.
        return checked_prompt(str(content), self._store.limits)

    def _find(self, tx: Tx, stream_no: int) -> str | None:
        return find_prompt(tx, stream_no)

    def _event(self, text: str) -> Event:
        return PromptFrozen(prompt=text)


def checked_prompt(prompt: str, limits: Limits) -> str:
    """A prompt as it is kept; raises LimitExceededError."""
    text = clean_text(prompt)
    if len(text.encode()) > limits.message_bytes:
        raise LimitExceededError("message_bytes", limits.message_bytes, "system prompt")
    return text
