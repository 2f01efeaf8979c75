"""Full-text search over messages: the text index is filled with our own tokens, and hits are read from the tree.

An index row has the number of its message's row, the position in the log, and its stream for a scope.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import islice

import msgspec
from sqlalchemy import bindparam, literal, select

from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.events import (
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    SessionDeleted,
)
from eventstore.ports import Order, TextIndex, Tx
from eventstore.statements import Row, Statement
from projections.analysis import REVISION, Query, analyse, parse_query, snippet
from projections.base import Projection
from projections.message import message_text
from projections.tree_tables import messages, trees

INDEX = "assistant_fts"
PAGE_ROWS = 1_000
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


_EVERY = Statement(select(messages.c.row_id, messages.c.stream_no, messages.c.content).order_by(messages.c.row_id))
_OF_STREAM = Statement(
    select(messages.c.row_id, messages.c.content).where(messages.c.stream_no == bindparam("stream_no")), "stream_no"
)
_ROW = Statement(
    select(messages.c.row_id, messages.c.content).where(
        messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id")
    ),
    "stream_no",
    "id",
)
_VERSION = Statement(select(trees.c.version).where(trees.c.stream_no == bindparam("stream_no")), "stream_no")


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
    """The text index over the messages' text parts.

    What an edit or a deletion takes out of the index is worked out from the message's row, so this projection is
    applied before the message tree is; and it is filled from the rows.
    """

    name = "search_index"
    revision = REVISION
    handles = (MessageAppended, MessageUpdated, MessagesDeleted, MessagesCleared, SessionDeleted)

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
        """Index the messages' tokens, and take out those of texts that were replaced or deleted."""
        changes = _Changes(tx)
        for envelope in envelopes:
            changes.apply(envelope)
        changes.write()

    def fill(self, tx: Tx) -> None:
        """Index every message that has a row."""
        index = tx.dialect.text_index(INDEX)
        texts = ((row_id, _text(content), no) for row_id, no, content in tx.iterate(_EVERY))
        while page := list(islice(texts, PAGE_ROWS)):
            index.add(tx, [(row_id, tokens, no) for row_id, text, no in page if (tokens := analyse(text))])

    def dump(self, tx: Tx, stream_no: int | None = None) -> Iterator[Row]:
        """Every token of the index with its place, in order; nothing for one stream, since the index knows none."""
        if stream_no is None:
            for token, row_id, column, place in tx.dialect.text_index(INDEX).terms(tx):
                yield (INDEX, row_id, column, place, token)


class _Entry(msgspec.Struct):
    """What the index holds of a row before a group, and after it; None for nothing."""

    before: str | None
    after: str | None
    stream_no: int


class _Changes:
    """What a group of events changes in the index: only what is left of it in the end is written."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._versions: dict[int, int] = {}
        self._entries: dict[int, _Entry] = {}
        self._rows: dict[tuple[int, str], int] = {}
        self._cleared: set[int] = set()

    def apply(self, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        if envelope.version <= self._version(stream_no):
            return
        if isinstance(event, MessageAppended):
            self._rows[stream_no, event.message["id"]] = envelope.position
            self._entries[envelope.position] = _Entry(None, message_text(event.message), stream_no)
        elif isinstance(event, MessageUpdated):
            self._entry(stream_no, event.message["id"]).after = message_text(event.message)
        elif isinstance(event, MessagesDeleted):
            for message_id in event.message_ids:
                self._entry(stream_no, message_id).after = None
        elif isinstance(event, MessagesCleared | SessionDeleted):
            self._clear(stream_no)

    def write(self) -> None:
        changed = [(row_id, entry) for row_id, entry in sorted(self._entries.items()) if entry.before != entry.after]
        index = self._tx.dialect.text_index(INDEX)
        index.remove(self._tx, _with_tokens((row_id, entry.before, entry.stream_no) for row_id, entry in changed))
        index.add(self._tx, _with_tokens((row_id, entry.after, entry.stream_no) for row_id, entry in changed))

    def _clear(self, stream_no: int) -> None:
        """Take out all rows of a stream, page by page, and drop what else this group was about to do to them."""
        rows = iter(()) if stream_no in self._cleared else self._tx.iterate(_OF_STREAM, (stream_no,))
        index = self._tx.dialect.text_index(INDEX)
        while page := list(islice(rows, PAGE_ROWS)):
            known = ((row_id, self._entries.pop(row_id, None), content) for row_id, content in page)
            held = ((row_id, entry.before if entry else _text(content), stream_no) for row_id, entry, content in known)
            index.remove(self._tx, _with_tokens(held))
        self._cleared.add(stream_no)
        self._entries = {row_id: entry for row_id, entry in self._entries.items() if entry.stream_no != stream_no}
        self._rows = {key: row for key, row in self._rows.items() if key[0] != stream_no}

    def _version(self, stream_no: int) -> int:
        version = self._versions.get(stream_no)
        if version is None:
            rows = self._tx.fetch(_VERSION, (stream_no,))
            version = self._versions[stream_no] = rows[0][0] if rows else 0
        return version

    def _entry(self, stream_no: int, message_id: str) -> _Entry:
        row_id = self._rows.get((stream_no, message_id))
        if row_id is None:
            row_id, content = self._tx.fetch(_ROW, (stream_no, message_id))[0]
            self._rows[stream_no, message_id] = row_id
            text = _text(content)
            self._entries[row_id] = _Entry(text, text, stream_no)
        return self._entries[row_id]


def _text(content: str) -> str:
    return message_text(decode_json(content))


def _with_tokens(rows: Iterable[tuple[int, str | None, int]]) -> list[tuple[int, list[str], int]]:
    return [(row_id, tokens, stream_no) for row_id, text, stream_no in rows if text and (tokens := analyse(text))]


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
