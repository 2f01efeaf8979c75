"""What an export reads: a session as it is known, and its messages one by one, of the whole tree or of one path."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec

from eventstore.errors import MessageNotFoundError, SessionNotFoundError
from eventstore.events import SessionCreated
from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections import history as reads
from projections.compactions import Compaction, list_compactions
from projections.directory import SessionInfo, find_session
from projections.overlay import View, view_of
from projections.paths import Range, path_to, place_of
from projections.stored import tree_of
from sessions.arguments import checked_store
from sessions.message import Message, lookup_id
from sessions.store import Store


class Node(msgspec.Struct, frozen=True):
    """A message as it is exported: its JSON as it is stored, its time, its parent, and whether it is on the path."""

    json: str
    created_at: dt.datetime
    parent_id: str | None
    on_path: bool = True

    @property
    def message(self) -> Message:
        """The message itself."""
        return Message.stored(self.json, self.created_at)


class Ending(msgspec.Struct, frozen=True):
    """What holds of the messages that were read: the leaf of the path, and the compactions between them."""

    leaf_id: str | None = None
    compactions: Sequence[Compaction] = ()


class Source:
    """A session that is exported: `session` is what is known of it, `metadata` what its source said beyond that.

    The path is fixed when the source is opened: to the leaf that was named, and then it is all that is exported, else
    to the latest one. `compactions` are those there were then, of one path those that lie on it, and `shown` the ids of
    those on the path. `ending` is known when all messages were read; whatever it names is among them, though others may
    have written in between.
    """

    def __init__(
        self,
        store: Store,
        session: SessionInfo,
        *,
        metadata: dict[str, Any] | None,
        path: Mapping[int, Range],
        one_path: bool,
        compactions: Sequence[Compaction],
        shown: frozenset[str],
    ) -> None:
        self.session = session
        self.metadata = metadata
        self.one_path = one_path
        self.compactions = compactions
        self.shown = shown
        self.ending = Ending()
        self._log = store.log
        # By run: a path has one part of each.
        self._path = path

    def nodes(self, *, marked: bool = False) -> AsyncGenerator[Node, None]:
        """The messages of the tree in log order, or of the path when a leaf was named; `marked` tells the path's."""
        return self.path() if self.one_path else self._tree(marked=marked)

    async def path(self) -> AsyncGenerator[Node, None]:
        """The messages that were appended, from the root to the leaf."""
        parent_id: str | None = None
        view: View = [*self._path.values()]
        while view:
            page, view = await self._log.read(partial(self._page_of_path, view=view))
            for json, created_at in page:
                node = Node(json, created_at, parent_id)
                yield node
                parent_id = node.message.id
        compactions = await self._log.read(self._compactions_on_path)
        self.ending = Ending(parent_id, compactions)

    async def view(self) -> AsyncGenerator[Message, None]:
        """The path as it is read: a summary stands for the messages that it covers."""
        view = await self._log.read(lambda tx: view_of(tx, self._stream(tx), [*self._path.values()]))
        while view:
            page, view = await self._log.read(partial(self._page_of_path, view=view))
            for json, created_at in page:
                yield Message.stored(json, created_at)

    async def _tree(self, *, marked: bool) -> AsyncGenerator[Node, None]:
        after_version = 0
        while True:
            read = partial(self._page_of_tree, after_version=after_version, marked=marked)
            page, after_version = await self._log.read(read)
            if not page:
                return
            for node in page:
                yield node

    def _page_of_tree(self, tx: Tx, after_version: int, *, marked: bool) -> tuple[list[Node], int]:
        stream_no = self._stream(tx)
        rows = reads.page_of_tree(tx, stream_no, after_version)
        if not rows:
            # In the read that finds no more messages, so that nothing newer can be named.
            self.ending = Ending(tree_of(tx, stream_no).message_id, list_compactions(tx, stream_no))
            return [], after_version
        page: list[Node] = []
        for json, created_at, parent_id, _ in rows:
            node = Node(json, tx.dialect.to_time(created_at), parent_id)
            if marked and not _is_on(self._path, tx, stream_no, node.message.id):
                node = msgspec.structs.replace(node, on_path=False)
            page.append(node)
        return page, rows[-1][3]

    def _page_of_path(self, tx: Tx, view: View) -> tuple[list[tuple[str, dt.datetime]], View]:
        rows, rest = reads.page_of_view(tx, self._stream(tx), view, newest_first=False)
        return [(row[0], tx.dialect.to_time(row[1])) for row in rows], rest

    def _compactions_on_path(self, tx: Tx) -> list[Compaction]:
        stream_no = self._stream(tx)
        return [one for one in list_compactions(tx, stream_no) if _is_on(self._path, tx, stream_no, one.to_message_id)]

    def _stream(self, tx: Tx) -> int:
        return find_stream(tx, self.session.id)[0]


async def open_source(store: Store, session_id: str, leaf_id: str | None) -> Source:
    """The session to export; raises SessionNotFoundError, and MessageNotFoundError for an unknown leaf."""
    log = checked_store(store).log
    wanted = lookup_id(session_id, "session_id")
    leaf = None if leaf_id is None else lookup_id(leaf_id, "leaf_id")

    metadata = await _metadata(store, wanted)

    def query(tx: Tx) -> Source:
        session = find_session(tx, wanted)
        if session is None:
            raise SessionNotFoundError(wanted)
        stream_no = find_stream(tx, wanted)[0]
        found = path_to(tx, stream_no, leaf)
        if found is None:
            raise MessageNotFoundError(wanted, str(leaf))
        path = {part.run: part for part in found}
        compactions = list_compactions(tx, stream_no)
        # What lies above a place is on every path through it: the last message of a compaction tells.
        shown = [one for one in compactions if _is_on(path, tx, stream_no, one.to_message_id)]
        return Source(
            store,
            session,
            metadata=metadata,
            path=path,
            one_path=leaf is not None,
            compactions=compactions if leaf is None else shown,
            shown=frozenset(one.id for one in shown),
        )

    return await log.read(query)


def _is_on(path: Mapping[int, Range], tx: Tx, stream_no: int, message_id: str) -> bool:
    place = place_of(tx, stream_no, message_id)
    part = path.get(place[0]) if place else None
    return part is not None and place is not None and part.first <= place[1] <= part.last


async def _metadata(store: Store, session_id: str) -> dict[str, Any] | None:
    async with aclosing(store.log.read_stream(session_id, to_version=1)) as found:
        async for envelope in found:
            if isinstance(envelope.event, SessionCreated):
                return envelope.event.metadata
    return None
