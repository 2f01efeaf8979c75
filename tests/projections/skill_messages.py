"""Messages of a model that called the skill tools, as dicts and as events."""

from __future__ import annotations

from typing import Any

import msgspec

from eventstore import MessageAppended, MessageUpdated


def call(tool: str, label: str, key: str, output: Any, *, call_id: str = "c", **more: Any) -> dict[str, Any]:
    """Return the part of a call that was answered."""
    about = {"toolName": tool, "toolCallId": call_id, "state": "output-available"}
    return {"type": "dynamic-tool", **about, "input": {"label": label, "key": key}, "output": output, **more}


def asking(tool: str, label: str, key: str, *, call_id: str = "c", **more: Any) -> dict[str, Any]:
    """Return the part of a call whose answer is in a part of its own."""
    return {"type": f"tool-{tool}", "toolCallId": call_id, "input": {"label": label, "key": key}, **more}


def answering(name: str, body: Any, *, call_id: str = "c", held_as: str = "result", **more: Any) -> dict[str, Any]:
    """Return a message with the answer to a call alone."""
    part = {"type": "tool-result", "toolCallId": call_id, held_as: body, **more}
    return {"id": name, "role": "tool", "parts": [part]}


def answer(name: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the model."""
    return {"id": name, "role": "assistant", "parts": list(parts)}


def loading(name: str, label: str, key: str, body: Any, parent: str | None = None) -> MessageAppended:
    """Return the event that appends a message with the body of a skill."""
    return appended(answer(name, call("load_context", label, key, body)), parent)


def appended(message: dict[str, Any], parent: str | None = None) -> MessageAppended:
    """Return the event that appends a message."""
    return MessageAppended(raw=msgspec.Raw(msgspec.json.encode(message)), parent_id=parent)


def reloading(name: str, label: str, key: str, body: Any) -> MessageUpdated:
    """Return the event that replaces a message's content by the body of a skill."""
    return MessageUpdated(raw=msgspec.Raw(msgspec.json.encode(answer(name, call("load_context", label, key, body)))))
