"""An import that writes nothing and counts what would be new."""

from __future__ import annotations

import asyncio
from array import array
from itertools import islice

from projections.imports import find_records
from sessions.importers.conversation import Conversation, RecordedConversation, RecordedMessage
from sessions.importers.ids import UNKNOWN, Ids
from sessions.importers.recording import PAGE, Sharing, Written
from sessions.session import Session
from sessions.store import Store


class Rehearsal:
    """Counts what would be inserted into a store; what it has counted counts as known afterwards."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, set[str]] = {}
        self._ledgers: dict[str, _Ledger] = {}

    async def write(self, conversation: Conversation) -> int:
        """How many of the messages are new."""
        session_id = conversation.session_id
        if session_id not in self._known:
            session = Session.create(self._store).for_session(session_id)
            self._known[session_id] = {node.message.id async for node in session.tree()}
        new = {message.id for message in conversation.messages} - self._known[session_id]
        self._known[session_id] |= new
        return len(new)

    async def write_recorded(self, conversation: RecordedConversation) -> Written:
        """How many of the messages have no record that is known, and the session that the conversation belongs to."""
        name = conversation.format
        ledger = self._ledgers.setdefault(name, _Ledger())
        sharing = Sharing(conversation.session_id)
        messages = iter(conversation.messages)
        inserted = 0
        while page := await asyncio.to_thread(lambda: list(islice(messages, PAGE))):
            records = [record for one in page for record in one.records]
            stored = await self._store.log.read(lambda tx: find_records(tx, name, records))  # noqa: B023 - at once
            known = {record: holder.session_id for record, holder in stored.items()}
            for message in page:
                inserted += sharing.is_new(message, ledger.enter(message, known, conversation.session_id))
        elsewhere = sharing.elsewhere
        parent = conversation.parent_session_id or (None if elsewhere is None else elsewhere[0])
        return Written(inserted, parent)


class _Ledger:
    """The records that were counted, and the sessions that they would be in."""

    def __init__(self) -> None:
        self._records = Ids()
        self._sessions = Ids()
        self._session_of = array("i")

    def enter(self, message: RecordedMessage, stored: dict[str, str], session_id: str) -> str | None:
        """The session that holds a message; None for a new one, which the given session holds from now on."""
        holders = (stored.get(record) or self._holder(record) for record in message.records)
        holder = next((one for one in holders if one is not None), None)
        number = self._sessions.add(holder or session_id)
        for record in message.records:
            if self._records.add(record) == len(self._session_of):
                self._session_of.append(number)
        return holder

    def _holder(self, record: str) -> str | None:
        number = self._records.find(record)
        return None if number == UNKNOWN else self._sessions[self._session_of[number]]
