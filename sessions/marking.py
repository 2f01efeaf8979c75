"""Messages as they are shown once a skill was unloaded: a marker stands in place of every copy of its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from eventstore.decoding import decode_json
from eventstore.ports import Tx
from eventstore.same import same_json
from projections.skill_calls import with_marker
from projections.skills import Marks, unloaded_copies
from projections.stored import StoredMessage
from sessions.message import Message


def with_markers(messages: list[Message], marks: Marks) -> list[Message]:
    """The messages as they are shown."""
    if not marks:
        return messages
    return [_marked(message, marks) if message.id in marks else message for message in messages]


def mark(message: Mapping[str, Any], marks: Marks) -> dict[str, Any]:
    """A message, as a dict, as it is shown."""
    parts = list(message["parts"])
    for place, key in marks.get(message["id"], ()):
        parts[place] = with_marker(parts[place], key)
    return {**message, "parts": parts}


def is_stored_as(tx: Tx, stream_no: int, stored: StoredMessage, content: Mapping[str, Any]) -> bool:
    """Whether a message is stored with this content, or shown with it."""
    held = decode_json(stored.content)
    return same_json(content, held) or same_json(content, mark(held, unloaded_copies(tx, stream_no)))


def _marked(message: Message, marks: Marks) -> Message:
    return message.with_json(msgspec.json.encode(mark(message.to_dict(), marks)))
