"""The session directory: a row per session, found by id and listed newest first."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Column, Float, Index, Table, Text, bindparam, insert, select, text, update

from eventstore.dialect import BigKey
from eventstore.envelope import Envelope
from eventstore.events import EVENT_TYPES, SessionCreated
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata
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
_BY_ID = Statement(select(*_INFO).where(sessions.c.id == bindparam("id")), "id")
_NEWEST = Statement(select(*_INFO).order_by(sessions.c.updated_position.desc()))
_INSERT = Statement(
    insert(sessions),
    "stream_no",
    "id",
    "name",
    "parent_session_id",
    "model",
    "source",
    "created_at",
    "updated_at",
    "updated_position",
)
_TOUCH = Statement(
    update(sessions)
    .where(sessions.c.stream_no == bindparam("the_stream"), sessions.c.updated_position < bindparam("to_position"))
    .values(updated_at=bindparam("to_time"), updated_position=bindparam("to_position")),
    "to_time",
    "to_position",
    "the_stream",
)


_EXISTS = Statement(select(1).where(sessions.c.stream_no == bindparam("stream_no")), "stream_no")


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


class Directory(Projection):
    """A row per session, from its first event on; a session that was never created is named by its id."""

    name = "directory"
    handles = tuple(EVENT_TYPES)
    tables = (sessions,)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Enter new sessions and move the time of their last event."""
        first: dict[int, Envelope] = {}
        last: dict[int, Envelope] = {}
        for envelope in envelopes:
            if not envelope.stream_id.startswith(NO_SESSION):
                first.setdefault(envelope.stream_no, envelope)
                last[envelope.stream_no] = envelope
        time = tx.dialect.time
        new: list[Row] = []
        touched: list[Row] = []
        for stream_no, envelope in last.items():
            updated = (time(envelope.recorded_at), envelope.position)
            if first[stream_no].version == 1 and not tx.fetch(_EXISTS, (stream_no,)):
                new.append((stream_no, *_created(first[stream_no]), time(_created_at(first[stream_no])), *updated))
            else:
                touched.append((*updated, stream_no))
        tx.executemany(_INSERT, new)
        tx.executemany(_TOUCH, touched)


def find_session(tx: Tx, session_id: str) -> SessionInfo | None:
    """The session with this id."""
    rows = tx.fetch(_BY_ID, (session_id,))
    return _to_info(tx, rows[0]) if rows else None


def list_sessions(tx: Tx) -> list[SessionInfo]:
    """All sessions, the one with the newest event first."""
    return [_to_info(tx, row) for row in tx.iterate(_NEWEST)]


def _created(envelope: Envelope) -> tuple[Any, ...]:
    event = envelope.event
    if isinstance(event, SessionCreated):
        return (envelope.stream_id, event.name, event.parent_session_id, event.model, event.source)
    return (envelope.stream_id, envelope.stream_id, None, None, None)


def _created_at(envelope: Envelope) -> dt.datetime:
    event = envelope.event
    own = event.created_at if isinstance(event, SessionCreated) else None
    return own or envelope.recorded_at


def _to_info(tx: Tx, row: Row) -> SessionInfo:
    return SessionInfo(*row[:-2], *map(tx.dialect.to_time, row[-2:]))
