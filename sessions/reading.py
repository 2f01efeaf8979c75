"""Reading one session of a store: histories whole and in bounded pages, with the compactions applied; sizes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from eventstore.errors import MessageNotFoundError
from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.short_reads import Steps
from eventstore.statements import Row
from projections import history as reads
from projections.compactions import Compaction, list_compactions
from projections.corrections import sums_of
from projections.history import RowStat
from projections.overlay import View, view_of, view_tokens
from projections.paths import Range, path_to
from projections.skills import saved_tokens, unloaded_copies
from projections.stored import find_message, tree_of
from sessions.arguments import check_count, checked_session_id, checked_store
from sessions.marking import with_markers
from sessions.message import Message, lookup_id
from sessions.store import Store

UNBOUNDED = 1 << 62
STEP = 1_024
"""Messages that take about a millisecond to read."""


class TreeNode(msgspec.Struct, frozen=True):
    """A message and the id of its parent, None for a root."""

    message: Message
    parent_id: str | None


class RecentHistory(msgspec.Struct, frozen=True):
    """The end of a history; `truncated` when messages before it were left out.

    `total_content_bytes` is what the whole path comes to: the bytes of its messages' stored JSON in UTF-8.
    """

    messages: list[Message]
    truncated: bool
    total_content_bytes: int


class StoredHistory:
    """What can be read of a session in a store, by its id."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.store = checked_store(store)
        self.session_id = checked_session_id(session_id, store)
        self._stream_no = 0

    async def get_message(self, message_id: str) -> Message | None:
        """The message with this id, on any branch."""
        wanted = lookup_id(message_id, "message_id")
        return await self.store.log.read(lambda tx: self._message(tx, wanted))

    async def get_latest_leaf(self) -> Message | None:
        """The message that was appended or selected last; after its deletion the newest leaf where it hung."""

        def query(tx: Tx) -> Message | None:
            tip = tree_of(tx, self._stream(tx)).message_id
            return None if tip is None else self._message(tx, tip)

        return await self.store.log.read(query)

    async def get_history(self, leaf_id: str | None = None, *, limit: int | None = None) -> list[Message]:
        """The messages from the root to a leaf, or to the latest, compactions applied; with `limit` the last ones.

        Raises MessageNotFoundError for an unknown leaf.
        """
        if limit is not None:
            check_count(limit, "limit")

        def query(tx: Tx) -> Steps[list[Message]]:
            stream_no, view = self._stream(tx), self._view(tx, leaf_id)
            marks = unloaded_copies(tx, stream_no)
            if limit is None:
                rows = reads.read_view(tx, stream_no, view)
            else:
                most = min(limit, UNBOUNDED)
                page, _ = reads.page_of_view(tx, stream_no, view, newest_first=True, most=most, most_bytes=UNBOUNDED)
                rows = iter([(row[0], row[1]) for row in reversed(page)])
            messages: list[Message] = []
            while len(step := Message.all_stored(islice(rows, STEP))) == STEP:
                messages += step
                yield None
            yield with_markers(messages + step if messages else step, marks)

        return await self.store.log.read_in_steps(query)

    async def history(
        self, leaf_id: str | None = None, *, newest_first: bool = False, overlays: bool = True
    ) -> AsyncGenerator[Message, None]:
        """The messages of `get_history` one by one, in bounded memory; without overlays, those that were appended.

        Path and overlays are fixed at the first of them; what is deleted later is left out. What this process changes
        shows with the next message, what others change with the next page that is read.
        """
        view = await self.store.log.read(lambda tx: self._view(tx, leaf_id, overlays=overlays))
        while view:
            written = self.store.log.written(self.session_id)
            page = partial(self._page, view=view, newest_first=newest_first, raw=not overlays)
            rows, messages, rest = await self.store.log.read(page)
            for row, message in zip(rows, messages, strict=True):
                yield message
                if self.store.log.written(self.session_id) != written:
                    rest = reads.view_behind(view, row, newest_first=newest_first)
                    break
            view = rest

    async def history_batches(
        self, leaf_id: str | None = None, *, batch_size: int = 500, max_batch_bytes: int = 1 << 20
    ) -> AsyncGenerator[list[Message], None]:
        """The messages of `history` in lists of at most so many messages and bytes; a longer message comes alone."""
        check_count(batch_size, "batch_size", least=1)
        check_count(max_batch_bytes, "max_batch_bytes", least=1)
        bounds: dict[str, Any] = {"most": min(batch_size, UNBOUNDED), "most_bytes": max_batch_bytes}
        view = await self.store.log.read(lambda tx: self._view(tx, leaf_id))
        while view:
            _, messages, view = await self.store.log.read(partial(self._page, view=view, newest_first=False, **bounds))
            if messages:
                yield messages

    async def get_recent_history(
        self, max_content_bytes: int, min_recent_messages: int = 1, *, leaf_id: str | None = None
    ) -> RecentHistory:
        """The last messages that fit into so many bytes of stored JSON, but at least `min_recent_messages` of them.

        A summary stands for the messages of that window which it covers; what it covers counts, not the summary.
        """
        check_count(max_content_bytes, "max_content_bytes")
        check_count(min_recent_messages, "min_recent_messages")

        def query(tx: Tx) -> RecentHistory:
            stream_no, path = self._stream(tx), self._path(tx, leaf_id)
            sums = sums_of(tx, stream_no, path)
            bounds = {"most_bytes": max_content_bytes, "least_messages": min_recent_messages}
            start, count = reads.start_of_recent(tx, stream_no, path, **bounds)
            view = [] if start is None else view_of(tx, stream_no, path, start=start)
            messages = self._shown(tx, stream_no, reads.read_view(tx, stream_no, view))
            return RecentHistory(messages, count < sums.messages, sums.bytes)

        return await self.store.log.read(query)

    async def get_history_row_stats(self, leaf_id: str | None = None) -> list[RowStat]:
        """The stored messages from the root to a leaf in numbers; their content is not read."""
        return await self.store.log.read(lambda tx: reads.row_stats(tx, self._stream(tx), self._path(tx, leaf_id)))

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many stored messages there are from the root to a leaf, or to the latest one."""
        return await self.store.log.read(lambda tx: sums_of(tx, self._stream(tx), self._path(tx, leaf_id)).messages)

    async def token_estimate(self, leaf_id: str | None = None) -> int:
        """The estimated tokens of `get_history`, from sums: no message is read."""

        def query(tx: Tx) -> int:
            stream_no, path = self._stream(tx), self._path(tx, leaf_id)
            saved = saved_tokens(tx, stream_no, lambda: view_of(tx, stream_no, path))
            return view_tokens(tx, stream_no, path) - saved

        return await self.store.log.read(query)

    async def get_branches(self, message_id: str) -> list[Message]:
        """The children of a message in log order; none for an unknown id."""
        wanted = lookup_id(message_id, "message_id")

        def query(tx: Tx) -> list[Message]:
            stream_no = self._stream(tx)
            return self._shown(tx, stream_no, reads.children_of(tx, stream_no, wanted))

        return await self.store.log.read(query)

    async def tree(self) -> AsyncGenerator[TreeNode, None]:
        """Every message of every branch in log order, in bounded memory."""
        after_version = 0
        while nodes := await self.store.log.read(partial(self._page_of_tree, after_version=after_version)):
            for node, _ in nodes:
                yield node
            after_version = nodes[-1][1]

    async def get_compactions(self) -> list[Compaction]:
        """The compactions in log order, each with the ends of what is left of its range."""
        return await self.store.log.read(lambda tx: list_compactions(tx, self._stream(tx)))

    def _stream(self, tx: Tx) -> int:
        """The session's number in this database, which it keeps; 0 before its first event."""
        if not self._stream_no:
            self._stream_no = find_stream(tx, self.session_id)[0]
        return self._stream_no

    def _message(self, tx: Tx, message_id: str) -> Message | None:
        stream_no = self._stream(tx)
        found = find_message(tx, stream_no, message_id)
        if found is None:
            return None
        return self._shown(tx, stream_no, [(found.content, tx.dialect.to_time(found.created_at))])[0]

    def _shown(self, tx: Tx, stream_no: int, rows: Iterable[tuple[Any, Any]]) -> list[Message]:
        return with_markers(Message.all_stored(rows), unloaded_copies(tx, stream_no))

    def _path(self, tx: Tx, leaf_id: str | None) -> list[Range]:
        wanted = None if leaf_id is None else lookup_id(leaf_id, "leaf_id")
        path = path_to(tx, self._stream(tx), wanted)
        if path is None:
            raise MessageNotFoundError(self.session_id, str(wanted))
        return path

    def _view(self, tx: Tx, leaf_id: str | None, *, overlays: bool = True) -> View:
        path = self._path(tx, leaf_id)
        return view_of(tx, self._stream(tx), path) if overlays else [*path]

    def _page(self, tx: Tx, view: View, *, raw: bool = False, **bounds: Any) -> tuple[list[Row], list[Message], View]:
        stream_no = self._stream(tx)
        rows, rest = reads.page_of_view(tx, stream_no, view, **bounds)
        contents = [(row[0], row[1]) for row in rows]
        return rows, Message.all_stored(contents) if raw else self._shown(tx, stream_no, contents), rest

    def _page_of_tree(self, tx: Tx, after_version: int) -> list[tuple[TreeNode, int]]:
        stream_no = self._stream(tx)
        rows = reads.page_of_tree(tx, stream_no, after_version)
        messages = self._shown(tx, stream_no, [(content, created_at) for content, created_at, *_ in rows])
        return [(TreeNode(message, row[2]), row[3]) for message, row in zip(messages, rows, strict=True)]
