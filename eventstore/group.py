"""One group of appends inside one transaction: decide, check, number, and write all of it set by set."""

from __future__ import annotations

import datetime as dt
import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import msgspec
from sqlalchemy import bindparam, insert, update

from eventstore import codec
from eventstore.crossing import RawTx
from eventstore.decoding import decode_json
from eventstore.envelope import Envelope, chain_hash, digest_of, from_micros, header_of, to_micros
from eventstore.errors import (
    DuplicateEventError,
    EventStoreError,
    InvalidArgumentError,
    ProjectionError,
    StoreUnavailableError,
    VersionConflictError,
)
from eventstore.events import Event
from eventstore.expected import ExpectedVersion, check
from eventstore.heads import Committed, Decide, Head, Heads, Proposed, WithMetadata
from eventstore.ids import new_id
from eventstore.ports import Clock, Deferred, Projection, Tx
from eventstore.rows import find_events
from eventstore.same import same_json
from eventstore.statements import Row, Statement
from eventstore.tables import events, streams

_INSERT_STREAM = Statement(insert(streams), "stream_no", "stream_id", "version", "hash", "recorded_at")
_UPDATE_STREAM = Statement(
    update(streams)
    .where(streams.c.stream_no == bindparam("the_stream"))
    .values(version=bindparam("to_version"), hash=bindparam("to_hash"), recorded_at=bindparam("to_time")),
    "to_version",
    "to_hash",
    "to_time",
    "the_stream",
)
_INSERT_EVENT = Statement(
    insert(events),
    "position",
    "stream_no",
    "version",
    "event_id",
    "type",
    "schema",
    "recorded_at",
    "salt",
    "payload",
    "payload_digest",
    "hash",
)


SALTS = 64
_SALT = struct.Struct("16s")


class Failure(msgspec.Struct, frozen=True):
    """What one caller of a group gets instead."""

    error: Exception


