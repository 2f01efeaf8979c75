"""Estimates of how many tokens a model counts for a text or a message, without a model's tokenizer.

They follow JavaScript's view of text (UTF-16 code units, its white space, its JSON), so that they agree with the
TypeScript library whose sessions these are modelled on, except that a CJK character counts as one token.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol

import msgspec

from projections.unicode_ranges import CJK

MESSAGE_TOKENS: Final = 4
"""The tokens that every message costs beside its parts."""

_CODE_UNITS_PER_TOKEN = 4
_TOKENS_PER_WORD = 1.3

# Most text has no CJK character, and two ranges are looked for much faster than all.
_PERHAPS_CJK = re.compile("[\u1100-\u11ff\u2e80-\U0010ffff]")
_CJK_RUN = re.compile(f"[{CJK.plane_0}{CJK.beyond}]+")
# What is white space in JavaScript beside that of ASCII, which is just what parts bytes.
_WIDE_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")

_PERHAPS_FLOAT = re.compile(r"(?:^|[\[:,])-?(?:[0-9]+[.e]|[NI])")
_SPACE_OR_NOT = bytes(ord(" " if code in b" \n\t\r\v\f" else "x") for code in range(0x100))
_LEAST_PLAIN_FLOAT = 1e-6
_LEAST_LARGE_FLOAT = 1e21
_any_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class HasParts(Protocol):
    """A message as an object: anything with `parts`."""

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        """The message's parts, in order."""


def estimate_string_tokens(text: str) -> int:
    """Estimate the tokens of a text: its UTF-16 code units / 4 or 1.3 times its words, whichever is more, rounded up.

    Each CJK character counts as one token and parts the words beside it; the formula is for the rest of the text.
    An empty text has none.
    """
    if text.isascii():
        return _by_formula(len(text), text.encode())
    runs = cjk_characters = 0
    # Symbols are among the candidates too: telling them apart one by one is faster than looking for runs in a text.
    if any(map(CJK.__contains__, set(_PERHAPS_CJK.findall(text)))):
        characters = len(text)
        text, runs = _CJK_RUN.subn(" ", text)
        cjk_characters = characters - len(text) + runs
    code_units = len(text.encode("utf-16-le", "surrogatepass")) // 2 - runs
    return cjk_characters + _by_formula(code_units, _WIDE_SPACE.sub(" ", text).encode("utf-8", "surrogatepass"))


def estimate_message_tokens(messages: Iterable[Mapping[str, Any] | HasParts]) -> int:
    """Estimate the tokens of messages, given as dicts or as objects with `parts`; of none it is 0."""
    return sum(
        estimate_parts_tokens(
            message["parts"] if isinstance(message, Mapping) else message.parts, estimate_string_tokens
        )
        for message in messages
    )


def estimate_parts_tokens(parts: Iterable[Mapping[str, Any]], estimate: Callable[[str], int]) -> int:
    """Estimate the tokens of one message from its parts, its texts measured by `estimate`.

    A message costs `MESSAGE_TOKENS` and what its parts hold: of a tool's part the `input` and the `output` (without
    one, the `result`), of any other its `text` (without one, the `reasoning` of a reasoning part or the `result` of
    an unknown one). A value that is no text is measured by its compact JSON text as JavaScript writes it.
    """
    return MESSAGE_TOKENS + sum(_estimate_value(value, estimate) for part in parts for value in _measured(part))


def _by_formula(code_units: int, text: bytes) -> int:
    # A word begins where white space ends: counted so, none of them is copied.
    words = (b" " + text.translate(_SPACE_OR_NOT)).count(b" x")
    return math.ceil(max(code_units / _CODE_UNITS_PER_TOKEN, words * _TOKENS_PER_WORD))


def _measured(part: Mapping[str, Any]) -> tuple[Any, ...]:
    """Give the values of a part that cost tokens."""
    kind = part["type"]
    if kind in {"text", "reasoning"}:
        return (_first(part, "text", "reasoning"),)
    if kind.startswith("tool-") or kind == "dynamic-tool":
        return (part.get("input"), _first(part, "output", "result"))
    return (part["text"] if "text" in part else part.get("result"),)


def _first(part: Mapping[str, Any], name: str, otherwise: str) -> Any:
    value = part.get(name)
    return part.get(otherwise) if value is None else value


def _estimate_value(value: Any, estimate: Callable[[str], int]) -> int:
    if value is None:
        return 0
    return estimate(value if isinstance(value, str) else javascript_json(value))


def javascript_json(value: Any) -> str:
    """Write a value as compact JSON; only numbers with a fraction or an exponent look otherwise in JavaScript."""
    text = _compact_json(value)
    return _write(value) if _PERHAPS_FLOAT.search(text) else text


def _compact_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        # What it has no place for: a lone surrogate, say.
        return _any_json(value)


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{','.join(f'{_compact_json(key)}:{_write(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_write, value))}]"
    return _write_float(value) if isinstance(value, float) else _compact_json(value)


def _write_float(value: float) -> str:
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    if _LEAST_PLAIN_FLOAT <= abs(value) < _LEAST_LARGE_FLOAT:
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent):+d}"
