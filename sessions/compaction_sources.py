"""Where a compaction's history is read, and where its summary is recorded unless that history has changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import msgspec

from eventstore.errors import MessageNotFoundError
from eventstore.events import CompactionAdded, Event, MessagesCleared, MessagesDeleted, MessageUpdated
from eventstore.heads import Head
from eventstore.ids import new_id
from eventstore.ports import Tx
from eventstore.rows import events_since, find_stream
from projections.compactions import Span, find_ends, list_spans, stale_rows
from projections.history import read_view, row_stats
from projections.message import COMPACTION_PREFIX
from projections.overlay import view_of
from projections.paths import lies_on, path_to, path_to_place, place_of
from projections.skills import unloaded_copies
from sessions.appending import check_open
from sessions.compaction_function import is_compaction_message
from sessions.compaction_view import CompactionView, Stretch
from sessions.foreign import ForeignSession
from sessions.marking import with_markers
from sessions.message import Message, lookup_id
from sessions.stored import StoredSession

Ends = tuple[str, str]

_CHANGES = {str(kind.__struct_config__.tag) for kind in (MessageUpdated, MessagesDeleted, MessagesCleared)}


class CompactionSource(Protocol):
    """A session's history, read to be compacted, and the way back."""

    async def read(self, leaf_id: str | None) -> CompactionView:
        """The history up to a leaf, or to the latest; raises MessageNotFoundError."""

    async def add(self, view: CompactionView, stretch: Stretch, summary: str) -> bool:
        """Let a summary stand for a stretch of a view; False, and nothing is recorded, when that has changed."""


def source_of(storage: StoredSession | ForeignSession) -> CompactionSource:
    """Where a session's compactions come from and go to."""
    return _Stored(storage) if isinstance(storage, StoredSession) else _Foreign(storage)


class _Seen(msgspec.Struct, frozen=True):
    """How far a session had come when its history was read."""

    version: int
    compactions: Collection[int]


class _StoredView(CompactionView, frozen=True):
    seen: _Seen


class _Stored:
    """A session in a store. Overlays that are stale are left out, so that their ranges are summarised afresh."""

    def __init__(self, storage: StoredSession) -> None:
        self._log = storage.store.log
        self._session_id = storage.session_id

    async def read(self, leaf_id: str | None) -> CompactionView:
        """Read the history, and what it stands for, in one transaction."""
        wanted = None if leaf_id is None else lookup_id(leaf_id, "leaf_id")
        return await self._log.read(lambda tx: self._read(tx, wanted))

    def _read(self, tx: Tx, leaf_id: str | None) -> CompactionView:
        stream_no, version = find_stream(tx, self._session_id)
        path = path_to(tx, stream_no, leaf_id)
        if path is None:
            raise MessageNotFoundError(self._session_id, str(leaf_id))
        view = view_of(tx, stream_no, path, without=stale_rows(tx, stream_no))
        messages = Message.all_stored(read_view(tx, stream_no, view))
        ids = [stat.id for stat in row_stats(tx, stream_no, path)]
        ends = [_stands_for(message, find_ends(tx, stream_no, message.id)) for message in messages]
        places = {message_id: index for index, message_id in enumerate(ids)}
        edges = [(places[first], places[last]) for first, last in ends]
        seen = _Seen(version, {span.row_id for span in list_spans(tx, stream_no)})
        return _StoredView(with_markers(messages, unloaded_copies(tx, stream_no)), ids, edges, seen)

    async def add(self, view: CompactionView, stretch: Stretch, summary: str) -> bool:
        """Record the compaction; whether it may be is decided in the write transaction."""
        assert isinstance(view, _StoredView)
        decide = AddSeenCompaction(view.seen.version, view.seen.compactions, stretch.ids, summary)
        return bool((await self._log.transact(self._session_id, decide)).result)


