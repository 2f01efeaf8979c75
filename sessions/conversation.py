"""The calls of a session that are about its messages, each handed on to what keeps them."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Any, TypeVar

from eventstore.envelope import Envelope
from eventstore.ports import Order
from projections.compactions import Compaction
from projections.history import RowStat
from projections.search import SearchResult
from sessions.appending import AUTO, AppendResult, Parent
from sessions.arguments import Given
from sessions.foreign import ForeignSession
from sessions.message import Message
from sessions.model_messages import model_messages
from sessions.reading import RecentHistory, TreeNode
from sessions.reconciling import ReconcileResult
from sessions.stored import StoredSession

T = TypeVar("T")
Storage = StoredSession | ForeignSession


class Conversation:
    """What can be done with the messages of a session.

    Whatever writes messages goes through `_write`, so that what follows a write has one place.
    """

    @property
    def _storage(self) -> Storage:
        raise NotImplementedError

    async def _write(self, written: Awaitable[T], *, appended: bool = False) -> T:
        """Wait for a write of messages; `appended` says that it was one that can make the history longer."""
        raise NotImplementedError

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
        DuplicateMessageError, MessageDeletedError, ReservedIdError, InvalidMessageError, LimitExceededError, and
        VersionConflictError when the session is not at `expected_version`; then nothing was written. Events of every
        kind count towards it. An overlay's id as parent means the last message of its range.
        """
        written = self._storage.append_message(message, parent_id, expected_version=expected_version, metadata=metadata)
        return await self._write(written, appended=True)

    async def append_messages(self, messages: Sequence[Given], parent_id: Parent = AUTO) -> list[AppendResult]:
        """Append messages in one transaction, each under the one before it: all of them or none."""
        return await self._write(self._storage.append_messages(messages, parent_id), appended=True)

    async def update_message(self, message: Given) -> Message | None:
        """Replace the content of a message, which keeps its place in the tree; None when there is none with its id.

        Content that is stored already writes nothing. Raises InvalidMessageError and LimitExceededError.
        """
        return await self._write(self._storage.update_message(message))

    async def upsert_message(self, message: Given, parent_id: Parent = AUTO) -> AppendResult:
        """Append a message, or replace the content of the one with its id, which keeps its place.

        Version and position of the result are those of the event that was written; for content that is stored already,
        of the one that appended the message. Raises what `append_message` raises.
        """
        return await self._write(self._storage.upsert_message(message, parent_id), appended=True)

    async def reconcile(self, messages: Sequence[Given]) -> ReconcileResult:
        """Take over what is new in the whole list of messages that a client sends back, in one transaction.

        A message is known by its id, else by what it says where it stands: it may be stored under another id. Others
        are appended, each under the one before it in the list; tool outputs that the client filled in, and other
        changes, are taken over, those of an outdated copy left. Overlays that come back, messages that were deleted,
        and what the list leaves out stay as they are. The same list again writes nothing.

        Raises DuplicateMessageError for two messages with one id, InvalidMessageError and LimitExceededError; then
        nothing was written. NotSupportedError over a provider without a log.
        """
        return await self._write(self._storage.reconcile(messages), appended=True)

    async def import_message(self, message: Given, parent_id: Parent, created_at: dt.datetime) -> AppendResult:
        """Append a message of the past with its own time, an aware one; everything else is as for `append_message`."""
        return await self._storage.import_message(message, parent_id, created_at)

    async def delete_messages(self, ids: Sequence[str]) -> int:
        """Delete messages, and let what hung below them hang on their nearest surviving ancestors; returns how many.

        Unknown ids are ignored. The ids of deleted messages are spent: another append of one raises
        MessageDeletedError. The log keeps what was deleted.
        """
        return await self._write(self._storage.delete_messages(ids))

    async def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> Compaction:
        """Let a summary stand for the messages between two on one path, both included, wherever that path is read.

        Raises InvalidCompactionError unless both lie on one path in this order and the summary is not blank.
        """
        return await self._storage.add_compaction(summary, from_message_id, to_message_id)

    async def get_compactions(self) -> list[Compaction]:
        """The compactions in log order, each with the ends of what is left of its range."""
        return await self._storage.get_compactions()

    async def get_message(self, message_id: str) -> Message | None:
        """The message with this id, on any branch; None when there is none."""
        return await self._storage.get_message(message_id)

    async def get_latest_leaf(self) -> Message | None:
        """The message that was appended or selected last; after its deletion the newest leaf where it hung.

        None in an empty session.
        """
        return await self._storage.get_latest_leaf()

    async def get_history(self, leaf_id: str | None = None, *, limit: int | None = None) -> list[Message]:
        """The messages from the root to a leaf (None: the latest), compactions applied; with `limit` the last ones.

        An overlay counts as one message. Raises MessageNotFoundError for an unknown leaf.
        """
        return await self._storage.get_history(leaf_id, limit=limit)

    def history(self, leaf_id: str | None = None, *, newest_first: bool = False) -> AsyncGenerator[Message, None]:
        """The messages of `get_history` one by one, in bounded memory.

        Path and overlays are fixed at the first of them; what is deleted later is left out, what is updated is shown
        as it is when it is read.
        """
        return self._storage.history(leaf_id, newest_first=newest_first)

    def history_batches(
        self, leaf_id: str | None = None, *, batch_size: int = 500, max_batch_bytes: int = 1 << 20
    ) -> AsyncGenerator[list[Message], None]:
        """The messages of `history` in lists of at most so many messages and bytes; a longer message comes alone."""
        return self._storage.history_batches(leaf_id, batch_size=batch_size, max_batch_bytes=max_batch_bytes)

    async def get_model_messages(self, leaf_id: str | None = None, *, limit: int | None = None) -> list[Message]:
        """The messages of `get_history` as a model may be given them: no half of a tool's call and its result.

        With `limit` the last ones, and those before them from the call of a result among them on. A result without a
        call is left out, a call without a result gets a stub; nothing that is stored changes.
        """
        return await model_messages(self._storage, leaf_id, limit)

    async def get_recent_history(
        self, max_content_bytes: int, min_recent_messages: int = 1, *, leaf_id: str | None = None
    ) -> RecentHistory:
        """The last messages that fit into so many bytes of stored JSON, but at least `min_recent_messages` of them.

        A summary stands for the messages of that window which it covers; what it covers counts, not the summary.
        """
        return await self._storage.get_recent_history(max_content_bytes, min_recent_messages, leaf_id=leaf_id)

    async def get_history_row_stats(self, leaf_id: str | None = None) -> list[RowStat]:
        """The stored messages from the root to a leaf in numbers (bytes of UTF-8, tokens); no content is read."""
        return await self._storage.get_history_row_stats(leaf_id)

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
        await self._write(self._storage.select_leaf(message_id))

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
