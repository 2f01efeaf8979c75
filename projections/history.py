"""Reading the tree: the messages of a path or a view, branches, all messages; whole, or in bounded pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec
from sqlalchemy import bindparam, select

from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events
from projections.overlay import Overlay, View
from projections.paths import Range, nearest_below, place_of
from projections.tree_tables import messages

PAGE_MESSAGES = 500
PAGE_BYTES = 1 << 20

_of_range = (
    messages.c.stream_no == bindparam("stream_no"),
    messages.c.run == bindparam("run"),
    messages.c.ordinal.between(bindparam("first"), bindparam("last")),
)
_range = ("stream_no", "run", "first", "last")
_RANGE = Statement(
    select(messages.c.content, messages.c.created_at).where(*_of_range).order_by(messages.c.ordinal), *_range
)
_page = select(messages.c.content, messages.c.created_at, messages.c.bytes, messages.c.ordinal, messages.c.run).where(
    *_of_range
)
_PAGE = Statement(_page.order_by(messages.c.ordinal).limit(bindparam("most")), *_range, "most")
_PAGE_BACKWARDS = Statement(_page.order_by(messages.c.ordinal.desc()).limit(bindparam("most")), *_range, "most")
_STATS = Statement(
    select(messages.c.id, messages.c.role, messages.c.bytes, messages.c.tokens)
    .where(*_of_range)
    .order_by(messages.c.ordinal),
    *_range,
)
_SIZES_BACKWARDS = Statement(
    select(messages.c.ordinal, messages.c.bytes).where(*_of_range).order_by(messages.c.ordinal.desc()), *_range
)
_ROW = Statement(
    select(messages.c.content, messages.c.created_at).where(messages.c.row_id == bindparam("row_id")), "row_id"
)
_ALL = Statement(
    select(messages.c.content, messages.c.created_at, messages.c.parent_id, events.c.version)
    .join_from(events, messages, messages.c.row_id == events.c.position)
    .where(events.c.stream_no == bindparam("stream_no"), events.c.version > bindparam("after"))
    .order_by(events.c.version),
    "stream_no",
    "after",
)


class RowStat(msgspec.Struct, frozen=True):
    """A message in numbers: the bytes of its stored JSON in UTF-8, and the estimate of its tokens."""

    id: str
    role: str
    bytes: int
    tokens: int


def read_view(tx: Tx, stream_no: int, view: Iterable[Range | Overlay]) -> Iterator[Row]:
    """(content, stored time) of every message of a view, from the root on."""

    def rows_of(part: Range | Overlay) -> Iterable[Row]:
        if isinstance(part, Overlay):
            return [(part.content, part.created_at)]
        return tx.iterate(_RANGE, (stream_no, part.run, part.first, part.last))

    return chain.from_iterable(map(rows_of, view))


def page_of_view(
    tx: Tx, stream_no: int, view: View, *, newest_first: bool, most: int = PAGE_MESSAGES, most_bytes: int = PAGE_BYTES
) -> tuple[list[Row], View]:
    """(content, stored time, ...) of a view's first messages, or last ones, up to a page's bounds; and what is left.

    A page has at least one message, however long it is, unless nothing is left.
    """
    # What comes next stands last.
    rest = view[:] if newest_first else view[::-1]
    page: list[Row] = []
    size = 0
    full = most <= 0
    while rest and not full:
        part: Range | Overlay | None = rest.pop()
        for row in _rows_of(tx, stream_no, part, most=most - len(page), newest_first=newest_first):
            size += row[2]
            full = bool(page) and size > most_bytes
            if full:
                break
            page.append(row)
            part = _behind(part, row[3], newest_first=newest_first)
        full = full or len(page) >= most
        if full and part is not None:
            rest.append(part)
    return page, rest if newest_first else rest[::-1]


def view_behind(view: View, row: Row, *, newest_first: bool) -> View:
    """What is left of a view once a row of its page was handed out."""
    content, *_, ordinal, run = row
    parts = view[::-1] if newest_first else view
    for index, part in enumerate(parts):
        if isinstance(part, Range):
            is_it = part.run == run and part.first <= ordinal <= part.last
        else:
            is_it = part.content == content
        if is_it:
            left = _behind(part, ordinal, newest_first=newest_first)
            rest: View = [*([left] if left else ()), *parts[index + 1 :]]
            return rest[::-1] if newest_first else rest
    return []


def _rows_of(tx: Tx, stream_no: int, part: Range | Overlay | None, *, most: int, newest_first: bool) -> Iterable[Row]:
    if isinstance(part, Range):
        statement = _PAGE_BACKWARDS if newest_first else _PAGE
        return tx.iterate(statement, (stream_no, part.run, part.first, part.last, most))
    return [(part.content, part.created_at, len(part.content.encode()), 0, 0)] if part else []


def _behind(part: Range | Overlay | None, ordinal: int, *, newest_first: bool) -> Range | None:
    """What is left of a part of a view once a message of it was read."""
    if not isinstance(part, Range):
        return None
    left = Range(part.run, part.first, ordinal - 1) if newest_first else Range(part.run, ordinal + 1, part.last)
    return left if left.first <= left.last else None


def row_stats(tx: Tx, stream_no: int, path: Iterable[Range]) -> list[RowStat]:
    """The messages of a path in numbers; their content is not read."""
    return [RowStat(*row) for part in path for row in tx.iterate(_STATS, (stream_no, part.run, part.first, part.last))]


def start_of_recent(
    tx: Tx, stream_no: int, path: Sequence[Range], *, most_bytes: int, least_messages: int
) -> tuple[tuple[int, int] | None, int]:
    """Where the last messages of a path begin that fit into so many bytes, but at least some; and how many they are."""
    start: tuple[int, int] | None = None
    size = count = 0
    for index in reversed(range(len(path))):
        part = path[index]
        for ordinal, length in tx.iterate(_SIZES_BACKWARDS, (stream_no, part.run, part.first, part.last)):
            size += length
            if count >= least_messages and size > most_bytes:
                return start, count
            start, count = (index, ordinal), count + 1
    return start, count


def children_of(tx: Tx, stream_no: int, message_id: str) -> list[Row]:
    """(content, stored time) of a message's children in log order; none for an unknown message."""
    place = place_of(tx, stream_no, message_id)
    if place is None:
        return []
    return [row for child in nearest_below(tx, stream_no, *place) for row in tx.fetch(_ROW, (child.row_id,))]


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
