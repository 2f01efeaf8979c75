"""The text index over messages, filled with our own tokens.

An index row has the number of its message's row, the position in the log, and its stream for a scope. New messages
are indexed many at a time: a row written alone costs as much as all else that an append writes. So the index has a
checkpoint, the row up to which every message is in it, and a search looks through what is behind that by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge

import msgspec
from sqlalchemy import BigInteger, Column, Integer, Table, bindparam, delete, func, insert, select

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
from eventstore.tables import metadata
from projections.analysis import REVISION, with_tokens
from projections.base import Projection
from projections.message import message_text, readable_text
from projections.stored import tree_of
from projections.tree_tables import messages

INDEX = "assistant_fts"
PAGE_ROWS = 1_000
PAGE_CHARACTERS = 1 << 20
MOST_BEHIND = 256
"""Messages that may be behind the checkpoint before they are indexed."""
MOST_BYTES_BEHIND = 128 << 10
"""Bytes of messages that may be behind it."""

Text = tuple[int, str | None, int]
"""A row's number, its text and its stream."""

checkpoints = Table(
    "search_checkpoint",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("row_id", BigInteger, nullable=False),
)

_BEHIND = Statement(
    select(messages.c.row_id, messages.c.stream_no, messages.c.content)
    .where(messages.c.row_id > bindparam("after"))
    .order_by(messages.c.row_id),
    "after",
)
_SIZE = Statement(
    select(func.count(), func.coalesce(func.sum(messages.c.bytes), 0)).where(messages.c.row_id > bindparam("after")),
    "after",
)
reached = select(checkpoints.c.row_id).where(checkpoints.c.id == 1)
"""The row up to which every message is in the index; no row while none is."""
_CHECKPOINT = Statement(reached)
_FORGET = Statement(delete(checkpoints))
_SET = Statement(insert(checkpoints), "id", "row_id")
_OF_STREAM = Statement(
    select(messages.c.row_id, messages.c.content).where(
        messages.c.stream_no == bindparam("stream_no"), messages.c.row_id <= bindparam("until")
    ),
    "stream_no",
    "until",
)
_ROW = Statement(
    select(messages.c.row_id, messages.c.content).where(
        messages.c.stream_no == bindparam("stream_no"),
        messages.c.id == bindparam("id"),
        messages.c.row_id <= bindparam("until"),
    ),
    "stream_no",
    "id",
    "until",
)


