"""An import that writes nothing: everything is read, checked and decided as for one that does, and counted."""

from __future__ import annotations

from array import array

from eventstore.envelope import NO_HASH
from eventstore.heads import Head
from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections.imports import Holder
from sessions.importers.conversation import Conversation, RecordedConversation, RecordedMessage
from sessions.importers.ids import UNKNOWN, Ids
from sessions.importers.piece import Item, Piece
from sessions.importers.recording import Recording
from sessions.importers.report import Written
from sessions.importers.supplementing import AddOverlay, CompleteMessage
from sessions.importers.writing import NOTHING, Added, WriteConversation
from sessions.store import Store


class Rehearsal:
    """Counts what would be inserted into a store; what it has counted counts as stored afterwards."""

    def __init__(self, store: Store, *, strict: bool) -> None:
        self._store = store
        self._strict = strict
        self._added: dict[str, Added] = {}
        self._ledgers: dict[str, _Ledger] = {}

    async def write(self, conversation: Conversation) -> Written:
        """What `write_conversation` would make of a conversation."""
        before = self._added.get(conversation.session_id, NOTHING)
        writing = WriteConversation(self._store, conversation, strict=self._strict, before=before)
        added = await self._store.log.read(lambda tx: writing(tx, _head_of(tx, writing.session_id))[1])
        self._added[conversation.session_id] = added
        return writing.written(added)

    async def write_recorded(self, conversation: RecordedConversation) -> Written:
        """What `write_recorded` would make of a conversation."""
        ledger = self._ledgers.setdefault(conversation.format, _Ledger())
        return await _Rehearsed(self._store, conversation, ledger, strict=self._strict).run()


class _Rehearsed(Recording):
    """A conversation whose messages go into a ledger that is kept in memory."""

    def __init__(self, store: Store, conversation: RecordedConversation, ledger: _Ledger, *, strict: bool) -> None:
        super().__init__(store, conversation, strict=strict)
        self._ledger = ledger

    async def known(self, records: list[str]) -> dict[str, Holder]:
        """Which of these records are held, and by which session."""
        counted = {record: Holder(0, held) for record in records if (held := self._ledger.holder(record)) is not None}
        return counted | await super().known(records)

    async def write(self, items: list[Item], *, is_last: bool) -> int:  # noqa: ARG002 - the tip is nobody's concern
        """Count messages, of which some may be known by now."""
        fresh = [one for one in items if not self._is_counted(one.message)]
        new = await self._store.log.read(lambda tx: self._new(tx, fresh))
        self._ledger.begin(self._session_id)
        count = 0
        for item in new:
            # Two of them may have the same id.
            if not self._is_counted(item.message):
                self._ledger.enter(item, self._session_id)
                count += 1
        return count

    async def update(self, completed: CompleteMessage) -> None:
        """Know the records that come to a message, if they do; to one that was counted they do."""
        if await self.known(completed.new):
            return
        session_id, message_id = completed.session_id, completed.message_id
        if not self._ledger.has_message(session_id, message_id):
            events, _ = await self._store.log.read(lambda tx: completed(tx, _head_of(tx, session_id)))
            if not events:
                return
        self._ledger.complete(message_id, completed.new, session_id)

    async def add(self, overlay: AddOverlay) -> None:
        """See whether a summary has its place."""
        if not self._ledger.has_message(self._session_id, overlay.to_message_id):
            await self._store.log.read(lambda tx: overlay(tx, _head_of(tx, self._session_id)))
        self._ledger.add([overlay.id], self._session_id)

    def _new(self, tx: Tx, items: list[Item]) -> list[Item]:
        head = _head_of(tx, self._session_id)
        new = list(Piece(tx, head, self._conversation, items).new())
        if not (head.version or self._ledger.has_session(self._session_id)):
            self.created()
        return new

    def _is_counted(self, message: RecordedMessage) -> bool:
        is_known = any(self._ledger.holder(record) is not None for record in message.records)
        return is_known or self._ledger.has_message(self._session_id, message.id)


class _Ledger:
    """The records that were counted, the sessions that they would be in, and the ids of the messages there."""

    def __init__(self) -> None:
        self._records = Ids()
        self._sessions = Ids()
        self._session_of = array("i")
        # A message mostly has the id of one of its records.
        self._is_id = bytearray()
        self._other_ids: set[tuple[str, str]] = set()

    def begin(self, session_id: str) -> int:
        """Have a session, and tell its number."""
        return self._sessions.add(session_id)

    def has_session(self, session_id: str) -> bool:
        """Whether a session was begun."""
        return self._sessions.find(session_id) != UNKNOWN

    def holder(self, record: str) -> str | None:
        """The session that holds a record."""
        number = self._records.find(record)
        return None if number == UNKNOWN else self._sessions[self._session_of[number]]

    def has_message(self, session_id: str, message_id: str) -> bool:
        """Whether a session has a message with an id."""
        number = self._records.find(message_id)
        if number != UNKNOWN and self._is_id[number] and self.holder(message_id) == session_id:
            return True
        return (session_id, message_id) in self._other_ids

    def enter(self, item: Item, session_id: str) -> None:
        """Have a session hold a message and its summaries."""
        message = item.message
        self.add([*message.records, *message.results, *item.summaries], session_id)
        number = self._records.find(message.id)
        if message.id in message.records and self._session_of[number] == self._sessions.find(session_id):
            self._is_id[number] = 1
        else:
            self._other_ids.add((session_id, message.id))

    def complete(self, message_id: str, records: list[str], session_id: str) -> None:
        """Have a message that a session holds be made of more records, and count as if it had been counted here."""
        if not self.has_message(session_id, message_id):
            self._other_ids.add((session_id, message_id))
        self.add(records, session_id)

    def add(self, records: list[str], session_id: str) -> None:
        """Have a session hold records, but for those that another holds."""
        session = self.begin(session_id)
        for record in records:
            if self._records.add(record) == len(self._session_of):
                self._session_of.append(session)
                self._is_id.append(0)


def _head_of(tx: Tx, stream_id: str) -> Head:
    """Where a stream stands, for a decision that nothing comes of."""
    stream_no, version = find_stream(tx, stream_id)
    return Head(stream_id, stream_no, version, NO_HASH, 0, version)
