"""The records of a Claude Code message as parts; what no part says is kept in the message's metadata, as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from sessions.importers.claude_lines import TOOL_CALL, TOOL_RESULT
from sessions.importers.conversation import Content, Usage
from sessions.importers.times import read_time, wire_time

NAME: Final = "claude-code"
Part = dict[str, Any]
Value = dict[str, Any]

_ALWAYS: Final = frozenset({"uuid", "parentUuid", "message"})
"""What is kept of a record elsewhere, if it has the value that it always has."""


class Raw(msgspec.Struct, frozen=True):
    """A record as it was read, and for its calls and results in their order: what came of each.

    Of a call that is the outputs that answer it, or None when it is dropped; of a result whether it answers one.
    """

    value: Value
    outputs: Sequence[Sequence[Value] | None] = ()
    answers: Sequence[bool] = ()


def render(
    role: str, records: Sequence[Raw], results: Sequence[Value], *, session_id: str | None, repaired: bool
) -> Content:
    """The message that records make; `results` are those whose content folded into it.

    Of a record in the file of a session it is not kept that it is the session's: where it is copied it is another's.
    """
    first = records[0].value
    parts = [part for record in records for part in _parts(record, role)]
    message: Value = {"id": first["uuid"], "role": role, "parts": parts or [_text("")]}
    time = read_time(first.get("timestamp"))
    if time is not None:
        message["createdAt"] = wire_time(time)
    kept: Value = {"record": _left(first)}
    if first.get("sessionId") == session_id:
        kept["record"].pop("sessionId", None)
    if repaired:
        kept["parent"] = first.get("parentUuid")
    for name, others in (("merged", [record.value for record in records[1:]]), ("results", results)):
        if others:
            kept[name] = [_difference(other, first) for other in others]
    message["metadata"] = {NAME: kept}
    if first.get("isMeta") is True:
        message["metadata"]["hidden"] = True
    return Content(message, _usage([record.value for record in records]) if role == "assistant" else None)


def text_of(value: Value) -> str:
    """The text of a record's message, as a summary is read."""
    return "\n".join(part["text"] for part in _parts(Raw(value), "user") if part["type"] == "text")


def _parts(record: Raw, role: str) -> Iterator[Part]:
    said = record.value.get("message")
    content = said.get("content") if isinstance(said, dict) else None
    outputs, answers = iter(record.outputs), iter(record.answers)
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        if isinstance(block, str):
            yield _text(block)
        elif not isinstance(block, dict):
            if block is not None:
                yield _data(block)
        elif block.get("type") == TOOL_CALL and record.outputs:
            given = next(outputs, ())
            if given is not None:
                yield _call(block, f"{record.value['uuid']}-{number}", given)
        elif block.get("type") == TOOL_RESULT and record.answers:
            if not next(answers, False):
                yield from _unanswered(block) if role == "tool" else [_data(block)]
        else:
            yield _part(block)


def _part(block: Value) -> Part:
    kind, rest = block.get("type"), _without(block, "type")
    if kind == "text" and isinstance(block.get("text"), str):
        return _provided(_text(block["text"]), _without(rest, "text"), NAME)
    if kind == "thinking":
        thought = block.get("thinking")
        part = {"type": "reasoning", "text": thought if isinstance(thought, str) else ""}
        return _provided(part, _without(rest, "thinking") if isinstance(thought, str) else rest, "anthropic")
    if kind == "redacted_thinking":
        return _provided({"type": "reasoning", "text": ""}, {"redactedData": block.get("data")}, "anthropic")
    if kind in ("image", "document"):
        return _file(kind, block)
    return _data(block)


def _call(block: Value, own_id: str, outputs: Sequence[Value]) -> Part:
    name, call_id = block.get("name"), block.get("id")
    part: Part = {
        "type": "dynamic-tool",
        "toolName": name if isinstance(name, str) else "",
        "toolCallId": call_id if call_id and isinstance(call_id, str) else own_id,
        "state": "input-available",
        "input": block.get("input"),
    }
    if outputs:
        said = [_output(result) for result in outputs]
        output = said[0] if len(said) == 1 else said
        if all(result.get("is_error") is True for result in outputs):
            text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
            part |= {"state": "output-error", "errorText": text}
        else:
            part |= {"state": "output-available", "output": output}
    return _provided(part, _without(block, "type", "name", "id", "input"), NAME, "callProviderMetadata")


def _output(result: Value) -> object:
    """What a tool gave back: a text where it is one text, else the blocks as they are."""
    content = result.get("content")
    if isinstance(content, list) and len(content) == 1:
        (block,) = content
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            return block["text"]
    return "" if content is None else content


def _unanswered(result: Value) -> Iterator[Part]:
    content = result.get("content")
    rest = _without(result, "type", "content")
    for part in _parts(Raw({"message": {"content": "" if content is None else content}}), "user"):
        yield _provided(part, rest, NAME)
        rest = {}


def _file(kind: str, block: Value) -> Part:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    media_type = source.get("media_type")
    if not isinstance(media_type, str):
        media_type = "image/*" if kind == "image" else "application/octet-stream"
    data, url = source.get("data"), source.get("url") or source.get("file_id")
    if isinstance(data, str):
        is_text = source.get("type") == "text"
        url = f"data:{media_type},{quote(data)}" if is_text else f"data:{media_type};base64,{data}"
    part: Part = {"type": "file", "mediaType": media_type, "url": url if isinstance(url, str) else ""}
    if isinstance(block.get("title"), str):
        part["filename"] = block["title"]
    return _provided(part, _without(block, "type", "source", "title"), NAME)


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _data(block: object) -> Part:
    kind = block.get("type") if isinstance(block, dict) else None
    return {"type": f"data-{NAME}-{kind if kind and isinstance(kind, str) else 'block'}", "data": block}


def _provided(part: Part, rest: Value, provider: str, key: str = "providerMetadata") -> Part:
    return part | {key: {provider: rest}} if rest else part


def _without(value: Value, *keys: str) -> Value:
    return {key: item for key, item in value.items() if key not in keys}


def _left(record: Value) -> Value:
    """The record without what the message says."""
    left = {key: item for key, item in record.items() if key not in _ALWAYS}
    if read_time(left.get("timestamp")) is not None:
        del left["timestamp"]
    message = record.get("message")
    if isinstance(message, dict):
        left["message"] = _without(message, "content", "role", "type")
    return left


def _difference(record: Value, first: Value) -> Value:
    """What a record says that the first one does not."""
    left = {key: item for key, item in record.items() if key not in _ALWAYS and first.get(key) != item}
    message, other = record.get("message"), first.get("message")
    if isinstance(message, dict):
        known: Mapping[str, Any] = other if isinstance(other, dict) else {}
        said = {key: item for key, item in message.items() if key != "content" and known.get(key) != item}
        if said:
            left["message"] = said
    return {"uuid": record.get("uuid"), **left}


def _usage(records: Sequence[Value]) -> Usage | None:
    """The usage of a response, which each of its records tells as far as it had come."""
    told = [said for record in records if isinstance(said := record.get("message"), dict)]
    usages = [usage for said in told if isinstance(usage := said.get("usage"), dict)]
    read, written = (max((_count(usage.get(key)) for usage in usages), default=0) for key in _TOKENS)
    cost = max((_cost(record.get("costUSD")) for record in records), default=0.0)
    if not read and not written and not cost:
        return None
    models = (said.get("model") for said in reversed(told))
    return Usage(read, written, cost, next((model for model in models if isinstance(model, str)), None))


_TOKENS: Final = ("input_tokens", "output_tokens")


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def _cost(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15 else 0.0