class AddSeenCompaction:
    """Decides a compaction of messages that were read at a version; the result says whether it was recorded.

    It is not when one of them was edited or deleted since, or when another compaction of some of them was recorded.
    """

    def __init__(self, version: int, compactions: Collection[int], ids: Sequence[str], summary: str) -> None:
        self._version = version
        self._compactions = compactions
        self._ids = ids
        self._summary = summary

    def __call__(self, tx: Tx, head: Head) -> tuple[list[Event], bool]:
        """Decide inside the write transaction; raises SessionDeletedError."""
        check_open(tx, head)
        if self._is_changed(tx, head.stream_no) or self._is_covered(tx, head.stream_no):
            return [], False
        start, end = self._ids[0], self._ids[-1]
        return [CompactionAdded(id=new_id(), summary=self._summary, from_message_id=start, to_message_id=end)], True

    def _is_changed(self, tx: Tx, stream_no: int) -> bool:
        ids = set(self._ids)
        return any(_touches(envelope.event, ids) for envelope in events_since(tx, stream_no, self._version, _CHANGES))

    def _is_covered(self, tx: Tx, stream_no: int) -> bool:
        fresh = [span for span in list_spans(tx, stream_no) if span.row_id not in self._compactions]
        return any(_overlaps(tx, stream_no, span, self._ids[0], self._ids[-1]) for span in fresh)


class _Foreign:
    """A session of another provider, which has no transaction to decide in: its history is read once more instead."""

    def __init__(self, storage: ForeignSession) -> None:
        self._storage = storage

    async def read(self, leaf_id: str | None) -> CompactionView:
        """Read the history; of what an overlay covers only the ends are known."""
        messages = await self._storage.get_history(leaf_id)
        has_overlays = any(is_compaction_message(message) for message in messages)
        compactions = await self._storage.get_compactions() if has_overlays else []
        known = {COMPACTION_PREFIX + _field(one, "id"): one for one in compactions}
        ids: list[str] = []
        edges: list[tuple[int, int]] = []
        for message in messages:
            told = known.get(message.id)
            ends = None if told is None else (_field(told, "from_message_id"), _field(told, "to_message_id"))
            first, last = _stands_for(message, ends)
            edges.append((len(ids), len(ids) + (first != last)))
            ids += dict.fromkeys((first, last))
        return _ForeignView(messages, ids, edges, leaf_id)

    async def add(self, view: CompactionView, stretch: Stretch, summary: str) -> bool:
        """Record the compaction unless the history shows the stretch otherwise by now."""
        assert isinstance(view, _ForeignView)
        now = await self._storage.get_history(view.leaf_id)
        first = next((index for index, one in enumerate(now) if one.id == stretch.messages[0].id), 0)
        shown = now[first : first + len(stretch.messages)]
        if len(shown) < len(stretch.messages) or not all(map(_is_same, shown, stretch.messages)):
            return False
        await self._storage.add_compaction(summary, stretch.ids[0], stretch.ids[-1])
        return True


class _ForeignView(CompactionView, frozen=True):
    leaf_id: str | None


def _is_same(message: Message, before: Message) -> bool:
    """Whether a message is shown as before; an overlay is told by its id, since its time may be that of the read."""
    return message.id == before.id if is_compaction_message(message) else message == before


def _stands_for(message: Message, ends: Ends | None) -> Ends:
    return ends or (message.id, message.id)


def _touches(event: object, ids: set[str]) -> bool:
    if isinstance(event, MessageUpdated):
        return event.message["id"] in ids
    if isinstance(event, MessagesDeleted):
        return not ids.isdisjoint(event.message_ids)
    # All were cleared, or nobody can tell what was done.
    return True


def _overlaps(tx: Tx, stream_no: int, span: Span, from_id: str, to_id: str) -> bool:
    """Whether a compaction covers one of the messages between two on some path on which both ranges would be shown."""
    start, end = place_of(tx, stream_no, from_id), place_of(tx, stream_no, to_id)
    # Both are there, since none of them was deleted.
    assert start is not None
    assert end is not None
    own, its = path_to_place(tx, stream_no, *end), path_to_place(tx, stream_no, span.to_run, span.to_ordinal)
    if lies_on(own, span.to_run, span.to_ordinal):
        return lies_on(its, *start)
    return lies_on(its, *end) and lies_on(own, span.from_run, span.from_ordinal)


def _field(compaction: Any, name: str) -> str:
    """A field of a compaction as a provider tells of it: an object's attribute, or a dict's key in either spelling."""
    if not isinstance(compaction, dict):
        return str(getattr(compaction, name))
    head, *tail = name.split("_")
    camel = head + "".join(word.capitalize() for word in tail)
    return str(compaction[name] if name in compaction else compaction[camel])
