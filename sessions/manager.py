"""Many sessions of one store: create, find, list, search across."""

from __future__ import annotations

from eventstore.errors import SessionExistsError
from eventstore.events import Event, SessionCreated
from eventstore.heads import Head
from eventstore.ids import new_id
from eventstore.ports import Tx
from projections.directory import SessionInfo, find_session, list_sessions
from projections.search_index import SearchResult, search
from sessions.arguments import check_search, checked_session_id, checked_store
from sessions.message import checked_title, lookup_id
from sessions.session import Session
from sessions.store import Store


class SessionManager:
    """The sessions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = checked_store(store)

    def get_session(self, session_id: str) -> Session:
        """The session with this id, whether or not anything is stored of it yet."""
        return Session.create(self._store).for_session(session_id)

    async def create(
        self,
        name: str,
        *,
        id: str | None = None,
        parent_session_id: str | None = None,
        model: str | None = None,
        source: str | None = None,
    ) -> SessionInfo:
        """Create a session, under a new id unless one is given; raises SessionExistsError for an id in use."""
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

        def decide(_tx: Tx, head: Head) -> tuple[list[Event], None]:
            if head.version > 0:
                raise SessionExistsError(session_id)
            return [created], None

        written = (await self._store.log.transact(session_id, decide)).envelopes[0]
        at = written.recorded_at
        about = (created.parent_session_id, created.model, created.source)
        return SessionInfo(session_id, created.name, *about, 0, 0, 0.0, None, at, at)

    async def get(self, session_id: str) -> SessionInfo | None:
        """What is known of a session; None when there is none with this id."""
        wanted = lookup_id(session_id, "session_id")
        return await self._store.log.read(lambda tx: find_session(tx, wanted))

    async def search(self, query: str, *, limit: int = 20) -> list[SearchResult]:
        """The messages of all sessions that hold all words of the query, best first, equal ones newest first."""
        check_search(query, limit, "relevance")
        return await self._store.log.read(lambda tx: search(tx, query, stream_no=None, limit=limit, order="relevance"))

    async def list(self) -> list[SessionInfo]:
        """All sessions, the one with the newest event first."""
        return await self._store.log.read(list_sessions)
