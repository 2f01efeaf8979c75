"""A session provider that is not the store's own: its twelve methods, made to look like a `StoredSession`."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.errors import InvalidArgumentError, NotSupportedError
from eventstore.limits import Limits
from eventstore.ports import Order
from projections.compactions import Compaction
from projections.history import RowStat
from projections.message import own_time
from projections.search import SearchResult
from projections.tokens import estimate_message_tokens
from sessions.appending import AUTO, AppendResult, Parent
from sessions.arguments import (
    Given,
    check_count,
    check_search,
    checked_ids,
    checked_messages,
    checked_parent,
    checked_summary,
)
from sessions.known_path import KnownPath
from sessions.message import Accepted, Message, accept, lookup_id
from sessions.providers import settle
from sessions.reading import RecentHistory, TreeNode
from sessions.reconciling import ReconcileResult

NEEDED = (
    "get_message",
    "get_history",
    "get_latest_leaf",
    "get_branches",
    "get_path_length",
    "append_message",
    "update_message",
    "delete_messages",
    "clear_messages",
    "add_compaction",
    "get_compactions",
)


def checked_provider(provider: object) -> Any:
    """The provider itself; raises InvalidArgumentError for what keeps no messages."""
    missing = [name for name in NEEDED if not callable(getattr(provider, name, None))]
    if missing:
        raise InvalidArgumentError("provider", f"a {type(provider).__name__} has no {', '.join(missing)}")
    return provider


class ForeignSession:
    """The session of a provider whose methods may be plain or async and may speak of messages as dicts."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._limits = Limits()
        self._path = KnownPath()

    async def append_message(
        self,
        message: Given,
        parent_id: Parent = AUTO,
        *,
        expected_version: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> AppendResult:
        """Append one message; the parent is left out unless it is named."""
        if expected_version is not None or metadata is not None:
            _only_a_log("expected_version or metadata")
        accepted = accept(message, self._limits)
        parent = checked_parent(parent_id)
        named = () if parent is AUTO else (parent,)
        result = await settle(self._provider.append_message(_handed_out(accepted), *named))
        self._path.appended(_handed_out(accepted), parent)
        return result if isinstance(result, AppendResult) else AppendResult(_handed_out(accepted), True, 0, 0)  # noqa: FBT003

    async def append_messages(self, messages: Sequence[Given], parent_id: Parent = AUTO) -> list[AppendResult]:
        """Append messages, each under the one before it; one after the other."""
        accepted = [accept(message, self._limits) for message in checked_messages(messages)]
        results: list[AppendResult] = []
        parent = parent_id
        for one in accepted:
            results.append(await self.append_message(_handed_out(one), parent))
            parent = one.id
        return results

    async def update_message(self, message: Given) -> Message | None:
        """Replace the content of a message; None when there is none with its id."""
        accepted = accept(message, self._limits, may_be_reserved=True)
        if await self.get_message(accepted.id) is None:
            return None
        await settle(self._provider.update_message(_handed_out(accepted)))
        self._path.updated(_handed_out(accepted))
        return _handed_out(accepted)

    async def upsert_message(self, message: Given, parent_id: Parent = AUTO) -> AppendResult:
        """Append a message, or replace the content of the one with its id."""
        accepted = accept(message, self._limits)
        updated = await self.update_message(_handed_out(accepted))
        if updated is None:
            return await self.append_message(_handed_out(accepted), parent_id)
        return AppendResult(updated, False, 0, 0)  # noqa: FBT003

    async def delete_messages(self, ids: Sequence[str]) -> int:
        """Delete messages; without an answer of the provider all of them count that are there."""
        wanted = checked_ids(ids)
        there = [one for one in wanted if await self.get_message(one) is not None]
        count = await settle(self._provider.delete_messages(wanted))
        self._path.deleted(wanted)
        return count if isinstance(count, int) else len(there)

    async def clear_messages(self) -> None:
        """Delete all messages and compactions."""
        await settle(self._provider.clear_messages())
        self._path.read([])

    async def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> Compaction:
        """Let a summary stand for a stretch."""
        text = checked_summary(summary, "", self._limits)
        ends = lookup_id(from_message_id, "from_message_id"), lookup_id(to_message_id, "to_message_id")
        added = await settle(self._provider.add_compaction(text, *ends))
        self._path.forget()
        if added is None:
            added = (await self.get_compactions())[-1]
        compaction: Compaction = added
        return compaction

    async def get_compactions(self) -> list[Compaction]:
        """The compactions in order."""
        return list(await settle(self._provider.get_compactions()))

    async def get_message(self, message_id: str) -> Message | None:
        """The message with this id."""
        return _message(await settle(self._provider.get_message(lookup_id(message_id, "message_id"))))

    async def get_latest_leaf(self) -> Message | None:
        """The latest leaf."""
        return _message(await settle(self._provider.get_latest_leaf()))

    async def token_estimate(self) -> int:
        """The estimated tokens of the current history, which is read once as long as it is written through here."""
        if self._path.tokens is None:
            self._path.read(await self.get_history())
        return self._path.tokens or 0

    async def get_history(self, leaf_id: str | None = None, *, limit: int | None = None) -> list[Message]:
        """The messages from the root to a leaf, or to the latest; with `limit` the last ones."""
        if limit is not None:
            check_count(limit, "limit")
        named = () if leaf_id is None else (lookup_id(leaf_id, "leaf_id"),)
        messages = _messages(await settle(self._provider.get_history(*named)))
        return messages if limit is None else messages[len(messages) - min(limit, len(messages)) :]

    async def history(self, leaf_id: str | None = None, *, newest_first: bool = False) -> AsyncGenerator[Message, None]:
        """The messages of `get_history` one by one; they are read at once."""
        messages = await self.get_history(leaf_id)
        for message in reversed(messages) if newest_first else messages:
            yield message

    async def history_batches(
        self, leaf_id: str | None = None, *, batch_size: int = 500, max_batch_bytes: int = 1 << 20
    ) -> AsyncGenerator[list[Message], None]:
        """The messages of `history` in lists of at most so many messages and bytes; a longer message comes alone."""
        check_count(batch_size, "batch_size", least=1)
        check_count(max_batch_bytes, "max_batch_bytes", least=1)
        batch: list[Message] = []
        size = 0
        for message in await self.get_history(leaf_id):
            more = _bytes(message)
            if batch and (len(batch) == batch_size or size + more > max_batch_bytes):
                yield batch
                batch, size = [], 0
            batch.append(message)
            size += more
        if batch:
            yield batch

    async def get_recent_history(
        self, max_content_bytes: int, min_recent_messages: int = 1, *, leaf_id: str | None = None
    ) -> RecentHistory:
        """The last messages that fit into so many bytes; from the whole history, unless the provider knows better."""
        check_count(max_content_bytes, "max_content_bytes")
        check_count(min_recent_messages, "min_recent_messages")
        own = getattr(self._provider, "get_recent_history", None)
        if callable(own):
            found = await settle(own(max_content_bytes, min_recent_messages, leaf_id=leaf_id))
            return RecentHistory(_messages(found.messages), found.truncated, found.total_content_bytes)
        messages = await self.get_history(leaf_id)
        sizes = [_bytes(message) for message in messages]
        count = size = 0
        for one in reversed(sizes):
            if count >= min_recent_messages and size + one > max_content_bytes:
                break
            count, size = count + 1, size + one
        return RecentHistory(messages[len(messages) - count :], count < len(messages), sum(sizes))

    async def get_history_row_stats(self, leaf_id: str | None = None) -> list[RowStat]:
        """The messages of a history in numbers."""
        own = getattr(self._provider, "get_history_row_stats", None)
        if callable(own):
            return list(await settle(own(leaf_id)))
        return [
            RowStat(message.id, message.role, _bytes(message), estimate_message_tokens([message]))
            for message in await self.get_history(leaf_id)
        ]

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many messages there are from the root to a leaf, or to the latest."""
        named = () if leaf_id is None else (lookup_id(leaf_id, "leaf_id"),)
        return int(await settle(self._provider.get_path_length(*named)))

    async def get_branches(self, message_id: str) -> list[Message]:
        """The children of a message."""
        return _messages(await settle(self._provider.get_branches(lookup_id(message_id, "message_id"))))

    async def search_messages(self, query: str, *, limit: int = 20, order: Order = "relevance") -> list[SearchResult]:
        """The messages that hold all words of the query, if the provider can search; the order is its own."""
        check_search(query, limit, order)
        own = getattr(self._provider, "search_messages", None)
        if not callable(own):
            raise NotSupportedError("search with this provider")
        return list(await settle(own(query, limit=limit)))

    async def import_message(self, _message: Given, _parent_id: Parent, _created_at: dt.datetime) -> AppendResult:
        """Raise NotSupportedError."""
        _only_a_log("import_message")

    async def reconcile(self, _messages: Sequence[Given]) -> ReconcileResult:
        """Raise NotSupportedError."""
        _only_a_log("reconcile")

    async def select_leaf(self, _message_id: str) -> None:
        """Raise NotSupportedError."""
        _only_a_log("select_leaf")

    async def version(self) -> int:
        """Raise NotSupportedError."""
        _only_a_log("version")

    def tree(self) -> AsyncGenerator[TreeNode, None]:
        """Raise NotSupportedError."""
        _only_a_log("tree")

    def events(self, _from_version: int = 1) -> AsyncGenerator[Envelope, None]:
        """Raise NotSupportedError."""
        _only_a_log("events")

    def subscribe(self, _after_version: int | None = None) -> AsyncGenerator[Envelope, None]:
        """Raise NotSupportedError."""
        _only_a_log("subscribe")


def _only_a_log(what: str) -> NoReturn:
    raise NotSupportedError(f"{what} with a provider that has no log")


def _handed_out(accepted: Accepted) -> Message:
    return Message.stored(accepted.json, own_time(decode_json(accepted.json)))


def _message(given: Any) -> Message | None:
    if given is None or isinstance(given, Message):
        return given
    if not isinstance(given, Mapping):
        raise InvalidArgumentError("provider", f"gave a {type(given).__name__} for a message")
    return Message(**given)


def _messages(given: Sequence[Any]) -> list[Message]:
    return [message for one in given if (message := _message(one)) is not None]


def _bytes(message: Message) -> int:
    return len(msgspec.json.encode(message.to_dict()))
