"""Full-text search over messages: the text index is filled with our own tokens, and hits are read from the tree.

An index row has the number of its message's row, the position in the log, and its stream for a scope.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import cache, cached_property

import msgspec
from sqlalchemy import bindparam, literal, select

from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.events import MessageAppended
from eventstore.ports import Order, TextIndex, Tx
from eventstore.statements import Row, Statement
from projections.analysis import REVISION, Query, analyse, parse_query, snippet
from projections.base import Projection
from projections.message import message_text
from projections.message_tree import messages

INDEX = "assistant_fts"
MOST_HITS = 1 << 40
"""More than any store holds, and a number that every engine takes as a limit."""


@cache
def _hits(index: TextIndex, order: Order, *, in_one_stream: bool) -> Statement:
    """The query for the messages that match, best or newest first, equal ranks newest first."""
    hits = index.hits()
    newest = hits.c.row_no.desc()
    best = select(hits.c.row_no, hits.c.rank if order == "relevance" else literal(0).label("rank"))
    best = best.order_by(*((hits.c.rank, newest) if order == "relevance" else (newest,))).limit(bindparam("limit"))
    if in_one_stream:
        in_stream = (messages.c.row_id == hits.c.row_no) & (messages.c.stream_no == bindparam("stream_no"))
        best = best.join(messages, in_stream)
    # The messages are read once it is known which: sorting all that match with their content would cost more.
    chosen = best.subquery("best")
    found = (messages.c.id, messages.c.session_id, messages.c.role, messages.c.content, messages.c.created_at)
    query = select(*found).select_from(chosen.join(messages, messages.c.row_id == chosen.c.row_no))
    query = query.order_by(chosen.c.rank, chosen.c.row_no.desc())
    return Statement(query, "query", *(("stream_no",) if in_one_stream else ()), "limit")


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
        rows: list[tuple[int, list[str], int]] = []
        for envelope in envelopes:
            if isinstance(envelope.event, MessageAppended):
                tokens = analyse(message_text(envelope.event.message))
                if tokens:
                    rows.append((envelope.position, tokens, envelope.stream_no))
        tx.dialect.text_index(INDEX).add(tx, rows)

    def dump(self, tx: Tx, stream_no: int | None = None) -> Iterator[Row]:
        """Every token of the index with its place, in order; nothing for one stream, since the index knows none."""
        if stream_no is None:
            for token, row_id, column, place in tx.dialect.text_index(INDEX).terms(tx):
                yield (INDEX, row_id, column, place, token)


def search(
    tx: Tx, text: str, *, stream_no: int | None, limit: int, order: Order, highlight: tuple[str, str] = ("", "")
) -> list[SearchResult]:
    """The messages of a stream (or of all) that hold all words of a text as a person typed it, best or newest first."""
    query = parse_query(text)
    if not query.phrases or limit == 0:
        return []
    index = tx.dialect.text_index(INDEX)
    # In the rank a scope would count as a word that has to be looked up in all its rows; when the newest are asked for
    # it is what leads straight to them.
    scope = stream_no if order == "newest" else None
    streams = () if stream_no is None else (stream_no,)
    statement = _hits(index, order, in_one_stream=stream_no is not None)
    found = tx.fetch(statement, (index.query(query.phrases, scope), *streams, min(limit, MOST_HITS)))
    results: list[SearchResult] = []
    for message_id, session_id, role, content, created_at in found:
        body = message_text(decode_json(content))
        time = tx.dialect.to_time(created_at)
        results.append(SearchResult(message_id, session_id, role, body, time, query, highlight))
    return results
