"""The decision of an append: where a message hangs, and whether it is there already."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from eventstore.decoding import decode_json
from eventstore.envelope import Envelope
from eventstore.errors import (
    DuplicateMessageError,
    IntegrityError,
    MessageDeletedError,
    ParentNotFoundError,
    SessionDeletedError,
)
from eventstore.events import Event, LeafSelected, MessageAppended, SessionCreated
from eventstore.heads import Head
from eventstore.ports import Tx
from eventstore.rows import find_position
from eventstore.same import same_json
from projections.compactions import find_ends
from projections.message import with_own_time
from projections.stored import Tree, find_message, is_spent, tree_of
from sessions.marking import is_stored_as
from sessions.message import Accepted, Message


class Auto(enum.Enum):
    """The parent of a message that names none: the tip at the moment of writing."""

    AUTO = "the tip"


AUTO = Auto.AUTO
Parent = str | None | Auto


class AppendResult(msgspec.Struct, frozen=True):
    """What became of a message: `inserted` is False for one that was there already.

    `version` and `position` are those of the event that first appended it.
    """

    message: Message
    inserted: bool
    version: int
    position: int


def check_open(tx: Tx, head: Head) -> Tree:
    """Where a session's tree stands once what is pending of the session is applied; raises SessionDeletedError.

    What is pending of others may be not: who looks at tables of many sessions flushes before.
    """
    if head.pending:
        tx.flush()
    tree = tree_of(tx, head.stream_no) if head.stream_no else Tree()
    if tree.deleted:
        raise SessionDeletedError(head.stream_id)
    return tree


class AppendMessages:
    """Decides the events of messages that are appended as a chain, the first of them under `parent`.

    `created_at` is an own time for all of them that their JSON does not hold. The result has for each message the
    event that appended it before, or None for a new one.
    """

    def __init__(self, messages: Sequence[Accepted], parent: Parent, created_at: dt.datetime | None = None) -> None:
        self._messages = messages
        self._parent = parent
        self._created_at = created_at

    def __call__(self, tx: Tx, head: Head) -> tuple[list[Event], list[Envelope | None]]:
        """Decide inside the write transaction: nothing can change between the look and the append."""
        view = _View(tx, head)
        events: list[Event] = []
        found: list[Envelope | None] = []
        fresh: dict[str, int] = {}
        parent = view.without_overlay(self._parent)
        # An overlay's end may have moved since a message was first appended under it.
        given = parent if parent == self._parent else AUTO
        for message in self._messages:
            first = view.first_append(message.id)
            if first is None and message.id in fresh:
                raise DuplicateMessageError(head.stream_id, message.id)
            if first is not None:
                view.check_same(message, given, self._created_at, first)
            else:
                under = view.resolve(parent, fresh)
                raw = msgspec.Raw(message.json)
                events.append(MessageAppended(raw=raw, parent_id=under, created_at=self._created_at))
                fresh[message.id] = len(events)
            found.append(first)
            parent = given = message.id
        return events, found


class _Pending(msgspec.Struct):
    """What is pending of a session: its appends by message id, and the tip, if it moves it.

    Kept up to date from one decision of a group to the next, instead of made anew for each.
    """

    messages: dict[str, Envelope]
    tip: str | None = None
    seen: int = 0
    # Nothing but appends and moves of the tip, so that the tables still show what they show.
    only_adds: bool = True

    @staticmethod
    def of(head: Head) -> _Pending:
        known: _Pending | None = head.memo.get(_Pending)
        if known is None:
            known = head.memo[_Pending] = _Pending({})
        for envelope in head.pending[known.seen :]:
            event = envelope.event
            if isinstance(event, MessageAppended):
                known.tip = event.message["id"]
                known.messages[known.tip] = envelope
            elif isinstance(event, LeafSelected):
                known.tip = event.message_id
            elif not isinstance(event, SessionCreated):
                known.only_adds = False
        known.seen = len(head.pending)
        return known


class _View:
    """What a session holds at the moment of writing: its tables, and the events not yet applied to them."""

    def __init__(self, tx: Tx, head: Head) -> None:
        self._tx = tx
        self._head = head
        self._pending = _Pending.of(head)
        if not self._pending.only_adds:
            tx.flush()
            self._pending = _Pending.of(head)

    def without_overlay(self, parent: Parent) -> Parent:
        """The parent; for an overlay the last message of its range."""
        ends = find_ends(self._tx, self._head.stream_no, parent) if isinstance(parent, str) else None
        return ends[1] if ends else parent

    def first_append(self, message_id: str) -> Envelope | None:
        """The event that appended a message with this id; raises MessageDeletedError for an id that is spent."""
        pending = self._pending.messages.get(message_id)
        if pending is not None or self._head.stored_version == 0:
            return pending
        tree = self._tree()
        if tree.deleted:
            raise SessionDeletedError(self._head.stream_id)
        if self._tx.hurried and not tree.spent:
            # The table refuses it if it is there.
            return None
        stored = find_message(self._tx, self._head.stream_no, message_id)
        if stored is not None:
            return find_position(self._tx, stored.position)
        if tree.spent and is_spent(self._tx, self._head.stream_no, message_id):
            raise MessageDeletedError(self._head.stream_id, message_id)
        return None

    def resolve(self, parent: Parent, fresh: dict[str, int]) -> str | None:
        """The id under which a new message hangs; raises ParentNotFoundError."""
        if isinstance(parent, Auto):
            return self._latest()
        if parent is None or parent in fresh or parent in self._pending.messages or self._is_stored(parent):
            return parent
        raise ParentNotFoundError(self._head.stream_id, parent)

    def check_same(self, message: Accepted, parent: Parent, created_at: dt.datetime | None, first: Envelope) -> None:
        """Raise DuplicateMessageError unless the message is the one that was appended, or as it is stored now."""
        event = first.event
        if not isinstance(event, MessageAppended):
            raise IntegrityError(f"session {self._head.stream_id!r}: version {first.version} is no readable append")
        same_place = isinstance(parent, Auto) or parent == event.parent_id
        if same_place and created_at in (None, event.created_at):
            again = decode_json(message.json)
            if same_json(again, event.message) or self._is_stored_as(message.id, again):
                return
            # As it was handed out, with the own time that only the event holds.
            time = event.created_at
            if time is not None and same_json(again, decode_json(with_own_time(event.message, time))):
                return
        raise DuplicateMessageError(self._head.stream_id, message.id)

    def _latest(self) -> str | None:
        return self._tree().message_id if self._pending.tip is None else self._pending.tip

    def _tree(self) -> Tree:
        """Where the tables stand."""
        return tree_of(self._tx, self._head.stream_no) if self._head.stored_version else Tree()

    def _is_stored(self, message_id: str) -> bool:
        return self._head.stored_version > 0 and find_message(self._tx, self._head.stream_no, message_id) is not None

    def _is_stored_as(self, message_id: str, content: Mapping[str, Any]) -> bool:
        stored = find_message(self._tx, self._head.stream_no, message_id)
        return stored is not None and is_stored_as(self._tx, self._head.stream_no, stored, content)
