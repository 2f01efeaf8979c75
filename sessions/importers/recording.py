"""Writing a conversation whose records are entered in the ledger: each once, whichever files it stands in.

A conversation may be larger than memory, so it is read and written in pieces, each a transaction. The piece with its
last new message also moves the tip: whoever is killed and runs again ends with the same session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Any, Final

from eventstore.errors import told
from eventstore.events import SessionCreated
from eventstore.heads import Head
from eventstore.limits import check_id
from eventstore.ports import Tx
from projections.imports import Holder, find_records
from sessions.arguments import checked_session_id, checked_summary
from sessions.importers.beginning import session_created
from sessions.importers.conversation import (
    Overlay,
    Problem,
    RecordedConversation,
    RecordedMessage,
    problem_of,
)
from sessions.importers.decoding import UnreadableError
from sessions.importers.naming import first_words
from sessions.importers.piece import Item, Piece
from sessions.importers.refusing import REFUSALS
from sessions.importers.report import Written
from sessions.importers.supplementing import (
    AddOverlay,
    CompleteMessage,
    Events,
    Late,
    Supplement,
    check_beside,
    complete,
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
    return await Recording(store, conversation, strict=strict).run()


class Recording:
    """One conversation on its way into a store; what a dry run does otherwise are methods of their own."""

    def __init__(self, store: Store, conversation: RecordedConversation, *, strict: bool) -> None:
        self._store = store
        self._conversation = conversation
        self._strict = strict
        self._session_id = checked_session_id(conversation.session_id, store)
        self._sharing = Sharing(self._session_id)
        self._inserted = self._left_out = 0
        self._problems: list[Problem] = []
        self._supplements: list[Supplement] = []
        self._late: list[Late] = []
        self._unplaced: list[tuple[str, str]] = []

    async def run(self) -> Written:
        """Read and write all of it."""
        # One piece is written while the next is read.
        writing: asyncio.Task[None] | None = None
        latest: list[Item] | None = None
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
            await self._try(f"message {told(supplement.message.id)}", self._update(supplement))
        for late in self._late:
            self._left_out += not await self._try(_of(late.overlay), self._add(late))
        return Written(self._inserted, self._parent_session_id(), tuple(self._problems), self._left_out)

    async def known(self, records: list[str]) -> dict[str, Holder]:
        """Which of these records are held, and by which session."""
        return await self._store.log.read(lambda tx: find_records(tx, self._conversation.format, records))

    async def write(self, items: list[Item], *, is_last: bool) -> int:
        """Write messages, and tell how many of them were still new."""

        def decide(tx: Tx, head: Head) -> tuple[Events, int]:
            return Piece(tx, head, self._conversation, items).events(self.created, is_last=is_last)

        return int((await self._store.log.transact(self._session_id, decide)).result)

    async def update(self, completed: CompleteMessage) -> None:
        """Bring a message up to date where it is."""
        await self._store.log.transact(completed.session_id, completed)

    async def add(self, overlay: AddOverlay) -> None:
        """Let a summary stand for the path to a message; raises InvalidCompactionError."""
        await self._store.log.transact(self._session_id, overlay)

    async def _try(self, what: str, doing: Awaitable[None]) -> bool:
        """Whether something could be done; what the store refuses is told, or raised when strict."""
        try:
            await doing
        except (UnreadableError, *REFUSALS) as error:
            self._refuse(what, error)
            return False
        return True

    def _refuse(self, what: str, error: Exception) -> None:
        if self._strict:
            raise error
        self._problems.append(problem_of(self._conversation, f"{what} refused: {error}"))

    async def _update(self, supplement: Supplement) -> None:
        name, limits = self._conversation.format, self._store.limits
        await self.update(await asyncio.to_thread(complete, name, supplement, limits))

    async def _add(self, late: Late) -> None:
        summary = await asyncio.to_thread(self._summary, late.overlay)
        await self.add(AddOverlay(self._conversation.format, late.overlay.id, late.to_message_id, summary))

    def _summary(self, overlay: Overlay) -> str:
        check_id(overlay.id, "id", self._store.limits)
        return checked_summary(overlay.read(), self._session_id, self._store.limits)

    def _parent_session_id(self) -> str | None:
        elsewhere = self._sharing.elsewhere
        return self._conversation.parent_session_id or (None if elsewhere is None else elsewhere[0])

    async def _pieces(self) -> AsyncGenerator[list[Item], None]:
        """What is new, in pieces that are never empty."""
        messages = iter(self._conversation.messages)
        while fresh := await self._next_new(messages):
            while fresh:
                if piece := await asyncio.to_thread(self._load, fresh):
                    yield piece

    async def _next_new(self, messages: Iterator[RecordedMessage]) -> deque[RecordedMessage]:
        """The new ones of the next messages, which are passed over until some are new; empty at the end."""
        while page := await asyncio.to_thread(lambda: list(islice(messages, PAGE))):
            records = [record for one in page for record in (*one.records, *one.results)]
            records += [overlay.id for one in page for overlay in one.overlays]
            known = await self.known(records)
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
                self._late.append(Late(overlay, message.id))
            else:
                self._unplaced.append((overlay.id, overlay.read()))
        return False

    def _load(self, fresh: deque[RecordedMessage]) -> list[Item]:
        """The content of the first of these messages, as much as one transaction takes."""
        items: list[Item] = []
        size = 0
        most = PIECE_BYTES if len(self._conversation.messages) < MANY else PIECE_BYTES // PART
        while fresh and size < most:
            message = fresh.popleft()
            try:
                content = message.read(None)
                accepted = accept(content.message, self._store.limits)
                check_beside(message, content, self._store.limits)
            except (UnreadableError, *REFUSALS) as error:
                self._refuse(f"message {told(message.id)}", error)
                self._left_out += len(message.overlays)
                continue
            summaries: dict[str, str] = {}
            for overlay in message.overlays:
                try:
                    summaries[overlay.id] = self._summary(overlay)
                except (UnreadableError, *REFUSALS) as error:
                    self._refuse(_of(overlay), error)
                    self._left_out += 1
            items.append(Item(message, accepted.json, content.message, content.usage, summaries))
            size += len(accepted.json)
        return items

    async def _write(self, items: list[Item], *, is_last: bool) -> None:
        self._inserted += await self.write(items, is_last=is_last)

    def created(self) -> SessionCreated:
        """The event that the session begins with."""
        conversation, elsewhere = self._conversation, self._sharing.elsewhere
        title = conversation.title or first_words(conversation.opening or "") or conversation.source_id
        metadata: dict[str, Any] = dict(conversation.metadata)
        if elsewhere is not None:
            metadata["continues"] = {"session_id": elsewhere[0], "message_id": elsewhere[1]}
        if self._unplaced:
            metadata["summaries"] = [{"id": one, "summary": summary} for one, summary in self._unplaced]
        parent = self._parent_session_id()
        return session_created(self._store, conversation, title, parent_session_id=parent, metadata=metadata)


def _of(overlay: Overlay) -> str:
    return f"compaction {told(overlay.id)}"
