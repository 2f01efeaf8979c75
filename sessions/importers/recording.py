"""Writing a conversation whose records are entered in the ledger: each once, whichever files it stands in.

A conversation may be larger than memory, so it is read and written in pieces, each a transaction. The piece with its
last new message also moves the tip: whoever is killed and runs again ends with the same session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Any, Final

import msgspec

from eventstore.events import LeafSelected, MessageAppended, SessionCreated
from eventstore.heads import Head, WithMetadata
from eventstore.ports import Tx
from projections.imports import Holder, find_records, imported
from projections.paths import first_on, path_to
from projections.stored import find_message, is_spent
from sessions.appending import check_open
from sessions.arguments import checked_session_id, checked_summary
from sessions.importers.conversation import Problem, RecordedConversation, RecordedMessage, Usage
from sessions.importers.decoding import UnreadableError
from sessions.importers.naming import first_words, session_name
from sessions.importers.refusing import REFUSALS
from sessions.importers.supplementing import (
    Events,
    Late,
    Supplement,
    add_overlay,
    compaction_added,
    update_message,
    usage_added,
)
from sessions.message import accept
from sessions.store import Store

PAGE: Final = 500
"""How many messages are looked for in the ledger at a time; a transaction takes no more than these."""
PIECE_BYTES: Final = 2 << 20
"""How much JSON a transaction takes, and one message more."""
MANY: Final = 50_000
"""From so many messages on what is kept of each takes much memory, and a transaction gets a part of its bytes only."""
PART: Final = 8


class Written(msgspec.Struct, frozen=True):
    """What became of a conversation: how much of it was new, the session that it belongs to, what was left out."""

    inserted: int
    parent_session_id: str | None
    problems: tuple[Problem, ...] = ()


class _Item(msgspec.Struct, frozen=True):
    """A message that is ready to be written, with the texts of its overlays by their ids."""

    message: RecordedMessage
    json: bytes
    value: dict[str, Any]
    usage: Usage | None
    summaries: dict[str, str]


class Sharing:
    """Tells the messages of a conversation that are new from those that are held already, by this session or another.

    `elsewhere` is where the conversation comes from: the message before its first own one, if another session has it.
    """

    def __init__(self, session_id: str) -> None:
        self.elsewhere: tuple[str, str] | None = None
        self._session_id = session_id
        self._has_own = False

    def is_new(self, message: RecordedMessage, holder: str | None) -> bool:
        """Whether nobody holds a message; messages are asked for in log order."""
        if holder is None or holder == self._session_id:
            self._has_own = True
        elif not self._has_own:
            self.elsewhere = holder, message.id
        return holder is None


async def write_recorded(store: Store, conversation: RecordedConversation, *, strict: bool = False) -> Written:
    """Store what the ledger does not know yet of a conversation.

    New messages go into the conversation's own session; when it goes on where another session ends, that one is its
    parent. Nothing is created for a conversation that is known as a whole. A message that was imported before all of
    its records were there is brought up to date, unless it was edited since. What the store refuses is left out and
    told, or raised when `strict`; what hangs on it hangs on its parent.
    """
    return await _Recording(store, conversation, strict=strict).run()


class _Recording:
    def __init__(self, store: Store, conversation: RecordedConversation, *, strict: bool) -> None:
        self._store = store
        self._conversation = conversation
        self._strict = strict
        self._session_id = checked_session_id(conversation.session_id, store)
        self._sharing = Sharing(self._session_id)
        self._inserted = 0
        self._problems: list[Problem] = []
        self._supplements: list[Supplement] = []
        self._late: list[Late] = []
        self._unplaced: list[tuple[str, str]] = []

    async def run(self) -> Written:
        # One piece is written while the next is read.
        writing: asyncio.Task[None] | None = None
        latest: list[_Item] | None = None
        try:
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    if writing is not None:
                        await writing
                        writing = None
                    if latest is not None:
                        writing = asyncio.create_task(self._write(latest, is_last=False))
                    latest = piece
            if writing is not None:
                await writing
        finally:
            if writing is not None:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
        if latest is not None or not len(self._conversation.messages):
            await self._write(latest or [], is_last=True)
        for supplement in self._supplements:
            await update_message(self._store, self._conversation.format, supplement)
        for late in self._late:
            await add_overlay(self._store, self._conversation, late)
        return Written(self._inserted, self._parent_session_id(), tuple(self._problems))

    def _parent_session_id(self) -> str | None:
        elsewhere = self._sharing.elsewhere
        return self._conversation.parent_session_id or (None if elsewhere is None else elsewhere[0])

    async def _pieces(self) -> AsyncGenerator[list[_Item], None]:
        """What is new, in pieces that are never empty."""
        messages = iter(self._conversation.messages)
        while fresh := await self._next_new(messages):
            while fresh:
                if piece := await asyncio.to_thread(self._load, fresh):
                    yield piece

    async def _next_new(self, messages: Iterator[RecordedMessage]) -> deque[RecordedMessage]:
        """The new ones of the next messages, which are passed over until some are new; empty at the end."""
        name = self._conversation.format
        while page := await asyncio.to_thread(lambda: list(islice(messages, PAGE))):
            records = [record for one in page for record in (*one.records, *one.results)]
            records += [overlay.id for one in page for overlay in one.overlays]
            known = await self._store.log.read(lambda tx: find_records(tx, name, records))  # noqa: B023 - at once
            names = frozenset(known)
            fresh = deque(one for one in page if self._is_new(one, known, names))
            if fresh:
                return fresh
        return deque()

    def _is_new(self, message: RecordedMessage, known: dict[str, Holder], names: frozenset[str]) -> bool:
        holder = next((known[record] for record in message.records if record in known), None)
        if self._sharing.is_new(message, None if holder is None else holder.session_id) or holder is None:
            return True
        if not names.issuperset((*message.records, *message.results)):
            self._supplements.append(Supplement(message, holder, names))
        for overlay in message.overlays:
            if overlay.id in known:
                continue
            if holder.session_id == self._session_id:
                self._late.append(Late(overlay.id, message.id, overlay.read()))
            else:
                self._unplaced.append((overlay.id, overlay.read()))
        return False

    def _load(self, fresh: deque[RecordedMessage]) -> list[_Item]:
        """The content of the first of these messages, as much as one transaction takes."""
        items: list[_Item] = []
        size = 0
        most = PIECE_BYTES if len(self._conversation.messages) < MANY else PIECE_BYTES // PART
        while fresh and size < most:
            message = fresh.popleft()
            try:
                content = message.read(None)
                accepted = accept(content.message, self._store.limits)
                limits = self._store.limits
                summaries = {one.id: checked_summary(one.read(), self._session_id, limits) for one in message.overlays}
            except (UnreadableError, *REFUSALS) as error:
                if self._strict:
                    raise
                self._problems.append(Problem(self._conversation.file, f"message {message.id!r} refused: {error}"))
                continue
            items.append(_Item(message, accepted.json, content.message, content.usage, summaries))
            size += len(accepted.json)
        return items

    async def _write(self, items: list[_Item], *, is_last: bool) -> None:
        def decide(tx: Tx, head: Head) -> tuple[Events, int]:
            return _Piece(tx, head, self._conversation, items).events(self._created, is_last=is_last)

        committed = await self._store.log.transact(self._session_id, decide)
        self._inserted += committed.result

    def _created(self) -> SessionCreated:
        conversation, elsewhere = self._conversation, self._sharing.elsewhere
        title = conversation.title or first_words(conversation.opening or "") or conversation.source_id
        metadata: dict[str, Any] = dict(conversation.metadata)
        if elsewhere is not None:
            metadata["continues"] = {"session_id": elsewhere[0], "message_id": elsewhere[1]}
        if self._unplaced:
            metadata["summaries"] = [{"id": one, "summary": summary} for one, summary in self._unplaced]
        return SessionCreated(
            name=session_name(title, self._store.limits),
            parent_session_id=self._parent_session_id(),
            model=conversation.model,
            source=conversation.format,
            created_at=conversation.created_at,
            metadata=metadata,
        )


class _Piece:
    """The decision on some messages, made inside the write transaction."""

    def __init__(self, tx: Tx, head: Head, conversation: RecordedConversation, items: list[_Item]) -> None:
        self._tx = tx
        self._head = head
        self._conversation = conversation
        self._items = items
        # For each message that is added its root if that is added too, else the stored message that it is below.
        self._anchors: dict[str, str] = {}
        self._tip = check_open(tx, head)

    def events(self, created: Callable[[], SessionCreated], *, is_last: bool) -> tuple[Events, int]:
        name, anchors = self._conversation.format, self._anchors
        events: Events = [] if self._head.version else [created()]
        known = find_records(self._tx, name, [record for item in self._items for record in item.message.records])
        latest = None
        for item in self._items:
            message = item.message
            if any(record in known for record in message.records) or self._is_taken(message.id):
                continue
            under = self._nearest(message.parent_id)
            anchors[message.id] = message.id if under is None else anchors.get(under, under)
            latest = message.id
            appended = MessageAppended(raw=msgspec.Raw(item.json), parent_id=under)
            # What it would be decoded to again, for every projection that asks.
            vars(appended)["message"] = item.value
            events.append(WithMetadata(appended, imported(name, (*message.records, *message.results))))
            if item.usage is not None:
                events.append(usage_added(item.usage))
            for overlay_id, summary in item.summaries.items():
                first = self._root(message.id)
                events.append(compaction_added(name, overlay_id, summary, (first, message.id)))
        leaf = self._conversation.leaf_id
        if is_last and latest is not None and leaf is not None and leaf != latest and self._is_there(leaf):
            events.append(LeafSelected(message_id=leaf))
        return events, len(anchors)

    def _root(self, message_id: str) -> str:
        """The root of a message that is added."""
        anchor = self._anchors[message_id]
        if anchor in self._anchors:
            return anchor
        first = first_on(self._tx, self._head.stream_no, path_to(self._tx, self._head.stream_no, anchor) or [])
        return anchor if first is None else first.id

    def _nearest(self, parent_id: str | None) -> str | None:
        """The nearest message above that is there, to hang on; None when another session has the parent."""
        while parent_id is not None and not self._is_there(parent_id):
            holder = find_records(self._tx, self._conversation.format, [parent_id]).get(parent_id)
            if holder is not None and holder.stream_no != self._head.stream_no:
                return None
            parent_id = self._conversation.messages.parent_of(parent_id)
        return parent_id

    def _is_there(self, message_id: str) -> bool:
        if message_id in self._anchors:
            return True
        return self._head.version > 0 and find_message(self._tx, self._head.stream_no, message_id) is not None

    def _is_taken(self, message_id: str) -> bool:
        if self._is_there(message_id):
            return True
        return self._tip.spent > 0 and is_spent(self._tx, self._head.stream_no, message_id)
