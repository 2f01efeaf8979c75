"""The store's own session provider: one session's messages, decided and read on the log; usable alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from eventstore.arguments import check_number
from eventstore.envelope import Envelope
from eventstore.errors import InvalidArgumentError, MessageNotFoundError
from eventstore.events import Event, LeafSelected
from eventstore.expected import ANY
from eventstore.heads import Committed, Head
from eventstore.limits import check_id
from eventstore.ports import Order, Tx
from eventstore.rows import find_stream
from projections import history as paths
from projections.directory import NO_SESSION
from projections.message_tree import find_message, tip_id
from projections.search_index import SearchResult, search
from sessions.appending import AUTO, AppendMessages, AppendResult, Auto, Parent
from sessions.message import Accepted, Message, accept, lookup_id
from sessions.store import Store

Given = Message | Mapping[str, Any]


class TreeNode(msgspec.Struct, frozen=True):
    """A message and the id of its parent, None for a root."""

    message: Message
    parent_id: str | None


class StoredSession:
    """A session in a store, by its id; it exists from its first event on.

    Raises InvalidArgumentError for ids that cannot be a session's.
    """

    def __init__(self, store: Store, session_id: str) -> None:
        self.store = checked_store(store)
        self.session_id = checked_session_id(session_id, store)

    async def append_message(
        self,
        message: Given,
        parent_id: Parent = AUTO,
        *,
        expected_version: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> AppendResult:
        """Append one message: under the tip, under the message with the id `parent_id`, or as a root with None.

        The same message again writes nothing. Raises ParentNotFoundError, DuplicateMessageError, ReservedIdError,
        InvalidMessageError, LimitExceededError, and VersionConflictError when the session is not at the expected
        version; then nothing was written.
        """
        accepted = accept(message, self.store.limits)
        committed = await self._transact([accepted], parent_id, expected_version, metadata)
        first: Envelope | None = committed.result[0]
        return _result(accepted, first or committed.envelopes[0], inserted=first is None)

    async def append_messages(self, messages: Sequence[Given], parent_id: Parent = AUTO) -> list[AppendResult]:
        """Append messages in one transaction, each under the one before it: all of them or none."""
        accepted = [accept(message, self.store.limits) for message in _checked_list(messages)]
        if not accepted:
            return []
        committed = await self._transact(accepted, parent_id)
        written = iter(committed.envelopes)
        return [
            _result(message, first or next(written), inserted=first is None)
            for message, first in zip(accepted, committed.result, strict=True)
        ]

    async def _transact(
        self,
        accepted: Sequence[Accepted],
        parent_id: Parent,
        expected_version: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Committed:
        if isinstance(parent_id, str):
            parent_id = lookup_id(parent_id, "parent_id")
        elif parent_id is not None and not isinstance(parent_id, Auto):
            raise InvalidArgumentError("parent_id", f"must be a string, not {type(parent_id).__name__}")
        expected = ANY if expected_version is None else expected_version
        decide = AppendMessages(accepted, parent_id)
        return await self.store.log.transact(self.session_id, decide, expected=expected, metadata=metadata)

    async def get_message(self, message_id: str) -> Message | None:
        """The message with this id, on any branch."""
        wanted = lookup_id(message_id, "message_id")

        def query(tx: Tx) -> Message | None:
            found = find_message(tx, self._stream(tx), wanted)
            return None if found is None else Message.stored(found.content, tx.dialect.to_time(found.created_at))

        return await self.store.log.read(query)

    async def get_latest_leaf(self) -> Message | None:
        """The message that was appended or selected last."""

        def query(tx: Tx) -> Message | None:
            stream_no = self._stream(tx)
            tip = tip_id(tx, stream_no)
            found = None if tip is None else find_message(tx, stream_no, tip)
            return None if found is None else Message.stored(found.content, tx.dialect.to_time(found.created_at))

        return await self.store.log.read(query)

    async def get_history(self, leaf_id: str | None = None) -> list[Message]:
        """The messages from the root to a leaf, or to the latest; raises MessageNotFoundError for an unknown leaf."""

        def query(tx: Tx) -> list[Message]:
            return Message.all_stored(paths.read_path(tx, self._stream(tx), self._path(tx, leaf_id)))

        return await self.store.log.read(query)

    async def history(self, leaf_id: str | None = None) -> AsyncGenerator[Message, None]:
        """The messages of `get_history` one by one, in bounded memory; the path is fixed at the first of them."""
        path = await self.store.log.read(lambda tx: self._path(tx, leaf_id))
        while path:
            rows, path = await self.store.log.read(partial(self._page_of_path, path=path))
            for content, created_at, _ in rows:
                yield Message.stored(content, created_at)

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many messages there are from the root to a leaf, or to the latest one."""
        path = await self.store.log.read(lambda tx: self._path(tx, leaf_id))
        return path[-1].last if path else 0

    async def get_branches(self, message_id: str) -> list[Message]:
        """The children of a message in log order; none for an unknown id."""
        wanted = lookup_id(message_id, "message_id")
        rows = await self.store.log.read(lambda tx: paths.children_of(tx, self._stream(tx), wanted))
        return [Message.stored(content, created_at) for content, created_at, _ in rows]

    async def tree(self) -> AsyncGenerator[TreeNode, None]:
        """Every message of every branch in log order, in bounded memory."""
        after_version = 0
        while rows := await self.store.log.read(partial(self._page_of_tree, after_version=after_version)):
            for content, created_at, parent_id, _ in rows:
                yield TreeNode(Message.stored(content, created_at), parent_id)
            after_version = rows[-1][3]

    async def select_leaf(self, message_id: str) -> None:
        """Make a message the tip, as when a person chooses a branch; raises MessageNotFoundError."""
        wanted = lookup_id(message_id, "message_id")

        def decide(tx: Tx, head: Head) -> tuple[list[Event], None]:
            tx.flush()
            if find_message(tx, head.stream_no, wanted) is None:
                raise MessageNotFoundError(self.session_id, wanted)
            return ([] if tip_id(tx, head.stream_no) == wanted else [LeafSelected(message_id=wanted)]), None

        await self.store.log.transact(self.session_id, decide)

    async def search_messages(self, query: str, *, limit: int = 20, order: Order = "relevance") -> list[SearchResult]:
        """The messages of this session that hold all words of the query, best or newest first."""
        check_search(query, limit, order)

        def hits(tx: Tx) -> list[SearchResult]:
            stream_no = self._stream(tx)
            return search(tx, query, stream_no=stream_no, limit=limit, order=order) if stream_no else []

        return await self.store.log.read(hits)

    async def version(self) -> int:
        """The version that the session is at; 0 before its first event."""
        return await self.store.log.stream_version(self.session_id)

    def events(self, from_version: int = 1) -> AsyncGenerator[Envelope, None]:
        """The session's events from a version on, oldest first."""
        check_number(from_version, "from_version")
        return self.store.log.read_stream(self.session_id, from_version=from_version)

    def subscribe(self, after_version: int | None = None) -> AsyncGenerator[Envelope, None]:
        """The session's events after a version (0: all of them, None: from now on), each once, in order, then live."""
        if after_version is None:
            return self.store.log.subscribe(stream_id=self.session_id)
        return self.store.log.subscribe_stream(self.session_id, after_version=after_version)

    def _stream(self, tx: Tx) -> int:
        return find_stream(tx, self.session_id)[0]

    def _path(self, tx: Tx, leaf_id: str | None) -> list[paths.Range]:
        wanted = None if leaf_id is None else lookup_id(leaf_id, "leaf_id")
        path = paths.path_to(tx, self._stream(tx), wanted)
        if path is None:
            raise MessageNotFoundError(self.session_id, str(wanted))
        return path

    def _page_of_path(self, tx: Tx, path: list[paths.Range]) -> tuple[list[Any], list[paths.Range]]:
        return paths.page_of_path(tx, self._stream(tx), path)

    def _page_of_tree(self, tx: Tx, after_version: int) -> list[Any]:
        return paths.page_of_tree(tx, self._stream(tx), after_version)


