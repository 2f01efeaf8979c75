"""Full-text search over messages: the text index is filled with our own tokens, and hits are read from the tree.

An index row is numbered by its message's stream and version: a session is a range of rows, newest last.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
from sqlalchemy import bindparam, select

from eventstore.envelope import Envelope
from eventstore.events import MessageAppended
from eventstore.ports import Order, Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events
from projections.analysis import REVISION, Query, analyse, parse_query
from projections.tmp_snippet import snippet
from projections.base import Projection
from projections.message import message_text
from projections.message_tree import messages

INDEX = "assistant_fts"
VERSION_BITS = 32
MORE_FOR_TIES = 100
"""How many hits more than asked for are ranked across sessions, so that equal ranks can be put newest first."""

LAST_ROW = (1 << 63) - 1
MOST_HITS = 1 << 40
"""More than any store holds, and a number that every engine takes as a limit."""

_of_index_row = (events.c.stream_no == bindparam("stream_no"), events.c.version == bindparam("version"))
_HIT = Statement(
    select(messages.c.id, messages.c.session_id, messages.c.role, messages.c.content, messages.c.created_at)
    .join_from(events, messages, messages.c.row_id == events.c.position)
    .where(*_of_index_row),
    "stream_no",
    "version",
)
_POSITION = Statement(select(events.c.position).where(*_of_index_row), "stream_no", "version")


class SearchResult(msgspec.Struct, frozen=True, dict=True):
    """A message that holds what was searched for; `content` is its text, `query` what was understood of the search."""

    id: str
    session_id: str
    role: str
    content: str
    created_at: dt.datetime
    query: Query
    highlight: tuple[str, str] = ("", "")

    @cached_property
    def snippet(self) -> str:
        """The part of the text around the words; made when it is first asked for."""
        return snippet(self.content, self.query, highlight=self.highlight)


class SearchIndex(Projection):
    """The text index over the messages' text parts."""

    name = "search_index"
    revision = REVISION
    handles = (MessageAppended,)

    def create(self, tx: Tx) -> None:
        """Create the text index."""
        tx.dialect.text_index(INDEX).create(tx)

    def reset(self, tx: Tx) -> None:
        """Empty the text index."""
        tx.dialect.text_index(INDEX).clear(tx)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Index the messages' tokens."""
        rows: list[tuple[int, list[str]]] = []
        for envelope in envelopes:
            if isinstance(envelope.event, MessageAppended):
                tokens = analyse(message_text(envelope.event.message))
                if tokens:
                    rows.append((_index_row(envelope.stream_no, envelope.version), tokens))
        tx.dialect.text_index(INDEX).add(tx, rows)

    def dump(self, tx: Tx, stream_no: int | None = None) -> Iterator[Row]:
        """Every token of the index with its place, in order; nothing for one stream, since the index knows none."""
        if stream_no is None:
            for token, row_id, place in tx.dialect.text_index(INDEX).terms(tx):
                yield (INDEX, row_id, place, token)


def search(
    tx: Tx, text: str, *, stream_no: int | None, limit: int, order: Order, highlight: tuple[str, str] = ("", "")
) -> list[SearchResult]:
    """The messages of a stream (or of all) that hold all words of a text as a person typed it, best or newest first."""
    query = parse_query(text)
    if not query.phrases or limit == 0:
        return []
    results: list[SearchResult] = []
    for row in _best(tx, query, stream_no, min(limit, MOST_HITS), order):
        for message_id, session_id, role, content, created_at in tx.fetch(_HIT, _message_of(row)):
            body = message_text(msgspec.json.decode(content))
            time = tx.dialect.to_time(created_at)
            results.append(SearchResult(message_id, session_id, role, body, time, query, highlight))
    return results


def _best(tx: Tx, query: Query, stream_no: int | None, limit: int, order: Order) -> list[int]:
    """The index rows of the hits, best or newest first."""
    index = tx.dialect.text_index(INDEX)
    if stream_no is not None:
        low, high = _index_row(stream_no, 0), _index_row(stream_no + 1, 0) - 1
        return [row for row, _ in index.match(tx, query.phrases, low, high, limit, order)]
    wanted = limit + MORE_FOR_TIES
    found = index.match(tx, query.phrases, 0, LAST_ROW, wanted, order)
    # Across sessions equal ranks come by session: all of them are needed to tell which are the newest.
    while len(found) == wanted and found[limit - 1][1] == found[-1][1]:
        wanted *= 4
        found = index.match(tx, query.phrases, 0, LAST_ROW, wanted, order)
    placed = [(rank, -position, row) for row, rank in found for (position,) in tx.fetch(_POSITION, _message_of(row))]
    return [row for _, _, row in sorted(placed)[:limit]]


def _index_row(stream_no: int, version: int) -> int:
    return stream_no << VERSION_BITS | version


def _message_of(index_row: int) -> tuple[int, int]:
    """The stream and the version that an index row stands for."""
    return index_row >> VERSION_BITS, index_row & (1 << VERSION_BITS) - 1
