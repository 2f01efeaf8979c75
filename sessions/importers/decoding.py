"""JSON text to a value, as far as it can be read, with word of the bytes that had to be replaced."""

from __future__ import annotations

import json
from typing import Final, NoReturn

import msgspec

TOO_DEEP: Final = "nested too deep"


class UnreadableError(ValueError):
    """Text that is no JSON, or is nested too deep: the reason, and where known the line (1-based) of the text."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class Damage(msgspec.Struct, frozen=True):
    """Bytes that are no UTF-8 and were replaced: what they are, and the line (1-based) of the text with the first."""

    reason: str
    line: int


class Decoded(msgspec.Struct, frozen=True):
    """The value of JSON text, and what of the text was damaged."""

    value: object
    damage: Damage | None = None


def decode(raw: bytes | msgspec.Raw) -> Decoded:
    """The value of JSON text; lone surrogates and bytes that are no UTF-8 become U+FFFD, the latter as damage.

    Raises UnreadableError for what is no JSON, or is nested too deep to be decoded.
    """
    try:
        try:
            return Decoded(msgspec.json.decode(raw))
        except msgspec.DecodeError:
            return _decode_leniently(bytes(raw))
    except (ValueError, RecursionError) as error:
        raise unreadable(error) from None


def is_json(raw: bytes) -> bool:
    """Whether this is JSON text, damaged or not."""
    try:
        decode(raw)
    except UnreadableError:
        return False
    return True


def unreadable(error: ValueError | RecursionError) -> UnreadableError:
    """What a decoder said, as reason and line."""
    if isinstance(error, RecursionError):
        return UnreadableError(TOO_DEEP)
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg.removesuffix(" starting at")
        return UnreadableError(f"not JSON: {reason} at column {error.colno}", error.lineno)
    return UnreadableError(f"not JSON: {error}")


def _decode_leniently(data: bytes) -> Decoded:
    value = json.loads(data.decode(errors="replace"), parse_constant=_refuse)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return Decoded(msgspec.json.decode(whole), _damage(data))


def _damage(data: bytes) -> Damage | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = data[error.start : error.end].hex(" ")
        return Damage(f"damaged text, read with U+FFFD: {wrong} (hex) is not UTF-8", line)
    return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
