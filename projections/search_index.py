"""Full-text search over messages: the text index is filled with our own tokens, and hits are read from the tree.

An index row is numbered by its message's stream and version: a session is a range of rows, newest last.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

import msgspec
from sqlalchemy import bindparam, select

from eventstore.envelope import Envelope
from eventstore.events import MessageAppended
from eventstore.ports import Order, Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events
from projections.analysis import REVISION, analyse, parse_query
from projections.tmp_snippet import snippet
from projections.base import Projection
from projections.message import message_text
from projections.message_tree import messages

INDEX = "assistant_fts"
VERSION_BITS = 32
MORE_FOR_TIES = 100
"""How many hits more than asked for are ranked across sessions, so that equal ranks can be put newest first."""

MOST_HITS = 1 << 40
"""More than any store holds, and a number that every engine takes as a limit."""

_HIT = Statement(
    select(
        messages.c.id,
        messages.c.session_id,
        messages.c.role,
        messages.c.content,
        messages.c.created_at,
        messages.c.row_id,
    )
    .join_from(events, messages, messages.c.row_id == events.c.position)
    .where(events.c.stream_no == bindparam("stream_no"), events.c.version == bindparam("version")),
    "stream_no",
    "version",
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
    low, high = (0, (1 << 63) - 1) if stream_no is None else (_index_row(stream_no, 0), _index_row(stream_no + 1, 0) - 1)
    wanted = limit if stream_no is not None else limit + MORE_FOR_TIES
    found = tx.dialect.text_index(INDEX).match(tx, query.phrases, low, high, wanted, order)
    ranked = [(rank, -row[5], row) for row_id, rank in found for row in tx.fetch(_HIT, _message_of(row_id))]
    if stream_no is None:
        ranked.sort(key=lambda hit: hit[:2])
    results: list[SearchResult] = []
    for _, _, (message_id, session_id, role, content, created_at, _) in ranked[:limit]:
        body = message_text(msgspec.json.decode(content))
        cut = snippet(body, query, highlight=highlight)
        results.append(SearchResult(message_id, session_id, role, body, tx.dialect.to_time(created_at), cut))
    return results


def _index_row(stream_no: int, version: int) -> int:
    return stream_no << VERSION_BITS | version


def _message_of(index_row: int) -> tuple[int, int]:
    """The stream and the version that an index row stands for."""
    return index_row >> VERSION_BITS, index_row & (1 << VERSION_BITS) - 1
