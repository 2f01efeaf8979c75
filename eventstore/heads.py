"""Where streams stand, and what a decision is: the plain function that looks at a head and proposes events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import bindparam, func, select, update

from eventstore.envelope import NO_HASH, Envelope
from eventstore.events import Event
from eventstore.ports import Tx
from eventstore.statements import Statement
from eventstore.tables import events, projections, streams

_LAST_POSITION = Statement(select(func.max(events.c.position)))
_LAST_STREAM = Statement(select(func.max(streams.c.stream_no)))
_HEAD = Statement(
    select(streams.c.stream_no, streams.c.version, streams.c.hash, streams.c.recorded_at).where(
        streams.c.stream_id == bindparam("stream_id")
    ),
    "stream_id",
)
_CURRENT_PROJECTIONS = Statement(select(projections.c.name).where(projections.c.stale == 0))
MARK_STALE = Statement(
    update(projections).where(projections.c.name == bindparam("the_name")).values(stale=1), "the_name"
)
HEADS_KEPT = 10_000


class Head(msgspec.Struct):
    """Where a stream stands: its version, and the events decided earlier in this group and not yet applied.

    `stream_no` is the stream's number in this database, given with its first event. A decision only reads all this;
    in `memo` it may keep what it has worked out of the pending events, for the next one.
    """

    stream_id: str
    stream_no: int
    version: int
    hash: bytes
    recorded_at: int
    stored_version: int
    pending: list[Envelope] = []
    memo: dict[Any, Any] = {}


class WithMetadata(msgspec.Struct, frozen=True):
    """An event that a decision proposes with metadata of its own, which is added to that of the whole decision.

    It must be what JSON can hold: it is not checked.
    """

    event: Event
    metadata: dict[str, Any]


Proposed = Sequence[Event | tuple[Event, str] | WithMetadata]
Proposal = Proposed | Mapping[str, Proposed]
Decide = Callable[[Tx, Head], tuple[Proposal, Any]]


class Committed(msgspec.Struct, frozen=True):
    """What an append wrote, in order, and what its decision returned beside the events.

    For a repeated append these are the envelopes that the first one wrote.
    """

    envelopes: list[Envelope]
    result: Any = None


class Heads:
    """Heads of streams, the ends of the log and what was read beside them, kept in memory until somebody else writes.

    So are the names of projections that others keep and this process does not: its appends leave them behind.
    """

    def __init__(self, projections: Collection[str]) -> None:
        self.unknown_projections: list[str] = []
        self._projections = projections
        self.position = 0
        self.last_stream = 0
        self.known: dict[str, Head] = {}
        self._memo: dict[Any, Any] = {}
        self._state: Hashable = None

    def refresh(self, tx: Tx, state: Hashable) -> None:
        """Forget what somebody else may have changed, when the state is another one; called inside the transaction."""
        if state != self._state:
            self.known.clear()
            self._memo = {}
            self.position = tx.fetch(_LAST_POSITION)[0][0] or 0
            self.last_stream = tx.fetch(_LAST_STREAM)[0][0] or 0
            names = [name for (name,) in tx.fetch(_CURRENT_PROJECTIONS)]
            self.unknown_projections = [name for name in names if name not in self._projections]
            self._state = state

    def forget(self) -> None:
        """Have everything read anew."""
        self._state = None

    def take_memo(self) -> dict[Any, Any]:
        """What earlier groups have read, for one that gives it back when it is committed: else it is lost."""
        memo, self._memo = self._memo, {}
        return memo

    def adopt(self, position: int, last_stream: int, moved: Mapping[str, Head], memo: dict[Any, Any]) -> None:
        """Take over what a committed group has moved and read."""
        self._memo = memo if len(memo) <= HEADS_KEPT else {}
        if position > self.position:
            self.unknown_projections = []
        self.position = position
        self.last_stream = last_stream
        if len(self.known) > HEADS_KEPT:
            self.known.clear()
        self.known.update(moved)

    def head(self, tx: Tx, stream_id: str) -> Head:
        """The head of a stream as a group's own copy: read when it is not known."""
        known = self.known.get(stream_id)
        if known is not None:
            return Head(stream_id, known.stream_no, known.version, known.hash, known.recorded_at, known.version)
        rows = tx.fetch(_HEAD, (stream_id,))
        if not rows:
            return Head(stream_id, 0, 0, NO_HASH, -(1 << 62), 0)
        number, version, last_hash, recorded_at = rows[0]
        return Head(stream_id, number, version, last_hash, recorded_at, version)