def _result(message: Accepted, envelope: Envelope, *, inserted: bool) -> AppendResult:
    return AppendResult(message.recorded(envelope.recorded_at), inserted, envelope.version, envelope.position)


def checked_store(store: object) -> Store:
    """The store itself; raises InvalidArgumentError for what is none, like one that was never awaited."""
    if not isinstance(store, Store):
        raise InvalidArgumentError("store", f"must be an open store, not {type(store).__name__}")
    return store


def checked_session_id(session_id: object, store: Store, name: str = "session_id") -> str:
    """A session id as it is stored; raises InvalidArgumentError or LimitExceededError."""
    checked = check_id(session_id, name, store.limits)
    if checked.startswith(NO_SESSION):
        raise InvalidArgumentError(name, f"must not start with {' or '.join(NO_SESSION)}")
    return checked


def check_search(query: object, limit: object, order: object) -> None:
    """Raise InvalidArgumentError for what cannot be searched; any text can."""
    if not isinstance(query, str):
        raise InvalidArgumentError("query", f"must be a string, not {type(query).__name__}")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise InvalidArgumentError("limit", "must be a number from 0 on")
    if order not in ("relevance", "newest"):
        raise InvalidArgumentError("order", "must be 'relevance' or 'newest'")


def _checked_list(messages: object) -> Iterable[Given]:
    if not isinstance(messages, Iterable) or isinstance(messages, (str, bytes, Mapping)):
        raise InvalidArgumentError("messages", f"must be a list of messages, not {type(messages).__name__}")
    return messages
