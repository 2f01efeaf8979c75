"""Older messages made shorter: long texts and large outputs of tools are cut, recent messages stay whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from projections.tokens import javascript_json
from sessions.arguments import Given, check_count
from sessions.characters import cut_text, utf16_length
from sessions.message import Message
from sessions.pairs import as_messages, is_tool_part, rebuilt

OMITTED: Final = "Tool output omitted because it was too large to preserve structurally."

_OUTPUTS = ("output", "result", "errorText")
_LEAST_SHARE = 80
"""The characters that each of many values may have, however little is left for all of them."""


def truncate_older_messages(
    messages: Iterable[Given],
    *,
    keep_recent: int = 4,
    max_tool_output_chars: int = 500,
    max_text_chars: int = 10_000,
) -> list[Message]:
    """The messages, those before the last `keep_recent` with their long texts and large tool outputs cut.

    What is cut says so, and how long it was. An output that is an object or a list keeps its shape as far as it can:
    its texts are cut first, then whole values give way to a marker that is shorter. Sizes are in characters as
    JavaScript counts them, of compact JSON where a value is no text. A message that needs no cut is the one given,
    and none is dropped.
    """
    check_count(keep_recent, "keep_recent")
    check_count(max_tool_output_chars, "max_tool_output_chars")
    check_count(max_text_chars, "max_text_chars")
    given = as_messages(messages)
    older = max(len(given) - keep_recent, 0)
    return [_truncated(message, max_tool_output_chars, max_text_chars) for message in given[:older]] + given[older:]


def _truncated(message: Message, max_output: int, max_text: int) -> Message:
    changes = [_changed(part, max_output, max_text) for part in message.parts]
    if not any(changes):
        return message
    data = message.to_dict()
    data["parts"] = [part | change for part, change in zip(data["parts"], changes, strict=True)]
    return rebuilt(data, message)


def _changed(part: Mapping[str, Any], max_output: int, max_text: int) -> dict[str, Any]:
    """The keys of a part that are cut, with their new values; reasoning is signed by its model, so it stays."""
    if is_tool_part(part):
        outputs = {name: part[name] for name in _OUTPUTS if name in part}
        return {name: _cut_output(value, max_output) for name, value in outputs.items() if _is_long(value, max_output)}
    text = part.get("text")
    if part["type"] == "text" and isinstance(text, str) and (length := utf16_length(text)) > max_text:
        return {"text": cut_text(text, max_text) + _ending(length)}
    return {}


def _is_long(value: Any, most: int) -> bool:
    if isinstance(value, str):
        return utf16_length(value) > most
    return isinstance(value, (dict, list)) and _json_length(value) > most


def _cut_output(value: Any, most: int) -> Any:
    return _cut_string(value, most) if isinstance(value, str) else _shrunk(value, most)[0]


def _cut_string(text: str, most: int) -> str:
    length = utf16_length(text)
    if length <= most:
        return text
    ending = _ending(length)
    return cut_text(text, most - len(ending)) + ending if most > len(ending) else ending[:most]


def _shrunk(value: Any, most: int) -> tuple[Any, int, int]:
    """A value made to fit, the length of its JSON, and what that was before; one pass, whatever the nesting."""
    if isinstance(value, str):
        shrunk = _cut_string(value, most)
        length = _json_length(value)
        return shrunk, length if shrunk is value else _json_length(shrunk), length
    if not isinstance(value, (dict, list)) or not value:
        length = _json_length(value)
        return value, length, length
    share = max(most // len(value), _LEAST_SHARE)
    items = [_shrunk(item, share) for item in (value.values() if isinstance(value, dict) else value)]
    around = 1 + len(value) + (sum(_json_length(key) + 1 for key in value) if isinstance(value, dict) else 0)
    length, original = (around + sum(item[place] for item in items) for place in (1, 2))
    if original <= most:
        return value, original, original
    shrunk = _like(value, [item[0] for item in items])
    if length > most:
        marker = _marker(value, original, most)
        if (instead := _json_length(marker)) < length:
            return marker, instead, original
    return shrunk, length, original


def _like(value: Mapping[str, Any] | Sequence[Any], items: list[Any]) -> Any:
    return dict(zip(value, items, strict=True)) if isinstance(value, Mapping) else items


def _marker(value: Any, length: int, most: int) -> Any:
    """What stands for a value that is too large; it says why where there is room for that."""
    short: dict[str, Any] = {"__truncated": True, "__truncatedChars": length}
    long = short | {"note": OMITTED}
    marker = long if _json_length([long]) <= most else short
    return [marker] if isinstance(value, list) else marker


def _ending(length: int) -> str:
    return f"... [truncated {length} chars]"


def _json_length(value: Any) -> int:
    # Of what makes an output large, numbers are the most.
    return len(str(value)) if type(value) is int else utf16_length(javascript_json(value))
