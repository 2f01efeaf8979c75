"""The text index over messages, filled with our own tokens.

An index row has the number of its message's row, the position in the log, and its stream for a scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from sqlalchemy import bindparam, select

from eventstore.envelope import Envelope
from eventstore.events import (
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    SessionDeleted,
)
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from projections.analysis import REVISION, with_tokens
from projections.base import Projection
from projections.message import message_text, stored_text
from projections.stored import tree_of
from projections.tree_tables import messages

INDEX = "assistant_fts"
PAGE_ROWS = 1_000
PAGE_CHARACTERS = 1 << 20

Text = tuple[int, str | None, int]
"""A row's number, its text and its stream."""


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
        tx.dialect.text_index(INDEX).maintain(tx, envelopes[0].position, envelopes[-1].position)

    def fill(self, tx: Tx) -> None:
        """Index every message that has a row."""
        index = tx.dialect.text_index(INDEX)
        for page in _pages((row_id, stored_text(content), no) for row_id, no, content in tx.iterate(_EVERY)):
            index.add(tx, with_tokens(page))
            index.maintain(tx, page[0][0], page[-1][0])

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
        for page in _pages((row_id, entry.before, entry.stream_no) for row_id, entry in changed):
            index.remove(self._tx, with_tokens(page))
        for page in _pages((row_id, entry.after, entry.stream_no) for row_id, entry in changed):
            index.add(self._tx, with_tokens(page))

    def _clear(self, stream_no: int) -> None:
        """Take out all rows of a stream, page by page, and drop what else this group was about to do to them."""
        index = self._tx.dialect.text_index(INDEX)
        for page in _pages(self._held(stream_no) if stream_no not in self._cleared else ()):
            index.remove(self._tx, with_tokens(page))
        self._cleared.add(stream_no)
        self._entries = {row_id: entry for row_id, entry in self._entries.items() if entry.stream_no != stream_no}
        self._rows = {key: row for key, row in self._rows.items() if key[0] != stream_no}

    def _held(self, stream_no: int) -> Iterator[Text]:
        for row_id, content in self._tx.iterate(_OF_STREAM, (stream_no,)):
            entry = self._entries.pop(row_id, None)
            yield row_id, entry.before if entry else stored_text(content), stream_no

    def _version(self, stream_no: int) -> int:
        version = self._versions.get(stream_no)
        if version is None:
            version = self._versions[stream_no] = tree_of(self._tx, stream_no).version
        return version

    def _entry(self, stream_no: int, message_id: str) -> _Entry:
        row_id = self._rows.get((stream_no, message_id))
        if row_id is None:
            row_id, content = self._tx.fetch(_ROW, (stream_no, message_id))[0]
            self._rows[stream_no, message_id] = row_id
            text = stored_text(content)
            self._entries[row_id] = _Entry(text, text, stream_no)
        return self._entries[row_id]


def _pages(texts: Iterable[Text]) -> Iterator[list[Text]]:
    """The texts in lists that are bounded in their length: tokens take many times the room of their text."""
    page: list[Text] = []
    size = 0
    for text in texts:
        page.append(text)
        size += len(text[1] or "")
        if size >= PAGE_CHARACTERS or len(page) >= PAGE_ROWS:
            yield page
            page, size = [], 0
    if page:
        yield page
