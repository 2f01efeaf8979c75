"""What is read in a message and put into one: its text for search, its own time, the ids that belong to overlays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from eventstore.decoding import decode_json

COMPACTION_PREFIX: Final = "compaction_"
"""What the ids of overlays start with; no message may have such an id."""


def message_text(message: Mapping[str, Any]) -> str:
    """The text parts of a message joined by newlines; other parts are not searched."""
    return "\n".join(
        part["text"] for part in message["parts"] if part["type"] == "text" and isinstance(part.get("text"), str)
    )


class _Part(msgspec.Struct):
    """What is read of a part; all else is skipped, which takes half the time of decoding it."""

    type: str
    text: Any = None


class _Parts(msgspec.Struct):
    """What is read of a message."""

    parts: list[_Part]


_decode_parts = msgspec.json.Decoder(_Parts).decode


def stored_text(content: str) -> str:
    """The `message_text` of a message's JSON, of which nothing else is decoded."""
    try:
        parts = _decode_parts(content).parts
    except msgspec.DecodeError:
        return message_text(decode_json(content))
    return "\n".join([part.text for part in parts if part.type == "text" and isinstance(part.text, str)])


def readable_text(content: str) -> str:
    """The same of what a row holds, whatever that is: nothing of JSON that is damaged, which verifying tells."""
    try:
        return stored_text(content)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""


def own_time(message: Mapping[str, Any]) -> dt.datetime | None:
    """The time in a message's `createdAt`, in UTC; None without one or when it cannot be read as ISO-8601.

    A time without a zone is taken as UTC, so that it means the same on every machine.
    """
    given = message.get("createdAt")
    if not isinstance(given, str):
        return None
    try:
        time = dt.datetime.fromisoformat(given)
        return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def wire_time(time: dt.datetime) -> str:
    """A time as it goes over the wire: ISO-8601 in UTC, with all its digits."""
    return time.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def with_own_time(message: Mapping[str, Any], time: dt.datetime) -> bytes:
    """The JSON of a message with an own time that its JSON does not hold."""
    return msgspec.json.encode({**message, "createdAt": wire_time(time)})
