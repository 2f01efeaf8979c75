"""The decisions of everything but an append: edits, deletions, compactions, a chosen branch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import msgspec

from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.errors import InvalidCompactionError, MessageNotFoundError, told
from eventstore.events import (
    CompactionAdded,
    Event,
    LeafSelected,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
)
from eventstore.heads import Head
from eventstore.ids import new_id
from eventstore.ports import Tx
from eventstore.rows import find_position
from projections.compactions import find_ends
from projections.paths import lies_on, path_to, place_of
from projections.skills import loaded_skills
from projections.stored import find_message
from sessions.appending import AppendMessages, Parent, check_open
from sessions.marking import is_stored_as
from sessions.message import Accepted

Events = list[Event]


class UpdateMessage:
    """Decides the edit of a message; the result is its time as it was stored, or None for an unknown one."""

    def __init__(self, message: Accepted) -> None:
        self._message = message

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, dt.datetime | None]:
        """Decide inside the write transaction; content that is stored already is no event."""
        check_open(tx, head)
        stored = find_message(tx, head.stream_no, self._message.id)
        if stored is None:
            return [], None
        is_same = is_stored_as(tx, head.stream_no, stored, decode_json(self._message.json))
        edited: Events = [] if is_same else [MessageUpdated(raw=msgspec.Raw(self._message.json))]
        return edited, tx.dialect.to_time(stored.created_at)


class Upserted(msgspec.Struct, frozen=True):
    """What an upsert came to: the time of a message that was there, and the append of one that stays as it was."""

    created_at: dt.datetime | None = None
    first: Envelope | None = None


class UpsertMessage:
    """Decides an edit of a message that is there, and an append of one that is not."""

    def __init__(self, message: Accepted, parent: Parent) -> None:
        self._message = message
        self._update = UpdateMessage(message)
        self._append = AppendMessages([message], parent)

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, Upserted]:
        """Decide inside the write transaction."""
        events, created_at = self._update(tx, head)
        if created_at is None:
            return self._append(tx, head)[0], Upserted()
        if events:
            return events, Upserted(created_at)
        stored = find_message(tx, head.stream_no, self._message.id)
        return [], Upserted(created_at, find_position(tx, stored.position) if stored else None)


class DeleteMessages:
    """Decides which of some messages there are to delete; the result is their number."""

    def __init__(self, message_ids: Sequence[str]) -> None:
        self._message_ids = message_ids

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, int]:
        """Decide inside the write transaction."""
        check_open(tx, head)
        found = [one for one in self._message_ids if place_of(tx, head.stream_no, one) is not None]
        return ([MessagesDeleted(message_ids=found)] if found else []), len(found)


def clear_messages(tx: Tx, head: Head) -> tuple[Events, None]:
    """Decide to clear a session in which there is, or was, a message or a loaded skill."""
    tip = check_open(tx, head)
    return ([MessagesCleared()] if tip.messages or tip.spent or loaded_skills(tx, head.stream_no) else []), None


class SelectLeaf:
    """Decides that a message becomes the tip."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, None]:
        """Decide inside the write transaction; raises MessageNotFoundError."""
        tip = check_open(tx, head)
        if place_of(tx, head.stream_no, self._message_id) is None:
            raise MessageNotFoundError(head.stream_id, self._message_id)
        return ([] if tip.message_id == self._message_id else [LeafSelected(message_id=self._message_id)]), None


class AddCompaction:
    """Decides a compaction of the messages between two on one path; an end may be an overlay, and means its edge."""

    def __init__(self, summary: str, from_id: str, to_id: str) -> None:
        self._summary = summary
        self._ends = from_id, to_id

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, None]:
        """Decide inside the write transaction; raises InvalidCompactionError."""
        check_open(tx, head)
        start, end = (self._resolve(tx, head, one, edge) for edge, one in enumerate(self._ends))
        place, path = place_of(tx, head.stream_no, start), path_to(tx, head.stream_no, end)
        if place is None or not path:
            missing = start if place is None else end
            raise InvalidCompactionError(
                head.stream_id, f"there is no message {told(missing)} to be an end of a compaction"
            )
        if not lies_on(path, *place):
            raise InvalidCompactionError(head.stream_id, f"message {told(start)} is not on the path to {told(end)}")
        added = CompactionAdded(id=new_id(), summary=self._summary, from_message_id=start, to_message_id=end)
        return [added], None

    def _resolve(self, tx: Tx, head: Head, message_id: str, edge: int) -> str:
        ends = find_ends(tx, head.stream_no, message_id)
        return ends[edge] if ends else message_id
