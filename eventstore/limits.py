"""What is let in: JSON values only, within limits, checked once, level by level, before anything is written."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from eventstore.errors import InvalidArgumentError, InvalidMessageError, LimitExceededError

INT64: Final = 1 << 63
MANY_VALUES: Final = 1_000_000
"""Above so many values the same object is counted as often as it stands, since sharing can make a few objects huge."""


_MOST = {"depth": 300, "int_digits": 4_300}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How large things may be; sizes are in bytes of UTF-8.

    Raises InvalidArgumentError for a limit that is no number from 1 on, a depth above 300 or more than 4,300 digits:
    decoders and Python itself go no further.
    """

    depth: int = 200
    id_bytes: int = 512
    parts: int = 10_000
    message_bytes: int = 64 << 20
    int_digits: int = 4_300
    block_bytes: int = 4 << 20
    title_bytes: int = 4 << 10

    def __post_init__(self) -> None:
        """Refuse limits that cannot be kept."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            most = _MOST.get(name, sys.maxsize)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise InvalidArgumentError(f"limits.{name}", f"must be a number from 1 to {most}")


def encode_json(value: object, limits: Limits, path: str = "") -> bytes:
    """The compact JSON of a value, which stands at a path, with lone surrogates replaced by U+FFFD.

    Raises InvalidMessageError with the path of a value that is not JSON's, and LimitExceededError for a value that is
    nested too deep, too large, or a number with too many digits.
    """
    value = _checked(value, limits, path)
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(_without_surrogates(value, path))
    if len(encoded) > limits.message_bytes:
        raise LimitExceededError("message_bytes", limits.message_bytes, path)
    return encoded


def clean_text(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def check_id(value: object, name: str, limits: Limits) -> str:
    """An identifier as it is stored: a text without NUL of at most `id_bytes`; else InvalidArgumentError."""
    if not isinstance(value, str):
        raise InvalidArgumentError(name, f"must be a string, not {type(value).__name__}")
    text = value if type(value) is str and value.isascii() else clean_text(str.__str__(value))
    if "\0" in text:
        raise InvalidArgumentError(name, "must not hold NUL")
    if len(text if text.isascii() else text.encode()) > limits.id_bytes:
        raise LimitExceededError("id_bytes", limits.id_bytes, name)
    return text


def _checked(value: object, limits: Limits, path: str) -> object:
    """The value itself when all of it is plain JSON, a plain copy when subclasses stand in it."""
    level: list[Any] = [value]
    depth = seen = 0
    plain = True
    while level:
        below: list[Any] = []
        seen += len(level)
        if seen > MANY_VALUES:
            _check_expanded_size(value, limits)
            seen = -(1 << 62)
        for item in level:
            kind = type(item)
            if kind is str or item is None or kind is bool:
                continue
            if kind is int:
                if not -INT64 <= item < INT64:
                    plain = False
            elif kind is float:
                if not math.isfinite(item):
                    plain = False
            elif kind is dict:
                below += item.values()
                for key in item:
                    if type(key) is not str:
                        plain = False
            elif kind is list or kind is tuple:
                below += item
            else:
                plain = False
        depth += 1
        if depth > limits.depth + 1:
            raise LimitExceededError("depth", limits.depth, _path_of_depth(value, limits.depth))
        level = below
    return value if plain else _plain_copy(value, limits, path)


def _plain_copy(value: Any, limits: Limits, path: str) -> object:
    """The value in plain types; raises for the first value that JSON has no place for (depth is checked before)."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int(value)
        digits = limits.int_digits
        if abs(number) >= INT64 and number.bit_length() > 3.3 * digits and abs(number) >= 10**digits:
            raise LimitExceededError("int_digits", limits.int_digits, path)
        return number
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidMessageError(path, f"{value} is not a number that JSON has")
        return float(value)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise InvalidMessageError(path, f"keys must be strings, not {type(key).__name__}")
        return {str.__str__(key): _plain_copy(item, limits, _member(path, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_copy(item, limits, f"{path}[{index}]") for index, item in enumerate(value)]
    raise InvalidMessageError(path, f"{type(value).__name__} is not a value that JSON has")


def _without_surrogates(value: Any, path: str) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        cleaned = {clean_text(key): _without_surrogates(item, _member(path, key)) for key, item in value.items()}
        if len(cleaned) < len(value):
            raise InvalidMessageError(path, "keys differ in nothing but lone surrogates")
        return cleaned
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return value


def _member(path: str, key: str) -> str:
    name = clean_text(str.__str__(key))
    return f"{path}.{name}" if path else name


def _children(item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict):
        yield from ((f".{key}", child) for key, child in item.items())
    elif isinstance(item, (list, tuple)):
        yield from ((f"[{index}]", child) for index, child in enumerate(item))


def _path_of_depth(value: object, depth: int) -> str:
    """The path of one value that lies deeper, cut to its first steps."""
    stack = [("", value, 0)]
    while stack:
        path, item, at = stack.pop()
        if at > depth:
            return clean_text(path.removeprefix("."))
        stack += [(path + step if at < 8 else path, child, at + 1) for step, child in _children(item)]
    return ""


def _check_expanded_size(value: object, limits: Limits) -> None:
    """Refuse a value whose shared objects, written out, would pass the limit: each value takes a byte at least."""
    level = {id(value): (value, 1)}
    total = depth = 0
    while level and depth <= limits.depth:
        below: dict[int, tuple[Any, int]] = {}
        for item, times in level.values():
            for _, child in _children(item):
                total += times
                known = below.get(id(child))
                below[id(child)] = (child, times + (known[1] if known else 0))
        if total > limits.message_bytes:
            raise LimitExceededError("message_bytes", limits.message_bytes, "")
        level, depth = below, depth + 1
