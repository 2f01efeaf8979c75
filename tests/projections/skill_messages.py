"""Messages of a model that called the skill tools, as dicts and as events."""

from __future__ import annotations

from typing import Any

import msgspec

from eventstore import MessageAppended, MessageUpdated


def call(tool: str, label: str, key: str, output: Any, *, call_id: str = "c", **more: Any) -> dict[str, Any]:
    """Return the part of a call that was answered."""
    about = {"toolName": tool, "toolCallId": call_id, "state": "output-available"}
    return {"type": "dynamic-tool", **about, "input": {"label": label, "key": key}, "output": output, **more}


def answer(name: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the model."""
    return {"id": name, "role": "assistant", "parts": list(parts)}


def loading(name: str, label: str, key: str, body: Any, parent: str | None = None) -> MessageAppended:
    """Return the event that appends a message with the body of a skill."""
    message = answer(name, call("load_context", label, key, body))
    return MessageAppended(raw=msgspec.Raw(msgspec.json.encode(message)), parent_id=parent)


def reloading(name: str, label: str, key: str, body: Any) -> MessageUpdated:
    """Return the event that replaces a message's content by the body of a skill."""
    return MessageUpdated(raw=msgspec.Raw(msgspec.json.encode(answer(name, call("load_context", label, key, body)))))
