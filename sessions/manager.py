"""Many sessions of one store: create, find, list, fork, split, delete, search across."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from eventstore.errors import InvalidArgumentError, SessionStartedError
from eventstore.events import SessionCreated, SessionRenamed, UsageAdded
from eventstore.heads import Committed
from eventstore.ids import new_id
from eventstore.log import BESIDE
from eventstore.ports import Publisher
from eventstore.rows import high_water
from projections.compactions import Compaction
from projections.directory import SessionInfo, find_session, list_sessions
from projections.search import SearchResult, search
from sessions.appending import AUTO, AppendResult, Parent
from sessions.arguments import Given, check_count, check_search, checked_session_id, checked_store, checked_summary
from sessions.compaction_function import CompactFunction, SessionCounter
from sessions.history_search import DESCRIPTION, HistorySearch, session_search
from sessions.managing import CreateSession, ForkSession, SplitSession, Tell, delete_session
from sessions.message import Message, checked_title, lookup_id
from sessions.session import Session
from sessions.store import Store
from sessions.tools import Tool

ALL = 1 << 62


class SessionPage(list[SessionInfo]):
    """Some sessions, and the cursor that the next page comes after: None when there are no more."""

    def __init__(self, sessions: Sequence[SessionInfo], next_cursor: str | None) -> None:
        super().__init__(sessions)
        self.next_cursor = next_cursor

    def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Any, ...]:
        """Copies and pickles are made of both."""
        return SessionPage, (builtins.list(self), self.next_cursor)


class SessionManager:
    """The sessions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = checked_store(store)
        self._template: builtins.list[Callable[[Session], object]] = []
        self._is_used = False

    def with_context(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: Any = None,
        when_changed: str | None = None,
    ) -> SessionManager:
        """Give every session a block of context, as `Session.with_context` does; they share the provider."""
        about: dict[str, Any] = {"description": description, "max_tokens": max_tokens, "provider": provider}
        return self._with("with_context", lambda to: to.with_context(label, **about, when_changed=when_changed))

    def with_cached_prompt(self, provider: Any = None) -> SessionManager:
        """Have every session keep its frozen prompt; a provider is shared by all of them."""
        return self._with("with_cached_prompt", lambda to: to.with_cached_prompt(provider))

    def on_compaction(self, function: CompactFunction) -> SessionManager:
        """Have every session compact by this function, as `Session.on_compaction` does."""
        return self._with("on_compaction", lambda to: to.on_compaction(function))

    def compact_after(self, n: int, *, token_counter: SessionCounter | None = None) -> SessionManager:
        """Have every session compact after an append that makes its view come to more than `n` tokens."""
        return self._with("compact_after", lambda to: to.compact_after(n, token_counter=token_counter))

    def on_compaction_error(self, function: Callable[[Exception], Any]) -> SessionManager:
        """Have this called with what went wrong when a compaction after an append failed, in whatever session."""
        return self._with("on_compaction_error", lambda to: to.on_compaction_error(function))

    def with_publisher(self, publisher: Publisher) -> SessionManager:
        """Give a publisher the live status of every session, as `Session.with_publisher` does."""
        return self._with("with_publisher", lambda to: to.with_publisher(publisher))

    def with_searchable_history(self, label: str) -> SessionManager:
        """Give every session a block in which the messages of all sessions can be searched."""
        history = HistorySearch(self._store)
        return self.with_context(label, description=DESCRIPTION, provider=history)

    async def tools(self) -> dict[str, Tool]:
        """The tool `session_search`, by its name: it searches the messages of all sessions."""
        tool = session_search(self._store)
        return {tool.name: tool}

    def get_session(self, session_id: str) -> Session:
        """The session with this id, whether or not anything is stored of it yet."""
        self._is_used = True
        return self._made().for_session(session_id)

    async def create(
        self,
        name: str,
        *,
        id: str | None = None,
        parent_session_id: str | None = None,
        model: str | None = None,
        source: str | None = None,
    ) -> SessionInfo:
        """Create a session, under a new id unless one is given.

        Raises SessionExistsError for an id in use and SessionDeletedError for the id of a deleted session.
        """
        store, limits = self._store, self._store.limits
        session_id = checked_session_id(new_id() if id is None else id, store)
        parent = parent_session_id
        if parent is not None:
            parent = checked_session_id(parent, store, "parent_session_id")
        created = SessionCreated(
            name=checked_title(name, "name", limits),
            parent_session_id=parent,
            model=None if model is None else checked_title(model, "model", limits),
            source=None if source is None else checked_title(source, "source", limits),
        )
        return _begun(await store.log.transact(session_id, CreateSession(created), size=BESIDE))

    async def get(self, session_id: str) -> SessionInfo | None:
        """What is known of a session; None when there is none with this id."""
        wanted = lookup_id(session_id, "session_id")
        return await self._store.log.read(lambda tx: find_session(tx, wanted))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> SessionPage:
        """The sessions, the one with the newest event first; with a limit a page of them and the cursor of the next.

        A walk over pages shows every session once that there was when it began, in the order as of then, with what is
        known of each when its page is read. Raises InvalidArgumentError for a limit below 1 and for a foreign cursor.
        """
        if limit is not None:
            check_count(limit, "limit", least=1)
        walk, before = (None, ALL) if cursor is None else _read_cursor(cursor)
        most = ALL if limit is None else min(limit, ALL)

        def query(tx: Any) -> SessionPage:
            begun = high_water(tx) if walk is None else walk
            found = list_sessions(tx, walk=begun, before=before, most=most + 1)
            page = found[:most]
            more = len(found) > most
            return SessionPage([info for _, info in page], f"{begun}.{page[-1][0]}" if more else None)

        return await self._store.log.read(query)

    async def rename(self, session_id: str, name: str) -> None:
        """Give a session another name; raises SessionNotFoundError."""
        renamed = SessionRenamed(name=checked_title(name, "name", self._store.limits))
        await self._store.log.transact(self._id(session_id), Tell(renamed), size=BESIDE)

    async def delete(self, session_id: str) -> None:
        """Delete a session and all that is derived of it; nothing happens to an unknown one.

        Every later create, write or import under its id raises SessionDeletedError. The log keeps what was deleted.
        """
        await self._store.log.transact(self._id(session_id), delete_session)

    async def append(self, session_id: str, message: Given, parent_id: Parent = AUTO) -> AppendResult:
        """Append one message to a session, as `Session.append_message` does."""
        return await self.get_session(session_id).append_message(message, parent_id)

    async def upsert(self, session_id: str, message: Given, parent_id: Parent = AUTO) -> AppendResult:
        """Append a message to a session, or replace the content of the one with its id."""
        return await self.get_session(session_id).upsert_message(message, parent_id)

    async def append_all(
        self, session_id: str, messages: Sequence[Given], parent_id: Parent = AUTO
    ) -> builtins.list[AppendResult]:
        """Append messages to a session in one transaction, each under the one before it."""
        return await self.get_session(session_id).append_messages(messages, parent_id)

    async def get_history(self, session_id: str, leaf_id: str | None = None) -> builtins.list[Message]:
        """The messages of a session from the root to a leaf, or to the latest, compactions applied."""
        return await self.get_session(session_id).get_history(leaf_id)

    async def get_message_count(self, session_id: str) -> int:
        """How many messages there are from a session's root to its latest leaf."""
        return await self.get_session(session_id).get_path_length()

    async def get_branches(self, session_id: str, message_id: str) -> builtins.list[Message]:
        """The children of a message in log order; none for an unknown id."""
        return await self.get_session(session_id).get_branches(message_id)

    async def delete_messages(self, session_id: str, ids: Sequence[str]) -> int:
        """Delete messages of a session, as `Session.delete_messages` does."""
        return await self.get_session(session_id).delete_messages(ids)

    async def clear_messages(self, session_id: str) -> None:
        """Delete all messages and compactions of a session; every message id is free again."""
        await self.get_session(session_id).clear_messages()

    async def add_compaction(
        self, session_id: str, summary: str, from_message_id: str, to_message_id: str
    ) -> Compaction:
        """Let a summary stand for the messages between two, as `Session.add_compaction` does."""
        return await self.get_session(session_id).add_compaction(summary, from_message_id, to_message_id)

    async def get_compactions(self, session_id: str) -> builtins.list[Compaction]:
        """The compactions of a session in log order."""
        return await self.get_session(session_id).get_compactions()

    async def fork(self, session_id: str, at_message_id: str, new_name: str) -> SessionInfo:
        """Begin a new session as a copy of a session's path to a message, compactions applied.

        The copies have ids of their own, and the old ones in `metadata.forkedFrom`; a summary becomes an ordinary
        message. Raises SessionNotFoundError and MessageNotFoundError, and then nothing was created.
        """
        source_id, at = self._id(session_id), lookup_id(at_message_id, "at_message_id")
        name = checked_title(new_name, "new_name", self._store.limits)
        return _begun(await self._store.log.transact(new_id(), ForkSession(source_id, at, name)))

    async def compact_and_split(self, session_id: str, summary: str, new_name: str | None = None) -> SessionInfo:
        """End a session and begin a new one, of the same name unless one is given, with a summary as its first message.

        The session still takes messages. Raises SessionNotFoundError, and InvalidCompactionError for a blank summary.
        """
        source_id = self._id(session_id)
        text = checked_summary(summary, source_id, self._store.limits)
        name = None if new_name is None else checked_title(new_name, "new_name", self._store.limits)
        return _begun(await self._store.log.transact(source_id, SplitSession(new_id(), text, name)))

    async def add_usage(self, session_id: str, input_tokens: int, output_tokens: int, cost: float) -> None:
        """Add tokens that were used and what they cost, in the caller's currency.

        Raises SessionNotFoundError, and InvalidArgumentError for token counts that are no whole numbers from 0 on, for
        a cost that is not finite, and when a sum would be larger than can be stored.
        """
        check_count(input_tokens, "input_tokens")
        check_count(output_tokens, "output_tokens")
        used = UsageAdded(input_tokens=int(input_tokens), output_tokens=int(output_tokens), cost=_checked_cost(cost))
        await self._store.log.transact(self._id(session_id), Tell(used), size=BESIDE)

    async def search(self, query: str, *, limit: int = 20) -> builtins.list[SearchResult]:
        """The messages of all sessions that hold all words of the query, best first, equal ones newest first."""
        check_search(query, limit, "relevance")
        return await self._store.log.read(lambda tx: search(tx, query, stream_no=None, limit=limit, order="relevance"))

    def _with(self, method: str, configure: Callable[[Session], object]) -> SessionManager:
        if self._is_used:
            raise SessionStartedError(method)
        # Tried on a session that nobody uses, so that what is wrong is refused here.
        configure(self._made())
        self._template.append(configure)
        return self

    def _made(self) -> Session:
        session = Session.create(self._store)
        for configure in self._template:
            configure(session)
        return session

    def _id(self, session_id: object) -> str:
        return checked_session_id(session_id, self._store)


def _begun(committed: Committed) -> SessionInfo:
    """What is known of a session right after the events that began it, whatever others have done to it since."""
    session_id, at, created = next(
        (envelope.stream_id, envelope.recorded_at, envelope.event)
        for envelope in committed.envelopes
        if isinstance(envelope.event, SessionCreated)
    )
    about = (created.name, created.parent_session_id, created.model, created.source)
    return SessionInfo(session_id, *about, 0, 0, 0.0, None, at, at)


def _checked_cost(cost: object) -> float:
    try:
        if isinstance(cost, (int, float)) and not isinstance(cost, bool) and math.isfinite(cost):
            return float(cost)
    except OverflowError:
        pass
    raise InvalidArgumentError("cost", "must be a finite number")


def _read_cursor(cursor: object) -> tuple[int, int]:
    texts = cursor.split(".") if isinstance(cursor, str) else []
    numbers = [int(one) for one in texts if one.isascii() and one.isdigit() and len(one) < 20]
    if len(texts) != 2 or len(numbers) != 2 or not 0 < numbers[1] <= numbers[0] < ALL:
        raise InvalidArgumentError("cursor", "must be the next_cursor of a page")
    return numbers[0], numbers[1]
