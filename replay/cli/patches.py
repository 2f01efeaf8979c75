"""What an event changed, as the lines of a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec

from eventstore.envelope import Envelope, UnreadableEvent
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
    SessionDeleted,
    SkillLoaded,
    SkillUnloaded,
)
from replay.cli.earlier import Earlier, Said
from replay.cli.text import counted
from sessions.exporters.markdown import parts_to_markdown

if TYPE_CHECKING:
    from eventstore.log import EventLog

LONGEST_COMPARED: Final = 2_000
"""Texts of more lines are not compared line by line, which takes time that grows with their square."""


class Patches:
    """The patches of events, which are best asked for in the order of the log."""

    def __init__(self, log: EventLog) -> None:
        self._earlier = Earlier(log)

    async def lines(self, envelope: Envelope) -> list[str]:
        """The lines of an event's patch: a head begins with @@, what was added with +, what was removed with -."""
        lines = await self._lines(envelope, envelope.event)
        await self._earlier.take_in(envelope)
        return lines

    async def _lines(self, envelope: Envelope, event: Event | UnreadableEvent) -> list[str]:
        match event:
            case UnreadableEvent():
                return [_head(f"cannot be read: {event.reason}")]
            case MessageAppended():
                return [_head(_about_append(event)), *_marked("+", _transcript(event.message))]
            case MessageUpdated():
                message_id = str(event.message["id"])
                before = (await self._earlier.messages(envelope, [message_id])).get(message_id)
                return [_head(f"message {message_id}"), *_changes(before, event.message)]
            case MessagesDeleted():
                found = await self._earlier.messages(envelope, event.message_ids)
                return [line for message_id in event.message_ids for line in _deletion(message_id, found)]
            case MessagesCleared() | SessionDeleted():
                return [_head(f"{counted(await self._count(envelope), 'message')} removed")]
            case LeafSelected():
                return [_head(f"current leaf: {event.message_id}")]
            case CompactionAdded():
                stretch = f"messages {event.from_message_id} to {event.to_message_id}"
                return [_head(f"compaction {event.id}: {stretch}"), *_marked("+", event.summary)]
            case ContextBlockSet():
                return [_head(f"block {event.label}"), *_marked("+", event.content)]
            case ContextBlockRemoved():
                return [_head(f"block {event.label} removed")]
            case ContextEntrySet():
                return [_head(f"entry {event.key}"), *_marked("+", event.content)]
            case ContextEntryRemoved():
                return [_head(f"entry {event.key} removed")]
            case PromptFrozen():
                return [_head("system prompt"), *_marked("+", event.prompt)]
            case SkillLoaded():
                return [_head(f"skill {event.key} of {event.label} loaded")]
            case SkillUnloaded():
                return [_head(f"skill {event.key} of {event.label} unloaded")]
            case _:
                return _fields(event)

    async def _count(self, envelope: Envelope) -> int:
        """How many messages there were before an event."""
        count = 0
        async with aclosing(self._earlier.before(envelope)) as earlier:
            async for before in earlier:
                if isinstance(before.event, MessageAppended):
                    count += 1
                elif isinstance(before.event, MessagesDeleted):
                    count -= len(before.event.message_ids)
        return count


def _head(text: str) -> str:
    return f"@@ {' '.join(text.split())} @@"


def _marked(mark: str, text: str) -> list[str]:
    return [mark + line for line in text.split("\n")] if text else []


def _about_append(event: MessageAppended) -> str:
    place = "as a root" if event.parent_id is None else f"under {event.parent_id}"
    return f"message {event.message['id']} ({event.message['role']}) {place}"


def _deletion(message_id: str, found: Mapping[str, Said]) -> Iterator[str]:
    message = found.get(message_id)
    if message is None:
        # The event that held it was erased, or cannot be read.
        yield _head(f"message {message_id}")
        return
    yield _head(f"message {message_id} ({message['role']})")
    yield from _marked("-", _transcript(message))


def _changes(before: Said | None, after: Said) -> list[str]:
    if before is None:
        return _marked("+", _transcript(after))
    old, new = _transcript(before), _transcript(after)
    others_are_equal = {**before, "parts": []} == {**after, "parts": []}
    if not others_are_equal or old == new:
        old, new = _json(before), _json(after)
    return _diff(old.split("\n"), new.split("\n"))


def _diff(old: Sequence[str], new: Sequence[str]) -> list[str]:
    if max(len(old), len(new)) > LONGEST_COMPARED:
        return ["-" + line for line in old] + ["+" + line for line in new]
    # Behind the two lines that would name files.
    return list(difflib.unified_diff(old, new, lineterm=""))[2:]


def _transcript(message: Said) -> str:
    return "\n\n".join(parts_to_markdown(message["parts"]))


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _fields(event: Event) -> list[str]:
    fields = ((name, getattr(event, name)) for name in event.__struct_fields__)
    set_fields = ((name, value) for name, value in fields if value is not None)
    return [line for name, value in set_fields for line in _marked("+", f"{name}: {_plain(value)}")]


def _plain(value: object) -> str:
    builtin = msgspec.to_builtins(value)
    return builtin if isinstance(builtin, str) else msgspec.json.encode(builtin).decode()
