"""What an event says, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from eventstore.envelope import UnreadableEvent
from eventstore.events import (
    CompactionAdded,
    ContextBlockRemoved,
    ContextBlockSet,
    ContextEntryRemoved,
    ContextEntrySet,
    Event,
    LeafSelected,
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    PromptFrozen,
    SessionCreated,
    SessionDeleted,
    SessionEnded,
    SessionForked,
    SessionRenamed,
    SkillLoaded,
    SkillUnloaded,
    UsageAdded,
)
from replay.cli.text import counted, first_words, one_line

NAMED: Final = 3
"""How many ids of a list are named."""


def summary_of(event: Event | UnreadableEvent) -> str:
    """The facts of an event that tell it from others of its type."""
    if isinstance(event, UnreadableEvent):
        return f"cannot be read: {one_line(event.reason)}"
    summary = SUMMARIES.get(type(event))
    return one_line(msgspec.json.encode(event).decode() if summary is None else summary(event))


def _named(event: SessionCreated | SessionRenamed) -> str:
    return event.name


def _forked(event: SessionForked) -> str:
    return f"from {event.session_id} at {event.message_id}"


def _ended(event: SessionEnded) -> str:
    return event.reason


def _session_deleted(_event: SessionDeleted) -> str:
    return "all of the session"


def _usage(event: UsageAdded) -> str:
    model = "" if event.model is None else f" ({event.model})"
    return f"{event.input_tokens:,} tokens in, {event.output_tokens:,} out, cost {event.cost:g}{model}"


def _message(event: MessageAppended | MessageUpdated) -> str:
    return f"{one_line(event.message['role'])}: {first_words(event.message)}"


def _deleted(event: MessagesDeleted) -> str:
    more = f" and {len(event.message_ids) - NAMED:,} more" if len(event.message_ids) > NAMED else ""
    return f"{counted(len(event.message_ids), 'message')}: {', '.join(event.message_ids[:NAMED])}{more}"


def _cleared(_event: MessagesCleared) -> str:
    return "all messages and compactions"


def _selected(event: LeafSelected) -> str:
    return event.message_id


def _compacted(event: CompactionAdded) -> str:
    return f"{event.from_message_id} to {event.to_message_id}: {event.summary}"


def _block_set(event: ContextBlockSet) -> str:
    return f"{event.label}: {event.content}"


def _block_removed(event: ContextBlockRemoved) -> str:
    return event.label


def _entry_set(event: ContextEntrySet) -> str:
    return f"{event.key}: {event.content}"


def _entry_removed(event: ContextEntryRemoved) -> str:
    return event.key


def _frozen(event: PromptFrozen) -> str:
    return counted(len(event.prompt), "character")


def _skill(event: SkillLoaded | SkillUnloaded) -> str:
    return f"{event.label}: {event.key}"


SUMMARIES: Final[dict[type[Event], Callable[[Any], str]]] = {
    SessionCreated: _named,
    SessionRenamed: _named,
    SessionForked: _forked,
    SessionEnded: _ended,
    SessionDeleted: _session_deleted,
    UsageAdded: _usage,
    MessageAppended: _message,
    MessageUpdated: _message,
    MessagesDeleted: _deleted,
    MessagesCleared: _cleared,
    LeafSelected: _selected,
    CompactionAdded: _compacted,
    ContextBlockSet: _block_set,
    ContextBlockRemoved: _block_removed,
    ContextEntrySet: _entry_set,
    ContextEntryRemoved: _entry_removed,
    PromptFrozen: _frozen,
    SkillLoaded: _skill,
    SkillUnloaded: _skill,
}
"""The summary of each type of event; of a type without one all fields are shown."""
