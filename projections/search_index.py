"""Full-text search over messages: the text index is filled with our own tokens, and hits are read from the tree.

An index row is numbered by its message's stream and version: a session is a range of rows, newest last.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import cache, cached_property

import msgspec
from sqlalchemy import select

from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.events import MessageAppended
from eventstore.ports import Order, TextIndex, Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events
from projections.analysis import REVISION, Query, analyse, parse_query, snippet
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


@cache
def _hits(index: TextIndex, order: Order) -> Statement:
    """The query for the index rows that match, with the messages that they stand for."""
    hits = index.hits(order)
    version = hits.c.row_no.bitwise_and((1 << VERSION_BITS) - 1)
    event = (events.c.stream_no == hits.c.row_no.bitwise_rshift(VERSION_BITS)) & (events.c.version == version)
    found = (messages.c.id, messages.c.session_id, messages.c.role, messages.c.content, messages.c.created_at)
    query = (
        select(hits.c.rank, messages.c.row_id, *found)
        .select_from(hits.join(events, event).join(messages, messages.c.row_id == events.c.position))
        .order_by(hits.c.rank, hits.c.row_no.desc())
    )
    return Statement(query, "query", "low", "high", "limit")


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

    def drop(self, tx: Tx) -> None:
        """Drop the text index."""
        tx.dialect.text_index(INDEX).drop(tx)

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
    limit = min(limit, MOST_HITS)
    if stream_no is None:
        found = _best_of_all(tx, query, limit, order)
    else:
        found = _found(tx, query, _index_row(stream_no, 0), _index_row(stream_no + 1, 0) - 1, limit, order)
    results: list[SearchResult] = []
    for _rank, _position, message_id, session_id, role, content, created_at in found:
        body = message_text(decode_json(content))
        time = tx.dialect.to_time(created_at)
        results.append(SearchResult(message_id, session_id, role, body, time, query, highlight))
    return results


def _best_of_all(tx: Tx, query: Query, limit: int, order: Order) -> list[Row]:
    """The hits in all sessions: the index has equal ranks by session, people want the newest first."""
    wanted = limit + MORE_FOR_TIES
    found = _found(tx, query, 0, LAST_ROW, wanted, order)
    while len(found) == wanted and found[limit - 1][0] == found[-1][0]:
        wanted *= 4
        found = _found(tx, query, 0, LAST_ROW, wanted, order)
    found.sort(key=lambda hit: (hit[0], -hit[1]))
    return found[:limit]


def _found(tx: Tx, query: Query, low: int, high: int, limit: int, order: Order) -> list[Row]:
    index = tx.dialect.text_index(INDEX)
    return tx.fetch(_hits(index, order), (index.query(query.phrases), low, high, limit))


def _index_row(stream_no: int, version: int) -> int:
    return stream_no << VERSION_BITS | version
