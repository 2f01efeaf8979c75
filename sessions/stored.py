"""The store's own session provider: one session's messages, decided and read on the log; usable alone."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from eventstore.arguments import check_number
from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.events import CompactionAdded
from eventstore.expected import ANY
from eventstore.heads import Committed
from eventstore.log import BESIDE
from eventstore.ports import Order, Tx
from projections.compactions import Compaction
from projections.message import own_time, with_own_time
from projections.search import SearchResult, search
from sessions.appending import AUTO, AppendMessages, AppendResult, Parent
from sessions.arguments import (
    Given,
    check_search,
    checked_ids,
    checked_messages,
    checked_parent,
    checked_summary,
    checked_time,
)
from sessions.changing import (
    AddCompaction,
    DeleteMessages,
    SelectLeaf,
    UpdateMessage,
    Upserted,
    UpsertMessage,
    clear_messages,
)
from sessions.message import Accepted, Message, accept, lookup_id
from sessions.reading import StoredHistory
from sessions.reconciling import Reconcile, ReconcileResult


class StoredSession(StoredHistory):
    """A session in a store, by its id; it exists from its first event on.

    Raises InvalidArgumentError for ids that cannot be a session's.
    """

    async def append_message(
        self,
        message: Given,
        parent_id: Parent = AUTO,
        *,
        expected_version: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> AppendResult:
        """Append one message: under the tip, under the message with the id `parent_id`, or as a root with None.

        The same message again writes nothing. Raises ParentNotFoundError, DuplicateMessageError, MessageDeletedError,
        ReservedIdError, InvalidMessageError, LimitExceededError, and VersionConflictError when the session is not at
        the expected version; then nothing was written.
        """
        accepted = accept(message, self.store.limits)
        expected = ANY if expected_version is None else expected_version
        decide = AppendMessages([accepted], checked_parent(parent_id))
        size = _size([accepted])
        committed = await self.store.log.transact(
            self.session_id, decide, expected=expected, metadata=metadata, size=size
        )
        return _appended([accepted], committed)[0]

    async def append_messages(
        self, messages: Sequence[Given], parent_id: Parent = AUTO, *, expected_version: int | None = None
    ) -> list[AppendResult]:
        """Append messages in one transaction, each under the one before it: all of them or none."""
        accepted = [accept(message, self.store.limits) for message in checked_messages(messages)]
        if not accepted:
            return []
        expected = ANY if expected_version is None else expected_version
        decide = AppendMessages(accepted, checked_parent(parent_id))
        size = _size(accepted)
        return _appended(accepted, await self.store.log.transact(self.session_id, decide, expected=expected, size=size))

    async def import_message(self, message: Given, parent_id: Parent, created_at: dt.datetime) -> AppendResult:
        """Append a message of the past with its own time, an aware one; everything else is as for `append_message`."""
        accepted = accept(message, self.store.limits)
        given: dt.datetime | None = checked_time(created_at, "created_at")
        if given == own_time(decode_json(accepted.json)):
            given = None
        decide = AppendMessages([accepted], checked_parent(parent_id), given)
        committed = await self._transact(decide, _size([accepted]))
        if given is not None:
            accepted = Accepted(accepted.id, with_own_time(decode_json(accepted.json), given))
        return _appended([accepted], committed)[0]

    async def update_message(self, message: Given) -> Message | None:
        """Replace the content of a message and keep its place; None when there is none with its id.

        Content that is stored already writes nothing.
        """
        accepted = accept(message, self.store.limits, may_be_reserved=True)
        created_at = (await self._transact(UpdateMessage(accepted), _size([accepted]))).result
        return None if created_at is None else accepted.recorded(created_at)

    async def upsert_message(self, message: Given, parent_id: Parent = AUTO) -> AppendResult:
        """Append a message, or replace the content of the one with its id, which keeps its place.

        Version and position of the result are those of the event that was written; for content that is stored already,
        of the one that appended the message. Raises what `append_message` raises.
        """
        accepted = accept(message, self.store.limits)
        committed = await self._transact(UpsertMessage(accepted, checked_parent(parent_id)), _size([accepted]))
        upserted: Upserted = committed.result
        written = upserted.first or committed.envelopes[0]
        handed_out = accepted.recorded(upserted.created_at or written.recorded_at)
        return AppendResult(handed_out, upserted.created_at is None, written.version, written.position)

    async def reconcile(self, messages: Sequence[Given]) -> ReconcileResult:
        """Take over what is new in a client's whole list of messages, in one transaction; twice is as once.

        A message is known by its id, or by what it says where it stands. What is not known is appended under the one
        before it in the list; of what is known that is taken which is not outdated. Overlays, messages that were
        deleted, and whatever the list leaves out stay as they are. Raises DuplicateMessageError for one id of two
        messages, InvalidMessageError, LimitExceededError; then nothing was written.
        """
        limits = self.store.limits
        accepted = [accept(message, limits, may_be_reserved=True) for message in checked_messages(messages)]
        if not accepted:
            return ReconcileResult(0, 0, 0)
        result: ReconcileResult = (await self._transact(Reconcile(accepted, limits))).result
        return result

    async def delete_messages(self, ids: Sequence[str]) -> int:
        """Delete messages; what hung below them hangs on their nearest surviving ancestors. Returns their number.

        Unknown ids are ignored; the ids of deleted messages are spent.
        """
        wanted = checked_ids(ids)
        if not wanted:
            return 0
        return int((await self._transact(DeleteMessages(wanted))).result)

    async def clear_messages(self) -> None:
        """Delete all messages and compactions; every message id is free again."""
        await self._transact(clear_messages)

    async def select_leaf(self, message_id: str) -> None:
        """Make a message the tip, as when a person chooses a branch; raises MessageNotFoundError."""
        await self._transact(SelectLeaf(lookup_id(message_id, "message_id")), BESIDE)

    async def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> Compaction:
        """Let a summary stand for the messages between two on one path, both included.

        Raises InvalidCompactionError unless both lie on one path in this order and the summary is not blank.
        """
        text = checked_summary(summary, self.session_id, self.store.limits)
        ends = lookup_id(from_message_id, "from_message_id"), lookup_id(to_message_id, "to_message_id")
        written = (await self._transact(AddCompaction(text, *ends))).envelopes[0]
        added = written.event
        assert isinstance(added, CompactionAdded)
        ends = added.from_message_id, added.to_message_id
        return Compaction(added.id, text, *ends, created_at=written.recorded_at, stale=False)

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

    async def _transact(self, decide: Any, size: float = math.inf) -> Committed:
        return await self.store.log.transact(self.session_id, decide, size=size)


def _size(messages: Sequence[Accepted]) -> int:
    """About how many bytes appending messages is about, with what stands beside each."""
    return sum(len(message.json) + BESIDE for message in messages)


def _appended(accepted: Sequence[Accepted], committed: Committed) -> list[AppendResult]:
    written = iter(committed.envelopes)
    results: list[AppendResult] = []
    for message, first in zip(accepted, committed.result, strict=True):
        envelope = first or next(written)
        handed_out = message.recorded(envelope.recorded_at)
        results.append(AppendResult(handed_out, first is None, envelope.version, envelope.position))
    return results
