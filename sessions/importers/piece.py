"""The decision on some messages of a conversation whose records are entered in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from eventstore.events import LeafSelected, MessageAppended, SessionCreated
from eventstore.heads import Head, WithMetadata
from eventstore.ports import Tx
from projections.compactions import find_ends
from projections.imports import find_records, imported
from projections.message import COMPACTION_PREFIX
from projections.paths import first_on, path_to
from projections.stored import find_message, is_spent
from sessions.appending import check_open
from sessions.importers.conversation import RecordedConversation, RecordedMessage, Usage
from sessions.importers.supplementing import Events, compaction_added, usage_added


class Item(msgspec.Struct, frozen=True):
    """A message that is ready to be written, with the texts of its overlays by their ids."""

    message: RecordedMessage
    json: bytes
    value: dict[str, Any]
    usage: Usage | None
    summaries: dict[str, str]


class Piece:
    """Decides inside the write transaction which of some messages are new, and the events of these."""

    def __init__(self, tx: Tx, head: Head, conversation: RecordedConversation, items: list[Item]) -> None:
        self._tx = tx
        self._head = head
        self._conversation = conversation
        self._items = items
        # For each message that is added its root if that is added too, else the stored message that it is below.
        self._anchors: dict[str, str] = {}
        # The ledger is one for all sessions.
        tx.flush()
        self._tip = check_open(tx, head)

    def new(self) -> Iterator[Item]:
        """The messages that nobody holds."""
        wanted = [record for item in self._items for record in item.message.records]
        known = find_records(self._tx, self._conversation.format, wanted)
        for item in self._items:
            if known.keys().isdisjoint(item.message.records) and not self._is_taken(item.message.id):
                yield item

    def events(self, created: Callable[[], SessionCreated], *, is_last: bool) -> tuple[Events, int]:
        """The events of those that are new, and how many these are."""
        name, anchors = self._conversation.format, self._anchors
        events: Events = [] if self._head.version else [created()]
        latest = None
        for item in self.new():
            message = item.message
            under = self._nearest(message.parent_id)
            anchors[message.id] = message.id if under is None else anchors.get(under, under)
            latest = message.id
            appended = MessageAppended(raw=msgspec.Raw(item.json), parent_id=under)
            # What it would be decoded to again, for every projection that asks.
            vars(appended)["message"] = item.value
            events.append(WithMetadata(appended, imported(name, (*message.records, *message.results))))
            if item.usage is not None:
                events.append(usage_added(item.usage))
            for overlay_id, summary in item.summaries.items():
                if self._has_summary(overlay_id):
                    continue
                first = self._root(message.id)
                events.append(compaction_added(name, overlay_id, summary, (first, message.id)))
        leaf = self._conversation.leaf_id
        if is_last and latest is not None and leaf is not None and leaf != latest and self._is_there(leaf):
            events.append(LeafSelected(message_id=leaf))
        return events, len(anchors)

    def _has_summary(self, overlay_id: str) -> bool:
        """Whether a summary was stored before, behind another message: what is between them came later."""
        if find_ends(self._tx, self._head.stream_no, COMPACTION_PREFIX + overlay_id) is not None:
            return True
        holder = find_records(self._tx, self._conversation.format, [overlay_id]).get(overlay_id)
        return holder is not None and holder.stream_no == self._head.stream_no

    def _root(self, message_id: str) -> str:
        """The root of a message that is added."""
        anchor = self._anchors[message_id]
        if anchor in self._anchors:
            return anchor
        first = first_on(self._tx, self._head.stream_no, path_to(self._tx, self._head.stream_no, anchor) or [])
        return anchor if first is None else first.id

    def _nearest(self, parent_id: str | None) -> str | None:
        """The nearest message above that is there, to hang on; None when another session has the parent."""
        while parent_id is not None and not self._is_there(parent_id):
            holder = find_records(self._tx, self._conversation.format, [parent_id]).get(parent_id)
            if holder is not None and holder.stream_no != self._head.stream_no:
                return None
            parent_id = self._conversation.messages.parent_of(parent_id)
        return parent_id

    def _is_there(self, message_id: str) -> bool:
        if message_id in self._anchors:
            return True
        return self._head.version > 0 and find_message(self._tx, self._head.stream_no, message_id) is not None

    def _is_taken(self, message_id: str) -> bool:
        if self._is_there(message_id):
            return True
        return self._tip.spent > 0 and is_spent(self._tx, self._head.stream_no, message_id)
