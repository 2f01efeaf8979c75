"""What an event says, in one line."""

from __future__ import annotations

import msgspec

from eventstore.envelope import UnreadableEvent
from eventstore.events import Event, LeafSelected, MessageAppended, SessionCreated
from replay.cli.text import first_words, one_line


def summary_of(event: Event | UnreadableEvent) -> str:
    """The facts of an event that tell it from others of its type; of other types their fields."""
    match event:
        case SessionCreated():
            return one_line(event.name)
        case MessageAppended():
            return f"{one_line(event.message['role'])}: {first_words(event.message)}"
        case LeafSelected():
            return one_line(event.message_id)
        case UnreadableEvent():
            return f"cannot be read: {one_line(event.reason)}"
        case _:
            return one_line(msgspec.json.encode(event).decode())
