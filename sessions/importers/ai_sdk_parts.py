"""One message of the AI SDK in the shape that it has from version 5 on; what is so already stays as it is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sessions.importers.times import read_time, wire_time

NAME: Final = "ai-sdk"
Value = dict[str, Any]
Part = dict[str, Any]

ROLES: Final = {"system", "user", "assistant", "tool"}
STATES: Final = {"partial-call": "input-streaming", "call": "input-available", "result": "output-available"}
"""What the states of a call were called in version 4."""
_TAKEN: Final = {"id", "role", "createdAt", "content", "parts", "toolInvocations", "experimental_attachments"}


def is_message(value: Value) -> bool:
    """Whether an object is a message that no other format has."""
    return isinstance(value.get("parts"), list) or ("role" in value and isinstance(value.get("toolInvocations"), list))


def role_of(value: Value) -> str:
    """The role as it is stored; what is unknown or missing is system, and so is `data` of version 4."""
    role = value.get("role")
    return role if isinstance(role, str) and role in ROLES else "system"


def own_time(value: Value) -> dt.datetime | None:
    """The time of a message, at its own key or where it is kept by custom."""
    metadata = value.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    times = map(read_time, (value.get("createdAt"), told.get("createdAt"), told.get("timestamp")))
    return next((time for time in times if time is not None), None)


def to_message(value: Value, message_id: str, role: str) -> Value:
    """The message as it is stored, under an id."""
    message: Value = {key: item for key, item in value.items() if key not in _TAKEN}
    message |= {"id": message_id, "role": role, "parts": _parts(value) or [_text("")]}
    time = own_time(value)
    if time is not None:
        message["createdAt"] = wire_time(time)
    kept: Value = {key: value[key] for key in ("id", "role") if key in value and value[key] != message[key]}
    if "createdAt" in value and read_time(value["createdAt"]) is None:
        kept["createdAt"] = value["createdAt"]
    if kept or not isinstance(message.get("metadata", {}), dict):
        metadata = message.get("metadata")
        own = metadata if isinstance(metadata, dict) else {} if metadata is None else {"metadata": metadata}
        message["metadata"] = {**own, NAME: kept} if kept else own
    return message


def _parts(value: Value) -> list[Part]:
    listed = value.get("parts")
    if isinstance(listed, list):
        parts = [_part(item) for item in listed]
    else:
        parts = list(_content(value.get("content")))
        invocations = value.get("toolInvocations")
        parts += [_invocation(item) for item in (invocations if isinstance(invocations, list) else ())]
    attached = value.get("experimental_attachments")
    return parts + [_attachment(item) for item in (attached if isinstance(attached, list) else ())]


def _content(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield _text(content)
    elif isinstance(content, list):
        yield from map(_part, content)
    elif content is not None:
        yield _data(content)


def _part(item: object) -> Part:
    if isinstance(item, str):
        return _text(item)
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return _data(item)
    old = _OLD.get(item["type"])
    return item if old is None else old(item)


def _reasoning(part: Part) -> Part:
    if "text" in part or not isinstance(part.get("reasoning"), str):
        return part
    rest = {key: item for key, item in part.items() if key not in {"type", "reasoning"}}
    return _provided({"type": "reasoning", "text": part["reasoning"]}, rest)


def _file(part: Part) -> Part:
    if "url" in part or not isinstance(part.get("data"), str):
        return part
    media_type = part.get("mediaType", part.get("mimeType"))
    media_type = media_type if isinstance(media_type, str) else "application/octet-stream"
    data = part["data"]
    url = data if data.startswith(("data:", "http:", "https:")) else f"data:{media_type};base64,{data}"
    rest = {key: item for key, item in part.items() if key not in {"type", "data", "mimeType", "mediaType"}}
    return {"type": "file", "mediaType": media_type, "url": url} | rest


def _source(part: Part) -> Part:
    source = part.get("source")
    if not isinstance(source, dict):
        return _data(part)
    told: Part = {"type": "source-url", "sourceId": source.get("id", ""), "url": source.get("url", "")}
    if "title" in source:
        told["title"] = source["title"]
    rest = {key: item for key, item in source.items() if key not in {"sourceType", "id", "url", "title"}}
    return told | rest


def _tool_invocation(part: Part) -> Part:
    return _invocation(part.get("toolInvocation"))


def _invocation(call: object) -> Part:
    """A call of version 4, which stood in an object of its own."""
    if not isinstance(call, dict):
        return _data(call)
    name, state = call.get("toolName"), call.get("state")
    has_name = isinstance(name, str) and name
    told: Part = {"type": f"tool-{name}"} if has_name else {"type": "dynamic-tool", "toolName": ""}
    told |= {
        "toolCallId": call.get("toolCallId", ""),
        "state": STATES.get(state, state) if isinstance(state, str) else "input-available",
        "input": call.get("args"),
    }
    if "result" in call:
        told |= {"state": "output-available", "output": call["result"]}
    rest = {key: item for key, item in call.items() if key not in _CALL_KEYS}
    return _provided(told, rest, "callProviderMetadata")


_CALL_KEYS: Final = {"state", "toolCallId", "toolName", "args", "result"}
_OLD: Final[Mapping[str, Callable[[Part], Part]]] = {
    "reasoning": _reasoning,
    "file": _file,
    "source": _source,
    "tool-invocation": _tool_invocation,
}
"""The parts that have changed since version 4."""


def _attachment(item: object) -> Part:
    if not isinstance(item, dict):
        return _data(item)
    media_type = item.get("contentType")
    part: Part = {
        "type": "file",
        "mediaType": media_type if isinstance(media_type, str) else "application/octet-stream",
        "url": item["url"] if isinstance(item.get("url"), str) else "",
    }
    if isinstance(item.get("name"), str):
        part["filename"] = item["name"]
    rest = {key: value for key, value in item.items() if key not in {"contentType", "url", "name"}}
    return _provided(part, rest)


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _data(data: object) -> Part:
    return {"type": f"data-{NAME}-part", "data": data}


def _provided(part: Part, rest: Value, key: str = "providerMetadata") -> Part:
    return part | {key: {NAME: rest}} if rest else part
