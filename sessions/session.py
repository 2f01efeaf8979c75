"""The session that agents talk to: a builder until its first use, then the conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from eventstore.envelope import Envelope
from eventstore.errors import SessionStartedError
from eventstore.ports import Order
from projections.search_index import SearchResult
from sessions.appending import AUTO, AppendResult, Parent
from sessions.message import Message
from sessions.store import Store
from sessions.stored import Given, StoredSession, TreeNode, checked_store


class Session:
    """A conversation over a store or over a session provider.

    `Session.create(store).for_session("chat-1")` configures it; nothing touches storage before the first call that is
    awaited or iterated, and from then on builder methods raise SessionStartedError.
    """

    def __init__(self, provider: StoredSession | Store) -> None:
        self._origin = provider if isinstance(provider, StoredSession) else checked_store(provider)
        self._session_id = provider.session_id if isinstance(provider, StoredSession) else ""
        self._provider: StoredSession | None = None

    @classmethod
    def create(cls, store_or_provider: Store | StoredSession) -> Session:
        """A session to be configured; on a store its id is "" until `for_session` names it."""
        return cls(store_or_provider)

    def for_session(self, session_id: str) -> Session:
        """Name the session; over a provider the provider decides what is stored."""
        if self._provider is not None:
            raise SessionStartedError("for_session")
        self._session_id = session_id
        return self

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._session_id

    @property
    def _storage(self) -> StoredSession:
        if self._provider is None:
            origin = self._origin
            self._provider = origin if isinstance(origin, StoredSession) else StoredSession(origin, self._session_id)
        return self._provider

    async def append_message(
        self,
        message: Given,
        parent_id: Parent = AUTO,
        *,
        expected_version: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> AppendResult:
        """Append one message: under the latest leaf, under the message `parent_id`, or as a new root with None.

        The same message again writes nothing and returns `inserted=False`. Raises ParentNotFoundError,
        DuplicateMessageError, ReservedIdError, InvalidMessageError, LimitExceededError, and VersionConflictError when
        the session is not at `expected_version`; then nothing was written. Events of every kind count towards it.
        """
        return await self._storage.append_message(
            message, parent_id, expected_version=expected_version, metadata=metadata
        )

    async def append_messages(self, messages: Sequence[Given], parent_id: Parent = AUTO) -> list[AppendResult]:
        """Append messages in one transaction, each under the one before it: all of them or none."""
        return await self._storage.append_messages(messages, parent_id)

    async def get_message(self, message_id: str) -> Message | None:
        """The message with this id, on any branch; None when there is none."""
        return await self._storage.get_message(message_id)

    async def get_latest_leaf(self) -> Message | None:
        """The message that was appended or selected last; None in an empty session."""
        return await self._storage.get_latest_leaf()

    async def get_history(self, leaf_id: str | None = None) -> list[Message]:
        """The messages from the root to a leaf (None: the latest); raises MessageNotFoundError for an unknown leaf."""
        return await self._storage.get_history(leaf_id)

    def history(self, leaf_id: str | None = None) -> AsyncGenerator[Message, None]:
        """The messages of `get_history` one by one, in bounded memory; the path is fixed at the first of them."""
        return self._storage.history(leaf_id)

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many messages there are from the root to a leaf (None: the latest), without reading them."""
        return await self._storage.get_path_length(leaf_id)

    async def get_branches(self, message_id: str) -> list[Message]:
        """The children of a message in log order; an empty list for an unknown id."""
        return await self._storage.get_branches(message_id)

    def tree(self) -> AsyncGenerator[TreeNode, None]:
        """Every message of every branch with its parent's id, in log order, in bounded memory."""
        return self._storage.tree()

    async def select_leaf(self, message_id: str) -> None:
        """Remember the branch that a person chose; raises MessageNotFoundError."""
        await self._storage.select_leaf(message_id)

    async def search(self, query: str, *, limit: int = 20, order: Order = "relevance") -> list[SearchResult]:
        """The messages that hold all words of the query, best or newest first; nothing that is typed raises.

        `"quoted text"` is a phrase; equal matches come newest first. Raises InvalidArgumentError for a limit below 0.
        """
        return await self._storage.search_messages(query, limit=limit, order=order)

    async def version(self) -> int:
        """The version that the session is at: the number of its events."""
        return await self._storage.version()

    def events(self, from_version: int = 1) -> AsyncGenerator[Envelope, None]:
        """The session's events from a version on, oldest first."""
        return self._storage.events(from_version)

    def subscribe(self, after_version: int | None = None) -> AsyncGenerator[Envelope, None]:
        """The session's events after a version (0: all, None: from now on), each once, in order, then live."""
        return self._storage.subscribe(after_version)
