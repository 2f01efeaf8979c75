"""The session directory: a row per session, found by id and listed newest first."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from eventstore.dialect import BigKey
from eventstore.envelope import Envelope
from eventstore.events import (
    EVENT_TYPES,
    SessionCreated,
    SessionDeleted,
    SessionEnded,
    SessionRenamed,
    UsageAdded,
)
from eventstore.ports import Tx
from eventstore.rows import position_at
from eventstore.statements import Row, Statement
from eventstore.tables import events, metadata
from projections.base import Projection

NO_SESSION = ("context:", "search:")
"""What the ids of streams that are no sessions start with."""

sessions = Table(
    "assistant_sessions",
    metadata,
    Column("stream_no", BigKey, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("parent_session_id", Text),
    Column("model", Text),
    Column("source", Text),
    Column("input_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("output_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("estimated_cost", Float, nullable=False, server_default=text("0")),
    Column("end_reason", Text),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("updated_position", BigInteger, nullable=False),
    Index("ix_assistant_sessions_updated", "updated_position"),
)

deleted_sessions = Table(
    "deleted_sessions",
    metadata,
    Column("stream_no", BigKey, primary_key=True, autoincrement=False),
)

_INFO = (
    sessions.c.id,
    sessions.c.name,
    sessions.c.parent_session_id,
    sessions.c.model,
    sessions.c.source,
    sessions.c.input_tokens,
    sessions.c.output_tokens,
    sessions.c.estimated_cost,
    sessions.c.end_reason,
    sessions.c.created_at,
    sessions.c.updated_at,
)
_listed = select(*_INFO, sessions.c.updated_position)
_BY_ID = Statement(select(*_INFO).where(sessions.c.id == bindparam("id")), "id")
_COUNT = Statement(select(func.count()).select_from(sessions))
_NEWEST = Statement(
    _listed.where(sessions.c.updated_position < bindparam("before"))
    .order_by(sessions.c.updated_position.desc())
    .limit(bindparam("most")),
    "before",
    "most",
)
_first = events.alias("first")
_TOUCHED = Statement(
    select(*_INFO, sessions.c.stream_no)
    .join_from(sessions, _first, (_first.c.stream_no == sessions.c.stream_no) & (_first.c.version == 1), isouter=True)
    # Without those that are newer altogether, of which there may be many.
    .where(
        sessions.c.updated_position > bindparam("after"),
        func.coalesce(_first.c.position, 0) <= bindparam("until"),
    ),
    "after",
    "until",
)
_of_stream = sessions.c.stream_no == bindparam("the_stream")
_LOAD = Statement(select(sessions).where(_of_stream), "the_stream")
_IS_DELETED = Statement(select(1).where(deleted_sessions.c.stream_no == bindparam("stream_no")), "stream_no")
_INSERT = Statement(insert(sessions), *sessions.columns.keys())
_state = tuple(column.name for column in sessions.columns if column.name != "stream_no")
_UPDATE = Statement(
    update(sessions).where(_of_stream).values({name: bindparam(f"to_{name}") for name in _state}),
    *(f"to_{name}" for name in _state),
    "the_stream",
)
_TOUCH = Statement(
    update(sessions)
    .where(_of_stream, sessions.c.updated_position < bindparam("to_position"))
    .values(updated_at=bindparam("to_time"), updated_position=bindparam("to_position")),
    "to_time",
    "to_position",
    "the_stream",
)
_DELETE = Statement(delete(sessions).where(_of_stream), "the_stream")
_INSERT_DELETED = Statement(insert(deleted_sessions), "stream_no")
_TELLING = (SessionCreated, SessionRenamed, SessionEnded, SessionDeleted, UsageAdded)


class SessionInfo(msgspec.Struct, frozen=True):
    """What is known of a session beside its messages; times are aware UTC, cost is in the caller's currency."""

    id: str
    name: str
    parent_session_id: str | None
    model: str | None
    source: str | None
    input_tokens: int
    output_tokens: int
    estimated_cost: float
    end_reason: str | None
    created_at: dt.datetime
    updated_at: dt.datetime


