"""Messages from JSON that a person hands over: one, a list of them, or one per line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from eventstore.decoding import decode_json
from eventstore.errors import InvalidMessageError
from eventstore.limits import Limits
from replay.cli.failures import FAILURE, Failure
from sessions.message import check_shape

STDIN: Final = "-"
HINT: Final = """a message is {"role": "user", "parts": [{"type": "text", "text": "…"}]}"""


def read_messages(source: str) -> list[dict[str, Any]]:
    """The messages in a file, or in standard input for `-`; raises Failure for what is no JSON or holds none.

    What is no message is named by its place in the file, and what a message lacks also by its path in the message.
    """
    if source == STDIN:
        name, content = "standard input", sys.stdin.buffer.read()
    else:
        name, content = source, Path(source).read_bytes()
    messages: list[dict[str, Any]] = []
    for place, value in _values(name, content):
        if not isinstance(value, dict):
            raise Failure(f"{place}: a message is an object", HINT)
        try:
            check_shape(value, Limits())
        except InvalidMessageError as error:
            raise Failure(f"{place}: {error.path} {error.reason}", HINT) from error
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
