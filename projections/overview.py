"""Looking over many sessions, and over the shape of one, in one query each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator

import msgspec
from sqlalchemy import bindparam, func, select

from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events, streams
from projections.compactions import compactions
from projections.corrections import corrections
from projections.directory import sessions
from projections.overlay import view_tokens
from projections.paths import path_to
from projections.tree_tables import message_count, messages, tip, trees, with_tips

PAGE_PLACES = 5_000

_joined = with_tips(
    sessions.join(streams, streams.c.stream_no == sessions.c.stream_no).outerjoin(
        trees, trees.c.stream_no == sessions.c.stream_no
    )
).outerjoin(messages, messages.c.row_id == tip)
_overview = select(
    sessions.c.id,
    sessions.c.name,
    sessions.c.source,
    sessions.c.parent_session_id,
    func.coalesce(message_count, 0),
    func.coalesce(trees.c.leaves, 0),
    streams.c.version,
    func.coalesce(messages.c.path_tokens, 0),
    messages.c.id,
    sessions.c.created_at,
    sessions.c.updated_at,
    sessions.c.stream_no,
    select(1).where(corrections.c.stream_no == sessions.c.stream_no).exists()
    | select(1).where(compactions.c.stream_no == sessions.c.stream_no).exists(),
).select_from(_joined)
_OVERVIEWS = Statement(_overview.order_by(sessions.c.updated_position.desc()))
_OVERVIEW = Statement(_overview.where(sessions.c.id == bindparam("id")), "id")

_IDS = Statement(select(sessions.c.id))
_ID = Statement(select(sessions.c.id).where(sessions.c.id == bindparam("id")), "id")
_BEGINNINGS = Statement(
    select(sessions.c.id)
    .where(func.substr(sessions.c.id, 1, bindparam("length")) == bindparam("beginning"))
    .order_by(sessions.c.id)
    .limit(bindparam("most")),
    "length",
    "beginning",
    "most",
)
_PLACES = Statement(
    select(messages.c.id, messages.c.parent_id, messages.c.role, events.c.version)
    .join_from(events, messages, messages.c.row_id == events.c.position)
    .where(events.c.stream_no == bindparam("stream_no"), events.c.version > bindparam("after"))
    .order_by(events.c.version)
    .limit(bindparam("most")),
    "stream_no",
    "after",
    "most",
)


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A session in numbers; `branches` are its leaves, `events` the stream's version, times are aware UTC.

    `tokens` is the estimate for the path to the current leaf, `leaf_id`, which is None without messages.
    """

    id: str
    name: str
    source: str | None
    parent_session_id: str | None
    messages: int
    branches: int
    events: int
    tokens: int
    leaf_id: str | None
    created_at: dt.datetime
    updated_at: dt.datetime


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A message's place in its tree; a root has no parent."""

    id: str
    parent_id: str | None
    role: str


def list_overviews(tx: Tx) -> Iterator[Overview]:
    """Every session, the one with the newest event first; read as they are asked for, within the transaction."""
    return (_to_overview(tx, row) for row in tx.iterate(_OVERVIEWS))


def find_overview(tx: Tx, session_id: str) -> Overview | None:
    """The session with this id."""
    rows = tx.fetch(_OVERVIEW, (session_id,))
    return _to_overview(tx, rows[0]) if rows else None


def session_ids(tx: Tx) -> Collection[str]:
    """The ids of all sessions."""
    return [row[0] for row in tx.iterate(_IDS)]


def match_ids(tx: Tx, beginning: str, *, limit: int) -> list[str]:
    """The id that is this text; if there is none, the first ids that begin with it, in their order."""
    rows = tx.fetch(_ID, (beginning,)) or tx.fetch(_BEGINNINGS, (len(beginning), beginning, limit))
    return [row[0] for row in rows]


def page_of_places(tx: Tx, stream_no: int, after_version: int) -> tuple[list[Place], int]:
    """The next messages of all branches in log order, and the version that the next page comes after (0: no more)."""
    rows = tx.fetch(_PLACES, (stream_no, after_version, PAGE_PLACES))
    page = [Place(id=row[0], parent_id=row[1], role=row[2]) for row in rows]
    return page, rows[-1][3] if len(rows) == PAGE_PLACES else 0


def _to_overview(tx: Tx, row: Row) -> Overview:
    *told, created_at, updated_at, stream_no, is_changed = row
    named = dict(zip(Overview.__struct_fields__, told, strict=False))
    if is_changed:
        named["tokens"] = view_tokens(tx, stream_no, path_to(tx, stream_no, None) or [])
    return Overview(**named, created_at=tx.dialect.to_time(created_at), updated_at=tx.dialect.to_time(updated_at))