class SearchIndex(Projection):
    """The text index over the messages' text parts.

    What an edit or a deletion takes out of the index is worked out from the message's row, so this projection is
    applied before the message tree is; and it is filled from the rows.
    """

    name = "search_index"
    # The second shape of its tables, whatever the analysis is at.
    revision = REVISION + 1
    handles = (MessageAppended, MessageUpdated, MessagesDeleted, MessagesCleared, SessionDeleted)
    tables = (checkpoints,)

    def create(self, tx: Tx) -> None:
        """Create the text index."""
        tx.dialect.text_index(INDEX).create(tx)
        super().create(tx)

    def drop(self, tx: Tx) -> None:
        """Drop the text index."""
        tx.dialect.text_index(INDEX).drop(tx)
        super().drop(tx)

    def reset(self, tx: Tx) -> None:
        """Empty the text index."""
        tx.dialect.text_index(INDEX).clear(tx)
        super().reset(tx)
        tx.memo.pop(_Lag, None)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Take the tokens of texts that were replaced or deleted out of the index, and count what it lags behind."""
        lag = _Lag.of(tx)
        changes = _Changes(tx, lag.checkpoint)
        for envelope in envelopes:
            event = envelope.event
            if isinstance(event, MessageAppended):
                lag.append(envelope, event)
            else:
                lag.change(event)
                changes.apply(envelope)
        changes.write()

    def due(self, tx: Tx) -> int:
        """The bytes behind the checkpoint, once there are so many messages or so much text that it is worth it."""
        lag = _Lag.of(tx)
        return lag.bytes if lag.messages >= MOST_BEHIND or lag.bytes >= MOST_BYTES_BEHIND else 0

    def catch_up(self, tx: Tx) -> None:
        """Index what is behind the checkpoint."""
        lag = _Lag.of(tx)
        _index(tx, lag.checkpoint, _behind(tx, lag.checkpoint) if lag.texts is None else lag.texts)

    def fill(self, tx: Tx) -> None:
        """Index every message behind the checkpoint."""
        checkpoint = _checkpoint(tx)
        _index(tx, checkpoint, _behind(tx, checkpoint))

    def dump(self, tx: Tx, stream_no: int | None = None) -> Iterator[Row]:
        """Every token with its place, in order, of the index as it is when it has caught up.

        Nothing for one stream, since the index knows none.
        """
        if stream_no is not None:
            return
        index = tx.dialect.text_index(INDEX)
        pages = _pages(_behind(tx, _checkpoint(tx)))
        behind = (term for page in pages for term in index.terms_of(with_tokens(page)))
        for token, row_id, column, place in merge(index.terms(tx), sorted(behind)):
            yield (INDEX, row_id, column, place, token)


class _Lag(msgspec.Struct):
    """The row up to which the index has every message, and how much is behind it.

    `texts` is what is behind it, as long as this process has appended all of that and changed none since: reading it
    from the tables again costs as much as indexing it.
    """

    checkpoint: int
    messages: int = 0
    bytes: int = 0
    texts: list[Text] | None = None

    @staticmethod
    def of(tx: Tx) -> _Lag:
        """What this transaction knows of it, or reads."""
        lag: _Lag | None = tx.memo.get(_Lag)
        if lag is None:
            checkpoint = _checkpoint(tx)
            size, length = tx.fetch(_SIZE, (checkpoint,))[0]
            lag = tx.memo[_Lag] = _Lag(checkpoint, size, length, None if size else [])
        return lag

    def append(self, envelope: Envelope, event: MessageAppended) -> None:
        """Note a message that was appended, unless it is indexed; one that comes again is counted twice, no harm."""
        if envelope.position <= self.checkpoint:
            return
        self.messages += 1
        self.bytes += len(bytes(event.raw))
        if self.texts is not None and (not self.texts or self.texts[-1][0] < envelope.position):
            self.texts.append((envelope.position, message_text(event.message), envelope.stream_no))

    def change(self, event: object) -> None:
        """Note that a message was changed: it may be one that is behind, which may then be longer."""
        self.texts = None
        if isinstance(event, MessageUpdated):
            self.bytes += len(bytes(event.raw))


def _behind(tx: Tx, checkpoint: int) -> Iterator[Text]:
    """What is behind the checkpoint, from the tables."""
    return ((row_id, readable_text(content), no) for row_id, no, content in tx.iterate(_BEHIND, (checkpoint,)))


def _index(tx: Tx, checkpoint: int, behind: Iterable[Text]) -> None:
    """Index the texts behind the checkpoint, and move it."""
    index, last = tx.dialect.text_index(INDEX), checkpoint
    for page in _pages(behind):
        index.add(tx, with_tokens(page))
        index.maintain(tx, last + 1, page[-1][0])
        last = page[-1][0]
    tx.execute(_FORGET)
    tx.execute(_SET, (1, last))
    tx.memo[_Lag] = _Lag(last, texts=[])


def _checkpoint(tx: Tx) -> int:
    rows = tx.fetch(_CHECKPOINT)
    return rows[0][0] if rows else 0


class _Entry(msgspec.Struct):
    """What the index holds of a row before a group, and after it; None for nothing."""

    before: str
    after: str | None
    stream_no: int


class _Changes:
    """What a group of events changes of messages that are in the index: only what is left of it in the end is written.

    The index holds the rows up to the checkpoint.
    """

    def __init__(self, tx: Tx, checkpoint: int) -> None:
        self._tx = tx
        self._checkpoint = checkpoint
        self._positions: dict[int, int] = {}
        self._entries: dict[int, _Entry] = {}
        self._rows: dict[tuple[int, str], int] = {}
        self._cleared: set[int] = set()

    def apply(self, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        if envelope.position <= self._position(stream_no) or stream_no in self._cleared:
            return
        if isinstance(event, MessageUpdated):
            self._change(stream_no, event.message["id"], message_text(event.message))
        elif isinstance(event, MessagesDeleted):
            for message_id in event.message_ids:
                self._change(stream_no, message_id, None)
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
        for page in _pages(self._held(stream_no)):
            index.remove(self._tx, with_tokens(page))
        # All that comes after in this group is about messages behind the checkpoint.
        self._cleared.add(stream_no)

    def _held(self, stream_no: int) -> Iterator[Text]:
        for row_id, content in self._tx.iterate(_OF_STREAM, (stream_no, self._checkpoint)):
            entry = self._entries.pop(row_id, None)
            yield row_id, entry.before if entry else readable_text(content), stream_no

    def _position(self, stream_no: int) -> int:
        position = self._positions.get(stream_no)
        if position is None:
            position = self._positions[stream_no] = tree_of(self._tx, stream_no).position
        return position

    def _change(self, stream_no: int, message_id: str, text: str | None) -> None:
        """Note what becomes of a message's text, if the index has it."""
        if (stream_no, message_id) not in self._rows:
            rows = self._tx.fetch(_ROW, (stream_no, message_id, self._checkpoint))
            if not rows:
                return
            row_id, content = rows[0]
            self._rows[stream_no, message_id] = row_id
            self._entries[row_id] = _Entry(readable_text(content), None, stream_no)
        self._entries[self._rows[stream_no, message_id]].after = text


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
