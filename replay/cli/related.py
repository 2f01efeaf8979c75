"""Which events of a stream belong together: those about the same messages, and those that one of them caused."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, select

from eventstore.envelope import Envelope, UnreadableEvent
from eventstore.events import (
    CompactionAdded,
    Event,
    LeafSelected,
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    SessionDeleted,
    SessionForked,
)
from eventstore.rows import find_position
from eventstore.statements import Statement
from eventstore.tables import events
from replay.cli.earlier import said_by
from replay.cli.summaries import summary_of

if TYPE_CHECKING:
    from eventstore.log import EventLog
    from eventstore.ports import Tx

CORRELATION: Final = "correlation_id"
CAUSATION: Final = "causation_id"
"""The keys of metadata that say what an event belongs to, and which event led to it."""
RELATIONS: Final[dict[type, str]] = {
    MessageAppended: "appended",
    MessageUpdated: "updated",
    MessagesDeleted: "deleted",
    MessagesCleared: "cleared",
    LeafSelected: "selected",
    CompactionAdded: "compacted",
    SessionDeleted: "deleted",
}
"""What an event of each type did to the messages that it names."""

_BY_ID = Statement(
    select(events.c.position).where(events.c.event_id == bindparam("event_id")).order_by(events.c.position),
    "event_id",
)

Related = dict[str, Any]
"""An event as it is told beside another one: its `relation` to that one, place, type, id and summary."""


async def cause_of(log: EventLog, envelope: Envelope) -> list[Related]:
    """What an event came from: the events that its metadata names, what its messages were before, a fork's origin."""
    named = await log.read(partial(_named, envelope=envelope))
    wanted = messages_of(envelope.event)
    parent_id = envelope.event.parent_id if isinstance(envelope.event, MessageAppended) else None
    found: list[Related] = []
    if wanted or parent_id is not None:
        async with aclosing(log.read_stream(envelope.stream_id, to_version=envelope.version - 1)) as earlier:
            async for before in earlier:
                if isinstance(before.event, MessagesCleared):
                    # The same ids are other messages from here on.
                    found.clear()
                elif (said := said_by(before.event)) is not None:
                    if said in wanted:
                        found.append(_related(RELATIONS[type(before.event)], before))
                    elif said == parent_id and isinstance(before.event, MessageAppended):
                        found.append(_related("parent", before))
    if isinstance(envelope.event, SessionForked):
        origin = log.read_stream(
            envelope.event.session_id, from_version=envelope.event.version, to_version=envelope.event.version
        )
        found += [_related("origin", original) async for original in origin]
    return [*named, *found]


async def effects_of(log: EventLog, envelope: Envelope) -> list[Related]:
    """What came of an event in its stream: the later events that it caused, or that are about its messages."""
    wanted = messages_of(envelope.event)
    found: list[Related] = []
    async with aclosing(log.read_stream(envelope.stream_id, from_version=envelope.version + 1)) as later:
        async for after in later:
            relation = relation_of(after.event, wanted)
            if after.metadata.get(CAUSATION) == envelope.event_id:
                relation = "caused"
            if relation is not None:
                found.append(_related(relation, after))
            if isinstance(after.event, MessagesCleared):
                wanted.clear()
            elif isinstance(after.event, MessagesDeleted):
                wanted.difference_update(after.event.message_ids)
    return found


def messages_of(event: Event | UnreadableEvent) -> set[str]:
    """The ids of the messages that an event names as what it is about."""
    match event:
        case MessagesDeleted():
            return set(event.message_ids)
        case LeafSelected():
            return {event.message_id}
        case CompactionAdded():
            return {event.from_message_id, event.to_message_id}
        case _:
            said = said_by(event)
            return set() if said is None else {said}


def relation_of(event: Event | UnreadableEvent, wanted: set[str]) -> str | None:
    """What an event has done to, or with, any of these messages; None when it does not name them."""
    if not wanted:
        return None
    if isinstance(event, (MessagesCleared, SessionDeleted)):
        return RELATIONS[type(event)]
    if messages_of(event) & wanted:
        return RELATIONS[type(event)]
    if isinstance(event, MessageAppended) and event.parent_id in wanted:
        return "child"
    return None


def _named(tx: Tx, envelope: Envelope) -> list[Related]:
    causation = envelope.metadata.get(CAUSATION)
    rows = tx.fetch(_BY_ID, (causation,)) if isinstance(causation, str) else []
    found = (find_position(tx, row[0]) for row in rows)
    return [_related("cause", cause) for cause in found if cause is not None]


def _related(relation: str, envelope: Envelope) -> Related:
    return {
        "relation": relation,
        "position": envelope.position,
        "version": envelope.version,
        "stream_id": envelope.stream_id,
        "type": envelope.type,
        "event_id": envelope.event_id,
        "summary": summary_of(envelope.event),
    }
