"""Reading the tree: paths as index ranges, branches, all messages; whole, or in bounded pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
from sqlalchemy import bindparam, select

from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events
from projections.message_tree import messages, runs, trees

PAGE_MESSAGES = 500
PAGE_BYTES = 1 << 20


class Range(msgspec.Struct, frozen=True):
    """A stretch of a run, both ordinals included; a path is such ranges from the root on."""

    run: int
    first: int
    last: int


_LEAF = Statement(
    select(messages.c.run, messages.c.ordinal).where(
        messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id")
    ),
    "stream_no",
    "id",
)
_TIP_PLACE = Statement(
    select(messages.c.run, messages.c.ordinal)
    .join_from(trees, messages, messages.c.row_id == trees.c.tip)
    .where(trees.c.stream_no == bindparam("stream_no")),
    "stream_no",
)
_RUN = Statement(
    select(runs.c.parent_run, runs.c.fork_ordinal).where(
        runs.c.stream_no == bindparam("stream_no"), runs.c.run == bindparam("run")
    ),
    "stream_no",
    "run",
)
_of_range = (
    messages.c.stream_no == bindparam("stream_no"),
    messages.c.run == bindparam("run"),
    messages.c.ordinal.between(bindparam("first"), bindparam("last")),
)
_RANGE = Statement(
    select(messages.c.content, messages.c.created_at).where(*_of_range).order_by(messages.c.ordinal),
    "stream_no",
    "run",
    "first",
    "last",
)
_RANGE_PAGE = Statement(
    select(messages.c.content, messages.c.created_at, messages.c.ordinal)
    .where(*_of_range)
    .order_by(messages.c.ordinal)
    .limit(PAGE_MESSAGES),
    "stream_no",
    "run",
    "first",
    "last",
)
_FORKS = Statement(
    select(messages.c.content, messages.c.created_at, messages.c.row_id)
    .join_from(runs, messages, (messages.c.stream_no == runs.c.stream_no) & (messages.c.run == runs.c.run))
    .where(
        runs.c.stream_no == bindparam("stream_no"),
        runs.c.parent_run == bindparam("run"),
        runs.c.fork_ordinal == bindparam("fork_ordinal"),
        messages.c.ordinal == bindparam("ordinal"),
    )
    .order_by(messages.c.row_id),
    "stream_no",
    "run",
    "fork_ordinal",
    "ordinal",
)
_NEXT = Statement(
    select(messages.c.content, messages.c.created_at, messages.c.row_id).where(
        messages.c.stream_no == bindparam("stream_no"),
        messages.c.run == bindparam("run"),
        messages.c.ordinal == bindparam("ordinal"),
    ),
    "stream_no",
    "run",
    "ordinal",
)
_ALL = Statement(
    select(messages.c.content, messages.c.created_at, messages.c.parent_id, events.c.version)
    .join_from(events, messages, messages.c.row_id == events.c.position)
    .where(events.c.stream_no == bindparam("stream_no"), events.c.version > bindparam("after"))
    .order_by(events.c.version),
    "stream_no",
    "after",
)


def path_to(tx: Tx, stream_no: int, leaf_id: str | None) -> list[Range] | None:
    """The path from its root to a message, or to the tip for None; None when there is no such message."""
    rows = tx.fetch(_TIP_PLACE, (stream_no,)) if leaf_id is None else tx.fetch(_LEAF, (stream_no, leaf_id))
    if not rows:
        return [] if leaf_id is None else None
    run, last = rows[0]
    ranges: list[Range] = []
    while run:
        parent_run, fork_ordinal = tx.fetch(_RUN, (stream_no, run))[0]
        ranges.append(Range(run, fork_ordinal + 1, last))
        run, last = parent_run, fork_ordinal
    ranges.reverse()
    return ranges


def read_path(tx: Tx, stream_no: int, ranges: Sequence[Range]) -> Iterator[Row]:
    """(content, stored time) of every message of a path, from the root on."""
    return chain.from_iterable(tx.iterate(_RANGE, (stream_no, part.run, part.first, part.last)) for part in ranges)


def page_of_path(tx: Tx, stream_no: int, ranges: Sequence[Range]) -> tuple[list[Row], list[Range]]:
    """(content, stored time, ordinal) of a path's first messages up to a page's bounds, and what is left of it."""
    page: list[Row] = []
    size = 0
    for index, part in enumerate(ranges):
        for row in tx.iterate(_RANGE_PAGE, (stream_no, part.run, part.first, part.last)):
            page.append(row)
            size += len(row[0])
            if len(page) >= PAGE_MESSAGES or size >= PAGE_BYTES:
                rest = [] if row[2] == part.last else [Range(part.run, row[2] + 1, part.last)]
                return page, rest + list(ranges[index + 1 :])
    return page, []


def children_of(tx: Tx, stream_no: int, message_id: str) -> list[Row]:
    """(content, stored time, row number) of a message's children in log order; none for an unknown message."""
    rows = tx.fetch(_LEAF, (stream_no, message_id))
    if not rows:
        return []
    run, ordinal = rows[0]
    forks = tx.fetch(_FORKS, (stream_no, run, ordinal, ordinal + 1))
    following = tx.fetch(_NEXT, (stream_no, run, ordinal + 1))
    # The child that continues the run was there before any child that starts one.
    return following + forks


def page_of_tree(tx: Tx, stream_no: int, after_version: int) -> list[Row]:
    """(content, stored time, parent id, version) of the next messages of all branches, in log order."""
    page: list[Row] = []
    size = 0
    for row in tx.iterate(_ALL, (stream_no, after_version)):
        page.append(row)
        size += len(row[0])
        if len(page) >= PAGE_MESSAGES or size >= PAGE_BYTES:
            break
    return page