class GroupFailedError(Exception):
    """Pending events could not be applied; whose they were is found by splitting the group."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Group:
    """The decisions of one group, numbered in memory and flushed together."""

    def __init__(self, tx: RawTx, heads: Heads, projections: Sequence[Projection], clock: Clock | None) -> None:
        self.heads: dict[str, Head] = {}
        self.position = heads.position
        self.last_stream = heads.last_stream
        self._tx = tx
        self._known = heads
        self._projections = projections
        self._clock = clock
        # Without a clock that was handed in, a group is one moment: telling the time costs as much as hashing does.
        self._moment = time.time_ns() // 1000
        self._pending: list[Envelope] = []
        self._rows: list[Row] = []
        self._touched: dict[str, Head] = {}
        self._salts: Iterator[tuple[bytes]] = iter(())

    def decide(
        self, stream_id: str, decide: Decide, expected: ExpectedVersion, metadata: dict[str, Any]
    ) -> Committed | Failure:
        """Run one decision and record what it proposes; a typed error fails this caller alone and leaves no trace."""
        outcome = self._decide(stream_id, decide, expected, metadata)
        if self._tx.hurried and isinstance(outcome, Failure):
            # It may come of what was left out.
            self._tx.hurried = False
            outcome = self._decide(stream_id, decide, expected, metadata)
            self._tx.hurried = True
        return outcome

    def _decide(
        self, stream_id: str, decide: Decide, expected: ExpectedVersion, metadata: dict[str, Any]
    ) -> Committed | Failure:
        head = self._head(stream_id)
        try:
            proposal, result = decide(self._tx, head)
        except StoreUnavailableError:
            # What others decided before was being flushed: it is not this caller's failure alone.
            raise
        except EventStoreError as error:
            return Failure(_conflict(stream_id, expected, head.version) or error)
        try:
            proposals = {stream_id: proposal} if isinstance(proposal, Sequence) else proposal
            if repeated := self._repeated_in_all(proposals):
                return Committed(repeated, result)
            if any(proposals.values()):
                check(stream_id, expected, head.version)
        except EventStoreError as error:
            return Failure(error)
        recorded: list[Envelope] = []
        for name, proposed in proposals.items():
            recorded += self._record(self._head(name), proposed, metadata)
        return Committed(recorded, result)

    def flush(self) -> None:
        """Write the pending events and apply them to the projections."""
        if not self._pending:
            return
        pending, rows, touched = self._pending, self._rows, list(self._touched.values())
        self._pending, self._rows, self._touched = [], [], {}
        tx = self._tx
        try:
            new = [head for head in touched if head.stored_version == 0]
            old = [head for head in touched if head.stored_version > 0]
            tx.executemany(_INSERT_STREAM, [(h.stream_no, h.stream_id, h.version, h.hash, h.recorded_at) for h in new])
            tx.executemany(_UPDATE_STREAM, [(h.version, h.hash, h.recorded_at, h.stream_no) for h in old])
            tx.executemany(_INSERT_EVENT, rows)
            for head in touched:
                head.stored_version = head.version
                head.pending = []
                head.memo = {}
            for projection in self._projections:
                apply(tx, projection, pending)
        except Exception as error:
            typed = tx.dialect.translate(error)
            if isinstance(typed, StoreUnavailableError):
                raise typed from error
            raise GroupFailedError(typed or error) from error

    def _head(self, stream_id: str) -> Head:
        head = self.heads.get(stream_id)
        if head is None:
            head = self.heads[stream_id] = self._known.head(self._tx, stream_id)
        return head

    def _repeated_in_all(self, proposals: Mapping[str, Proposed]) -> list[Envelope]:
        """What the first append wrote to all its streams; a repeat beside news in another stream is refused."""
        if not _have_ids(proposals):
            return []
        repeated = {name: self._repeated(self._head(name), proposed) for name, proposed in proposals.items()}
        first = next((envelopes[0] for envelopes in repeated.values() if envelopes), None)
        if first is not None and any(proposed and not repeated[name] for name, proposed in proposals.items()):
            raise DuplicateEventError(first.stream_id, first.event_id)
        return [envelope for envelopes in repeated.values() for envelope in envelopes]

    def _repeated(self, head: Head, proposed: Proposed) -> list[Envelope]:
        """The envelopes of the first append when this one is its repeat; a partial repeat is refused."""
        given = [item for item in proposed if isinstance(item, tuple)]
        if not given:
            return []
        ids = [event_id for _, event_id in given]
        for index, event_id in enumerate(ids):
            if event_id in ids[:index]:
                raise DuplicateEventError(head.stream_id, event_id)
        found = {envelope.event_id: envelope for envelope in head.pending if envelope.event_id in ids}
        if head.stored_version:
            found |= {envelope.event_id: envelope for envelope in find_events(self._tx, head.stream_no, ids)}
        if not found:
            return []
        for event, event_id in given:
            stored = found.get(event_id)
            if stored is None:
                raise DuplicateEventError(head.stream_id, next(iter(found)))
            if len(given) != len(proposed) or not _same_event(event, stored):
                raise DuplicateEventError(head.stream_id, event_id)
        return [found[event_id] for event_id in ids]

    def _record(self, head: Head, proposed: Proposed, given: dict[str, Any]) -> list[Envelope]:
        if not proposed:
            return []
        if head.stream_no == 0:
            self.last_stream += 1
            head.stream_no = self.last_stream
        recorded_at = max(self._now(), head.recorded_at)
        when = _when(recorded_at)
        recorded: list[Envelope] = []
        for item in proposed:
            metadata = given
            if isinstance(item, WithMetadata):
                metadata = given | item.metadata
                item = item.event  # noqa: PLW2901 - what was wrapped
            event, event_id = item if isinstance(item, tuple) else (item, new_id())
            payload = codec.encode(event, metadata)
            salt = self._salt()
            digest = digest_of(salt, payload)
            kind, schema = event.type, event.schema
            self.position += 1
            head.version += 1
            header = header_of(head.stream_id, head.version, event_id, kind, schema, recorded_at)
            head.hash = chain_hash(head.hash, header, digest)
            recorded.append(
                Envelope(
                    event=event,
                    stream_id=head.stream_id,
                    stream_no=head.stream_no,
                    version=head.version,
                    position=self.position,
                    event_id=event_id,
                    type=kind,
                    schema=schema,
                    recorded_at=when,
                    metadata=metadata,
                    payload_digest=digest,
                    hash=head.hash,
                )
            )
            self._rows.append(
                (
                    self.position,
                    head.stream_no,
                    head.version,
                    event_id,
                    kind,
                    schema,
                    recorded_at,
                    salt,
                    payload.decode(),
                    digest,
                    head.hash,
                )
            )
        head.recorded_at = recorded_at
        head.pending.extend(recorded)
        self._pending.extend(recorded)
        self._touched[head.stream_id] = head
        return recorded

    def _salt(self) -> bytes:
        for (salt,) in self._salts:
            return salt
        # Many at a time: asking for them hands the interpreter over.
        self._salts = _SALT.iter_unpack(os.urandom(_SALT.size * SALTS))
        return self._salt()

    def _now(self) -> int:
        if self._clock is None:
            return self._moment
        now: object = self._clock()
        if not isinstance(now, dt.datetime) or now.tzinfo is None:
            raise InvalidArgumentError("clock", "must give aware times")
        return to_micros(now)


def apply(tx: Tx, projection: Projection, envelopes: Sequence[Envelope]) -> None:
    """Hand a projection the events that it handles; what it raises becomes a ProjectionError."""
    handled = [envelope for envelope in envelopes if envelope.type in projection.handles]
    if not handled:
        return
    try:
        projection.apply(tx, handled)
    except Exception as error:  # noqa: BLE001 - raised again
        _raise(error, tx, projection)


def catch_up(tx: Tx, projections: Sequence[Deferred]) -> None:
    """Have projections fold what they lag behind in; what they raise becomes a ProjectionError."""
    for projection in projections:
        try:
            projection.catch_up(tx)
        except Exception as error:  # noqa: BLE001 - raised again
            _raise(error, tx, projection)


def _raise(error: Exception, tx: Tx, projection: Projection) -> NoReturn:
    if isinstance(tx.dialect.translate(error), StoreUnavailableError):
        raise error
    raise ProjectionError(projection.name, f"{type(error).__name__}: {error}") from error


# The events of a group mostly share one time.
_when = lru_cache(maxsize=4)(from_micros)


def _have_ids(proposals: Mapping[str, Proposed]) -> bool:
    for proposed in proposals.values():
        for item in proposed:
            if isinstance(item, tuple):
                return True
    return False


def _conflict(stream_id: str, expected: ExpectedVersion, actual: int) -> VersionConflictError | None:
    try:
        check(stream_id, expected, actual)
    except VersionConflictError as conflict:
        return conflict
    return None


def _same_event(event: Event, stored: Envelope) -> bool:
    if not isinstance(stored.event, Event) or stored.type != event.type:
        return False
    new, old = (decode_json(msgspec.json.encode(one)) for one in (event, stored.event))
    return same_json(new, old)
