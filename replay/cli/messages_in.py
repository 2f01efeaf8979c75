"""Messages from JSON that a person hands over: one, a list of them, or one per line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from eventstore.decoding import decode_json
from replay.cli.failures import FAILURE, Failure

STDIN: Final = "-"
HINT: Final = """a message is {"role": "user", "parts": [{"type": "text", "text": "…"}]}"""
KINDS: Final = {str: "a string", list: "a list", dict: "an object", bool: "a boolean", type(None): "null"}
"""What people call the values of JSON; whatever else there is are numbers."""


def read_messages(source: str) -> list[dict[str, Any]]:
    """The messages in a file, or in standard input for `-`; raises Failure for what is no JSON or holds none.

    What is no message is named by its place in the file and, as far as that can be seen here, by its path in the
    message.
    """
    if source == STDIN:
        name, content = "standard input", sys.stdin.buffer.read()
    else:
        name, content = source, Path(source).read_bytes()
    messages: list[dict[str, Any]] = []
    for place, value in _values(name, content):
        if not isinstance(value, dict):
            raise Failure(f"{place}: a message is an object", HINT)
        wrong = next(_wrong(value), None)
        if wrong is not None:
            raise Failure(f"{place}: {wrong}", HINT)
        messages.append(value)
    if not messages:
        raise Failure(f"{name} holds no message", exit_code=FAILURE)
    return messages


def _values(name: str, content: bytes) -> Iterator[tuple[str, Any]]:
    """What may be a message, each with its place."""
    try:
        whole = decode_json(content)
    except (ValueError, RecursionError):
        for number, line in enumerate(content.splitlines(), start=1):
            if line.strip():
                place = f"{name}, line {number}"
                yield place, _value(place, line)
        return
    if isinstance(whole, list):
        yield from ((f"{name}, message {number}", value) for number, value in enumerate(whole, start=1))
    else:
        yield name, whole


def _value(place: str, line: bytes) -> Any:
    try:
        return decode_json(line)
    except (ValueError, RecursionError):
        raise Failure(f"{place}: this is no JSON, or nested too deep, or holds a number too long", HINT) from None


def _wrong(message: Mapping[str, Any]) -> Iterator[str]:
    """What a message has not, or has of another kind, each by its path."""
    yield from _unless(str, message, "role")
    yield from _unless(list, message, "parts")
    for index, part in enumerate(message["parts"]):
        if not isinstance(part, dict):
            yield f"parts[{index}] must be an object, not {_kind(part)}"
        yield from _unless(str, part, "type", f"parts[{index}].")


def _unless(kind: type, value: Mapping[str, Any], key: str, path: str = "") -> Iterator[str]:
    if key not in value:
        yield f"{path}{key} is missing"
    elif not isinstance(value[key], kind):
        yield f"{path}{key} must be {KINDS[kind]}, not {_kind(value[key])}"


def _kind(value: object) -> str:
    return KINDS.get(type(value), "a number")