class _Entry(msgspec.Struct):
    """A row, in the order of its columns."""

    stream_no: int
    id: str
    name: str
    parent_session_id: str | None
    model: str | None
    source: str | None
    input_tokens: int
    output_tokens: int
    estimated_cost: float
    end_reason: str | None
    created_at: Any
    updated_at: Any
    updated_position: int


class Directory(Projection):
    """A row per session, from its first event on; a session that was never created is named by its id."""

    name = "directory"
    revision = 2
    handles = tuple(EVENT_TYPES)
    tables = (sessions, deleted_sessions)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Enter new sessions, carry out what is told of them, and move the time of their last event."""
        streams: dict[int, list[Envelope]] = {}
        for envelope in envelopes:
            if not envelope.stream_id.startswith(NO_SESSION):
                streams.setdefault(envelope.stream_no, []).append(envelope)
        touched: list[Row] = []
        for stream_no, found in streams.items():
            if found[0].version == 1 or any(isinstance(envelope.event, _TELLING) for envelope in found):
                _change(tx, found)
            else:
                last = found[-1]
                touched.append((tx.dialect.time(last.recorded_at), last.position, stream_no))
        tx.executemany(_TOUCH, touched)


def find_session(tx: Tx, session_id: str) -> SessionInfo | None:
    """The session with this id."""
    rows = tx.fetch(_BY_ID, (session_id,))
    return _to_info(tx, rows[0]) if rows else None


def count_sessions(tx: Tx) -> int:
    """How many sessions there are."""
    return int(tx.fetch(_COUNT)[0][0])


def list_sessions(tx: Tx, *, walk: int, before: int, most: int) -> list[tuple[int, SessionInfo]]:
    """The next sessions, the one with the newest event first, as it was when the log ended at the position `walk`.

    Each comes with the position of that event; `before` is the one that the page comes after.
    """
    kept = [(row[-1], _to_info(tx, row[:-1])) for row in tx.fetch(_NEWEST, (min(before, walk + 1), most))]
    for *row, stream_no in tx.iterate(_TOUCHED, (walk, walk)):
        position = position_at(tx, stream_no, walk)
        if 0 < position < before:
            kept.append((position, _to_info(tx, tuple(row))))
    kept.sort(key=lambda one: -one[0])
    return kept[:most]


def _change(tx: Tx, found: Sequence[Envelope]) -> None:
    """Fold the events of one session into its row."""
    stream_no, time = found[0].stream_no, tx.dialect.time
    rows = tx.fetch(_LOAD, (stream_no,))
    if not rows and tx.fetch(_IS_DELETED, (stream_no,)):
        return
    entry = _Entry(*rows[0]) if rows else _entry(tx, found[0])
    for envelope in found:
        if envelope.position <= entry.updated_position:
            continue
        entry.updated_at, entry.updated_position = time(envelope.recorded_at), envelope.position
        event = envelope.event
        if isinstance(event, SessionRenamed):
            entry.name = event.name
        elif isinstance(event, SessionEnded):
            entry.end_reason = event.reason
        elif isinstance(event, UsageAdded):
            entry.input_tokens += event.input_tokens
            entry.output_tokens += event.output_tokens
            entry.estimated_cost += event.cost
        elif isinstance(event, SessionDeleted):
            tx.execute(_DELETE, (stream_no,))
            tx.execute(_INSERT_DELETED, (stream_no,))
            return
    values = msgspec.structs.astuple(entry)
    if rows:
        tx.execute(_UPDATE, (*values[1:], stream_no))
    else:
        tx.execute(_INSERT, values)


def _entry(tx: Tx, first: Envelope) -> _Entry:
    """The row of a session that has none, before its first event is folded."""
    event, recorded_at = first.event, first.recorded_at
    created = event if isinstance(event, SessionCreated) else SessionCreated(name=first.stream_id)
    time = tx.dialect.time
    about = (created.name, created.parent_session_id, created.model, created.source)
    times = (time(created.created_at or recorded_at), time(recorded_at), 0)
    return _Entry(first.stream_no, first.stream_id, *about, 0, 0, 0.0, None, *times)


def _to_info(tx: Tx, row: Row) -> SessionInfo:
    return SessionInfo(*row[:-2], *map(tx.dialect.to_time, row[-2:]))
