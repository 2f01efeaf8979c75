"""Messages from JSON that a person hands over: one, a list of them, or one per line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from eventstore.decoding import decode_json
from replay.cli.failures import FAILURE, Failure

STDIN = "-"


def read_messages(source: str) -> list[dict[str, Any]]:
    """The messages in a file, or in standard input for `-`; raises Failure for what is no JSON or holds none."""
    if source == STDIN:
        name, content = "standard input", sys.stdin.buffer.read()
    else:
        name, content = source, Path(source).read_bytes()
    values = _values(name, content)
    if not values:
        raise Failure(f"{name} holds no message", exit_code=FAILURE)
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise Failure(f"{name}, message {number}: a message is an object", HINT)
    return values


HINT = """a message is {"role": "user", "parts": [{"type": "text", "text": "…"}]}"""


def _values(name: str, content: bytes) -> list[Any]:
    try:
        whole = decode_json(content)
    except (ValueError, RecursionError):
        lines = enumerate(content.splitlines(), start=1)
        return [_value(f"{name}, line {number}", line) for number, line in lines if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _value(place: str, line: bytes) -> Any:
    try:
        return decode_json(line)
    except (ValueError, RecursionError):
        raise Failure(f"{place}: this is no JSON, or nested too deep, or holds a number too long", HINT) from None
