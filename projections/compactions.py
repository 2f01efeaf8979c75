"""Compactions: a summary and the stretch of a path that it stands for, kept as what is left of that stretch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Set

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from eventstore.dialect import BigKey
from eventstore.ports import Tx
from eventstore.statements import Statement
from eventstore.tables import metadata
from projections.message import COMPACTION_PREFIX
from projections.paths import Range, first_on, last_on, lies_on, path_to, path_to_place

compactions = Table(
    "assistant_compactions",
    metadata,
    Column("row_id", BigKey, primary_key=True, autoincrement=False),
    Column("stream_no", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("from_message_id", Text, nullable=False),
    Column("to_message_id", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("from_run", BigInteger, nullable=False),
    Column("from_ordinal", BigInteger, nullable=False),
    Column("to_run", BigInteger, nullable=False),
    Column("to_ordinal", BigInteger, nullable=False),
    Column("stale", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("summary", Text, nullable=False),
    UniqueConstraint("stream_no", "id"),
    Index("ix_assistant_compactions_stream", "stream_no"),
)

_spans = (
    compactions.c.row_id,
    compactions.c.from_run,
    compactions.c.from_ordinal,
    compactions.c.to_run,
    compactions.c.to_ordinal,
)
_of_stream = compactions.c.stream_no == bindparam("stream_no")
_SPANS = Statement(select(*_spans, compactions.c.tokens).where(_of_stream).order_by(compactions.c.row_id), "stream_no")
_ALL = Statement(
    select(
        compactions.c.id,
        compactions.c.summary,
        compactions.c.from_message_id,
        compactions.c.to_message_id,
        compactions.c.created_at,
        compactions.c.stale,
    )
    .where(_of_stream)
    .order_by(compactions.c.row_id),
    "stream_no",
)
_STALE = Statement(select(compactions.c.row_id).where(_of_stream, compactions.c.stale == 1), "stream_no")
_SUMMARY = Statement(
    select(compactions.c.id, compactions.c.summary, compactions.c.created_at).where(
        compactions.c.row_id == bindparam("row_id")
    ),
    "row_id",
)
_ENDS = Statement(
    select(compactions.c.from_message_id, compactions.c.to_message_id).where(
        _of_stream, compactions.c.id == bindparam("id")
    ),
    "stream_no",
    "id",
)
INSERT_COMPACTION = Statement(insert(compactions), *compactions.columns.keys())
_SET_ENDS = Statement(
    update(compactions)
    .where(compactions.c.row_id == bindparam("the_row"))
    .values(
        from_message_id=bindparam("from_id"),
        from_run=bindparam("in_from_run"),
        from_ordinal=bindparam("at_from"),
        to_message_id=bindparam("to_id"),
        to_run=bindparam("in_to_run"),
        to_ordinal=bindparam("at_to"),
    ),
    "from_id",
    "in_from_run",
    "at_from",
    "to_id",
    "in_to_run",
    "at_to",
    "the_row",
)
_MARK_STALE = Statement(
    update(compactions).where(compactions.c.row_id == bindparam("the_row")).values(stale=1), "the_row"
)
_DROP = Statement(delete(compactions).where(compactions.c.row_id == bindparam("the_row")), "the_row")
_FORGET = Statement(delete(compactions).where(_of_stream), "stream_no")


class Compaction(msgspec.Struct, frozen=True):
    """A summary that stands for the messages between two on one path, both included; `created_at` is aware UTC.

    The ends are those of what is left of the range. `stale` says that a message in it was edited since.
    """

    id: str
    summary: str
    from_message_id: str
    to_message_id: str
    created_at: dt.datetime
    stale: bool


class Span(msgspec.Struct, frozen=True):
    """Where a compaction lies, both ends included and both of them there."""

    row_id: int
    from_run: int
    from_ordinal: int
    to_run: int
    to_ordinal: int
    tokens: int


def list_compactions(tx: Tx, stream_no: int) -> list[Compaction]:
    """The compactions of a session in log order."""
    to_time = tx.dialect.to_time
    return [
        Compaction(compaction_id, summary, from_id, to_id, to_time(created_at), bool(stale))
        for compaction_id, summary, from_id, to_id, created_at, stale in tx.fetch(_ALL, (stream_no,))
    ]


def find_ends(tx: Tx, stream_no: int, message_id: str) -> tuple[str, str] | None:
    """The ids of the first and the last message that an overlay stands for; None for what is no overlay of now."""
    if not message_id.startswith(COMPACTION_PREFIX):
        return None
    rows = tx.fetch(_ENDS, (stream_no, message_id.removeprefix(COMPACTION_PREFIX)))
    return (rows[0][0], rows[0][1]) if rows else None


def list_spans(tx: Tx, stream_no: int) -> list[Span]:
    """Where the compactions of a session lie, in log order."""
    return [Span(*row) for row in tx.fetch(_SPANS, (stream_no,))]


def stale_rows(tx: Tx, stream_no: int) -> set[int]:
    """The rows of the compactions in whose range a message was edited."""
    return {row[0] for row in tx.fetch(_STALE, (stream_no,))}


def find_summary(tx: Tx, row_id: int) -> tuple[str, str, object]:
    """Id, summary and stored time of a compaction."""
    compaction_id, summary, created_at = tx.fetch(_SUMMARY, (row_id,))[0]
    return compaction_id, summary, created_at


def stretch(tx: Tx, stream_no: int, span: Span) -> list[Range]:
    """The part of a path that a compaction stands for."""
    if span.from_run == span.to_run:
        return [Range(span.from_run, span.from_ordinal, span.to_ordinal)]
    path = path_to_place(tx, stream_no, span.to_run, span.to_ordinal)
    first = next(index for index, part in enumerate(path) if part.run == span.from_run)
    return [Range(span.from_run, span.from_ordinal, path[first].last), *path[first + 1 :]]


def mark_stale(tx: Tx, stream_no: int, run: int, ordinal: int) -> None:
    """Mark the compactions that stand for a message which was edited."""
    spans = list_spans(tx, stream_no)
    # Most of them lie on the path to the tip, which is read once.
    tip = path_to(tx, stream_no, None) if spans else None
    stops = {part.run: part.last for part in tip or ()}
    indices = {part.run: index for index, part in enumerate(tip or ())}
    edited = indices.get(run, -1), ordinal
    for span in spans:
        if span.to_ordinal <= stops.get(span.to_run, 0):
            first, last = (indices[span.from_run], span.from_ordinal), (indices[span.to_run], span.to_ordinal)
            is_covered = first <= edited <= last and ordinal <= stops[run]
        else:
            is_covered = lies_on(stretch(tx, stream_no, span), run, ordinal)
        if is_covered:
            tx.execute(_MARK_STALE, (span.row_id,))


def shrink(tx: Tx, stream_no: int, deleted: Set[tuple[int, int]]) -> None:
    """Move the ends that were deleted to what is left of the range; a compaction of nothing is dropped."""
    for span in list_spans(tx, stream_no):
        if not deleted & {(span.from_run, span.from_ordinal), (span.to_run, span.to_ordinal)}:
            continue
        left = stretch(tx, stream_no, span)
        first, last = first_on(tx, stream_no, left), last_on(tx, stream_no, left)
        if first is None or last is None:
            tx.execute(_DROP, (span.row_id,))
        else:
            ends = (first.id, first.run, first.ordinal, last.id, last.run, last.ordinal)
            tx.execute(_SET_ENDS, (*ends, span.row_id))


def forget_compactions(tx: Tx, stream_no: int) -> None:
    """Drop the compactions of a session."""
    tx.execute(_FORGET, (stream_no,))
