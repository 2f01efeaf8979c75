"""The messages of one path as a list of `UIMessage`, the form that Vercel's AI SDK keeps conversations in."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from sessions.exporters.pairing import paired
from sessions.exporters.source import Source
from sessions.exporters.tools import Part, to_call

ROLES: Final = ("system", "user", "assistant")
_PLACES: Final = ("id", "role", "metadata", "parts")


async def export(source: Source) -> AsyncGenerator[str, None]:
    """A JSON array of the messages themselves, one a line; summaries do not stand for any."""
    yield "["
    between = "\n"
    async for message in paired(source, _as_data):
        yield between + msgspec.json.encode(to_ui_message(message)).decode()
        between = ",\n"
    yield "\n]\n"


def to_ui_message(message: dict[str, Any]) -> dict[str, Any]:
    """The message as it is, if it holds nothing that a `UIMessage` has no place for; that goes to its metadata.

    A role that it has not becomes `assistant` for a tool, else `system`. Calls as models are given them become calls of
    a `UIMessage`.
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
    told = {key: value for key, value in message.items() if key in _PLACES}
    told |= {"role": role, "parts": [_part(part) for part in message["parts"]]}
    return told | {"metadata": kept} if kept else told


def _part(part: Part) -> Part:
    # A part of this type with a name of its own would be taken for a call of a tool that is named "call".
    if part["type"] != "tool-call" or "toolName" not in part:
        return part
    call = {"type": "dynamic-tool", "state": "input-available", "input": to_call(part).given.get("input")}
    return call | {key: value for key, value in part.items() if key not in {"type", "args"}}


def _as_data(result: Part) -> Part:
    """A result of no call, which a `UIMessage` has no part for but this."""
    return {"type": "data-tool-result", "data": result}
