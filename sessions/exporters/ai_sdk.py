"""The messages of one path as a list of `UIMessage`, the form that Vercel's AI SDK keeps conversations in."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from sessions.exporters.source import Source

ROLES: Final = ("system", "user", "assistant")
_PLACES: Final = ("id", "role", "metadata", "parts")


async def export(source: Source) -> AsyncGenerator[str, None]:
    """A JSON array of the messages themselves, one a line; summaries do not stand for any."""
    yield "["
    between = "\n"
    async for node in source.path():
        yield between + msgspec.json.encode(to_ui_message(node.message.to_dict())).decode()
        between = ",\n"
    yield "\n]\n"


def to_ui_message(message: dict[str, Any]) -> dict[str, Any]:
    """The message as it is, if it holds nothing that a `UIMessage` has no place for; that goes to its metadata.

    A role that it has not becomes `assistant` for a tool, else `system`.
    """
    metadata = message.get("metadata")
    kept: dict[str, Any] = {key: value for key, value in message.items() if key not in _PLACES}
    role = message["role"]
    if role not in ROLES:
        kept["role"] = role
        role = "assistant" if role == "tool" else "system"
    if isinstance(metadata, dict):
        kept |= metadata
    elif kept and metadata is not None:
        kept["metadata"] = metadata
    told = {key: value for key, value in message.items() if key in _PLACES} | {"role": role}
    return told | {"metadata": kept} if kept else told
