"""Full-text search over messages: the text index gives rows, and what is shown of them is read from the tree."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cache, cached_property

import msgspec
from sqlalchemy import bindparam, func, literal, select

from eventstore.bm25 import count
from eventstore.ports import Order, TextIndex, Tx
from eventstore.statements import Row, Statement
from eventstore.tables import streams
from projections.analysis import Query, analyse, parse_query, snippet
from projections.message import readable_text, stored_text
from projections.search_index import INDEX, reached
from projections.tree_tables import messages

MOST_HITS = 1 << 40
"""More than any store holds, and a number that every engine takes as a limit."""
MUCH: dict[Order, int] = {"relevance": 10, "newest": 2}
"""A stream is much of a store from what part of all events on: a tenth, a half."""


_SHOWN = (messages.c.id, messages.c.session_id, messages.c.role, messages.c.content, messages.c.created_at)


@cache
def _hits(index: TextIndex, order: Order, *, in_one_stream: bool) -> Statement:
    """The query for the rows that match, best or newest first, equal ranks newest first; without an id: no hit."""
    hits = index.hits()
    newest = hits.c.row_no.desc()
    best = select(hits.c.row_no, hits.c.rank if order == "relevance" else literal(0).label("rank"))
    best = best.order_by(*((hits.c.rank, newest) if order == "relevance" else (newest,))).limit(bindparam("most"))
    # The messages are read once it is known which: a look at each that matches costs more than the search itself.
    chosen = best.subquery("best")
    wanted = messages.c.row_id == chosen.c.row_no
    if in_one_stream:
        wanted &= messages.c.stream_no == bindparam("stream_no")
    query = select(*_SHOWN, chosen.c.rank, chosen.c.row_no).select_from(chosen.outerjoin(messages, wanted))
    query = query.order_by(chosen.c.rank, chosen.c.row_no.desc())
    return Statement(query, "query", "most", *(("stream_no",) if in_one_stream else ()))


_version = select(streams.c.version).where(streams.c.stream_no == bindparam("stream_no"))
_STATE = Statement(
    select(func.max(messages.c.row_id), reached.scalar_subquery(), _version.scalar_subquery()), "stream_no"
)


_BEHIND = Statement(
    select(*_SHOWN, messages.c.stream_no, messages.c.row_id).where(messages.c.row_id > bindparam("after")), "after"
)


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


def search(
    tx: Tx, text: str, *, stream_no: int | None, limit: int, order: Order, highlight: tuple[str, str] = ("", "")
) -> list[SearchResult]:
    """The messages of a stream (or of all) that hold all words of a text as a person typed it, best or newest first."""
    query = parse_query(text)
    if not query.phrases or limit == 0:
        return []
    results: list[SearchResult] = []
    rows = _find(tx, query, stream_no, min(limit, MOST_HITS), order)
    for message_id, session_id, role, content, created_at, _, _ in rows:
        time = tx.dialect.to_time(created_at)
        results.append(SearchResult(message_id, session_id, role, stored_text(content), time, query, highlight))
    return results


def _find(tx: Tx, query: Query, stream_no: int | None, limit: int, order: Order) -> list[Row]:
    """The rows of the messages, from the index and from what it lags behind."""
    last, checkpoint, version = tx.fetch(_STATE, (stream_no,))[0]
    if last is None or (version is None and stream_no is not None):
        return []
    if not checkpoint:
        indexed = []
    elif stream_no is None:
        index = tx.dialect.text_index(INDEX)
        hits = tx.fetch(_hits(index, order, in_one_stream=False), (index.query(query.phrases), limit))
        # A row of the index without a message is damage, which verifying tells.
        indexed = [row for row in hits if row[0] is not None]
    else:
        indexed = _find_in_stream(tx, query, stream_no, limit, order, _first_look(version, last, limit, order))
    if last <= (checkpoint or 0):
        return indexed
    # Best or newest first, as what comes from the index is.
    both = [*_find_behind(tx, query, stream_no, checkpoint or 0, order), *indexed]
    return sorted(both, key=lambda row: (row[-2], -row[-1]))[:limit]


def _find_in_stream(tx: Tx, query: Query, stream_no: int, limit: int, order: Order, first_look: int) -> list[Row]:
    """The rows of one stream by its scope, or by a look at the first hits of all streams.

    A scope is a further word, which the rank looks up in all its rows. For a stream that is much of the store this
    costs more than all else; but then enough of the first hits of all are likely to be its own.
    """
    index = tx.dialect.text_index(INDEX)
    statement = _hits(index, order, in_one_stream=True)
    if first_look:
        first = tx.fetch(statement, (index.query(query.phrases), first_look, stream_no))
        own = [row for row in first if row[0] is not None]
        if len(own) >= limit or len(first) < first_look:
            return own[:limit]
    return tx.fetch(statement, (index.query(query.phrases, stream_no), limit, stream_no))


def _find_behind(tx: Tx, query: Query, stream_no: int | None, checkpoint: int, order: Order) -> list[Row]:
    """The rows of messages that are not in the index, with the ranks that they would have in it."""
    texts = [(row, tokens) for row in tx.fetch(_BEHIND, (checkpoint,)) if (tokens := analyse(readable_text(row[3])))]
    found = [
        number
        for number, (row, tokens) in enumerate(texts)
        if stream_no in (None, row[-2]) and all(count(tokens, phrase) for phrase in query.phrases)
    ]
    ranks: Sequence[float] = [0.0] * len(texts)
    if found and order == "relevance":
        ranks = tx.dialect.text_index(INDEX).ranks_of(tx, query.phrases, [tokens for _, tokens in texts])
    return [(*texts[number][0][:-2], ranks[number], texts[number][0][-1]) for number in found]


def _first_look(version: int, position: int, limit: int, order: Order) -> int:
    """How many hits of all streams are likely to have enough of one among them; 0 when too many would be.

    The stream has so many events, and so many positions the log.
    """
    if version >= position:
        return limit
    if version * MUCH[order] >= position:
        # Twice as many as it takes when they are spread evenly.
        return int(2 * limit * position // version)
    return 0
