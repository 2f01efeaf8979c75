"""Full-text search over messages: the text index is filled with our own tokens, and hits are read from the tree."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

import msgspec
from sqlalchemy import bindparam, select

from eventstore.envelope import Envelope
from eventstore.events import MessageAppended
from eventstore.ports import Order, Tx
from eventstore.statements import Row, Statement
from projections.analysis import REVISION, analyse, parse_query
from projections.tmp_snippet import snippet
from projections.base import Projection
from projections.message import message_text
from projections.message_tree import messages, row_of, rows_of

INDEX = "assistant_fts"
MORE_FOR_TIES = 100
"""How many hits more than asked for are ranked across sessions, so that equal ranks can be put newest first."""

_HIT = Statement(
    select(
        messages.c.id,
        messages.c.session_id,
        messages.c.role,
        messages.c.content,
        messages.c.created_at,
        messages.c.position,
    ).where(messages.c.row_id == bindparam("row_id")),
    "row_id",
)


class SearchResult(msgspec.Struct, frozen=True):
    """A message that holds what was searched for; `content` is its text and `snippet` the part around the words."""

    id: str
    session_id: str
    role: str
    content: str
    created_at: dt.datetime
    snippet: str


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
                    rows.append((row_of(envelope.stream_no, envelope.version), tokens))
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
    low, high = rows_of(stream_no)
    wanted = limit if stream_no is not None else limit + MORE_FOR_TIES
    found = tx.dialect.text_index(INDEX).match(tx, query.phrases, low, high, wanted, order)
    ranked = [(rank, -row[5], row) for row_id, rank in found for row in tx.fetch(_HIT, (row_id,))]
    if stream_no is None:
        ranked.sort(key=lambda hit: hit[:2])
    results: list[SearchResult] = []
    for _, _, (message_id, session_id, role, content, created_at, _) in ranked[:limit]:
        body = message_text(msgspec.json.decode(content))
        cut = snippet(body, query, highlight=highlight)
        results.append(SearchResult(message_id, session_id, role, body, tx.dialect.to_time(created_at), cut))
    return results
