"""Stored event rows: the queries that read them, and the envelopes they become."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlalchemy import Select, bindparam, func, select

from eventstore import codec
from eventstore.envelope import Envelope, from_micros
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events, streams

PAGE_EVENTS = 1_000
PAGE_BYTES = 1 << 20

_NO_END = 1 << 62

_columns = (
    events.c.position,
    events.c.stream_no,
    streams.c.stream_id,
    events.c.version,
    events.c.event_id,
    events.c.type,
    events.c.schema,
    events.c.recorded_at,
    events.c.payload,
    events.c.payload_digest,
    events.c.hash,
)


def _select() -> Select[tuple[object, ...]]:
    return select(*_columns).join_from(events, streams, events.c.stream_no == streams.c.stream_no)


_ALL = Statement(_select().where(events.c.position > bindparam("after")).order_by(events.c.position), "after")
_OF_STREAM = (
    events.c.stream_no == bindparam("stream_no"),
    events.c.version.between(bindparam("low"), bindparam("high")),
)
_FORWARDS = Statement(_select().where(*_OF_STREAM).order_by(events.c.version), "stream_no", "low", "high")
_BACKWARDS = Statement(_select().where(*_OF_STREAM).order_by(events.c.version.desc()), "stream_no", "low", "high")
_BY_ID = Statement(
    _select().where(events.c.event_id == bindparam("event_id"), events.c.stream_no == bindparam("stream_no")),
    "event_id",
    "stream_no",
)
_AT = Statement(_select().where(events.c.position == bindparam("position")), "position")
_STREAM = Statement(
    select(streams.c.stream_no, streams.c.version).where(streams.c.stream_id == bindparam("stream_id")), "stream_id"
)
_POSITION = Statement(
    select(events.c.position).where(
        events.c.stream_no == bindparam("stream_no"), events.c.version == bindparam("version")
    ),
    "stream_no",
    "version",
)
_VERSION = Statement(select(streams.c.version).where(streams.c.stream_no == bindparam("stream_no")), "stream_no")
_HIGH_WATER = Statement(select(func.max(events.c.position)))


def to_envelope(row: Row) -> Envelope:
    """The envelope of a stored row, its payload decoded and lifted to the current schema."""
    position, stream_no, stream_id, version, event_id, kind, schema, recorded_at, payload, digest, last_hash = row
    event, metadata = codec.decode(kind, schema, payload)
    return Envelope(
        event=event,
        stream_id=stream_id,
        stream_no=stream_no,
        version=version,
        position=position,
        event_id=event_id,
        type=kind,
        schema=schema,
        recorded_at=from_micros(recorded_at),
        metadata=metadata,
        payload_digest=digest,
        hash=last_hash,
    )


def _page(rows: Iterator[Row], types: Collection[str] | None) -> tuple[list[Envelope], Row | None]:
    """Envelopes of the first rows up to the page's bounds, and the last row that was looked at."""
    page: list[Envelope] = []
    size = 0
    last: Row | None = None
    for seen, last in enumerate(rows, start=1):
        if types is None or last[5] in types:
            page.append(to_envelope(last))
            size += len(last[8] or "")
        if size >= PAGE_BYTES or seen >= PAGE_EVENTS:
            break
    return page, last


def page_of_all(tx: Tx, after: int, types: Collection[str] | None) -> tuple[list[Envelope], int]:
    """A page of the log after a position, and the position that the next page comes after (the same: no more)."""
    page, last = _page(tx.iterate(_ALL, (after,)), types)
    return page, last[0] if last else after


def page_of_stream(
    tx: Tx, stream_no: int, low: int, high: int, *, backwards: bool = False
) -> tuple[list[Envelope], int | None]:
    """A page of the versions from `low` to `high` of a stream, and the last version in it (None: it is empty)."""
    page, last = _page(tx.iterate(_BACKWARDS if backwards else _FORWARDS, (stream_no, low, high)), None)
    return page, last[3] if last else None


def find_events(tx: Tx, stream_no: int, event_ids: Sequence[str]) -> list[Envelope]:
    """The events of a stream that have these ids."""
    return [to_envelope(row) for event_id in event_ids for row in tx.fetch(_BY_ID, (event_id, stream_no))]


def find_position(tx: Tx, position: int) -> Envelope | None:
    """The event at a position of the log."""
    rows = tx.fetch(_AT, (position,))
    return to_envelope(rows[0]) if rows else None


def find_stream(tx: Tx, stream_id: str) -> tuple[int, int]:
    """A stream's number in this database and its version; (0, 0) for a stream that does not exist."""
    rows = tx.fetch(_STREAM, (stream_id,))
    return (rows[0][0], rows[0][1]) if rows else (0, 0)


def version_at(tx: Tx, stream_no: int, version: int, position: int) -> int:
    """The last version, up to the given one, that a stream had at a position: positions rise with versions."""
    low, high = 0, version
    while low < high:
        middle = (low + high + 1) // 2
        if tx.fetch(_POSITION, (stream_no, middle))[0][0] <= position:
            low = middle
        else:
            high = middle - 1
    return low


def position_at(tx: Tx, stream_no: int, position: int) -> int:
    """The position of the last event that a stream had at a position of the log; 0 when it had none."""
    version = tx.fetch(_VERSION, (stream_no,))[0][0]
    reached = version_at(tx, stream_no, version, position)
    return int(tx.fetch(_POSITION, (stream_no, reached))[0][0]) if reached else 0


def high_water(tx: Tx) -> int:
    """The highest position at or below which nothing new can become visible."""
    return tx.fetch(_HIGH_WATER)[0][0] or 0


def events_since(tx: Tx, stream_no: int, version: int, types: Collection[str]) -> Iterator[Envelope]:
    """The events of some types that a stream has had since a version, oldest first."""
    rows = tx.iterate(_FORWARDS, (stream_no, version + 1, _NO_END))
    return (to_envelope(row) for row in rows if row[5] in types)
