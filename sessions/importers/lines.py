"""JSONL that may be larger than memory: its lines with their places, and the records that are whole in torn ones."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from sessions.importers.decoding import UnreadableError, decode

_AROUND: Final = b" \t\r\n\0"
_BEGINNING: Final = re.compile(r'\{\s*"')
_STDLIB: Final = json.JSONDecoder()


class Line(msgspec.Struct, frozen=True):
    """A line that is not blank: its number (1-based), where its text begins in the file, and the text."""

    number: int
    offset: int
    text: bytes


class Torn(msgspec.Struct, frozen=True):
    """What is wrong with a line, and the records that are whole in it, each by its first byte and the one behind it."""

    reason: str
    records: tuple[tuple[int, int], ...] = ()


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """The lines of a file from its beginning; a byte order mark, and space around a line, are no part of them."""
    stream.seek(0)
    offset = 0
    for number, raw in enumerate(stream, start=1):
        text = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        text = text.strip()
        if text:
            yield Line(number, offset + raw.index(text), text)
        offset += len(raw)


def examine(text: bytes) -> Torn:
    """What is wrong with a line that is not one plain object; damaged text may still be one record, and so whole."""
    inner = text.strip(_AROUND)
    if not inner:
        return Torn("NUL bytes")
    start = text.index(inner)
    try:
        decoded = decode(inner)
    except UnreadableError as error:
        return Torn(error.reason, tuple((start + first, start + end) for first, end in _whole_records(inner)))
    if not isinstance(decoded.value, dict):
        return Torn("no JSON object")
    reason = "NUL bytes around a record" if len(inner) < len(text) else ""
    return Torn(decoded.damage.reason if decoded.damage else reason, ((start, start + len(inner)),))


def _whole_records(torn: bytes) -> Iterator[tuple[int, int]]:
    """The objects with an id and a type of their own that stand whole in a torn line, by their bytes."""
    text = torn.decode(errors="surrogateescape")
    at = 0
    while (beginning := _BEGINNING.search(text, at)) is not None:
        at = beginning.start()
        try:
            value, end = _STDLIB.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if isinstance(value.get("uuid"), str) and isinstance(value.get("type"), str):
            yield _length(text[:at]), _length(text[:end])
        at = end


def _length(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
