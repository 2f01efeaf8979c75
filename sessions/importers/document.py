"""A file of JSON or JSONL, cut into the entries that stand in it; each is decoded only when it is asked for."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Final, NoReturn

import msgspec

from sessions.importers.conversation import Problem

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STDLIB: Final = json.JSONDecoder()


class Entry(msgspec.Struct, frozen=True):
    """One entry of a file: an element of its array (`index`, 0-based), a line (1-based), or the whole file."""

    raw: bytes | msgspec.Raw
    line: int | None = None
    index: int | None = None


class Document(msgspec.Struct, frozen=True):
    """A file that holds JSON, and the problems that were met when it was cut into entries."""

    file: str
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()

    def read(self) -> Iterator[tuple[Entry, object] | Problem]:
        """The entries in file order with their values, and a problem in place of each that cannot be decoded."""
        for entry in self.entries:
            try:
                yield entry, decode(entry.raw)
            except ValueError as error:
                yield self.problem(entry, f"not JSON: {error}", skipped=entry.index is not None)
        yield from self.problems

    def values(self) -> Iterator[object]:
        """The values of the entries that can be decoded, in file order."""
        for item in self.read():
            if not isinstance(item, Problem):
                yield item[1]

    def problem(self, entry: Entry, reason: str, *, skipped: bool = True) -> Problem:
        """A problem with one entry of this file."""
        return Problem(self.file, reason, line=entry.line, index=entry.index, skipped=skipped)


def read_document(file: str, data: bytes) -> Document:
    """The entries of one JSON value or, failing that, of lines; of a torn array those before the tear."""
    data = data.removeprefix(codecs.BOM_UTF8)
    array = data.lstrip()[:1] == b"["
    try:
        if array:
            elements = msgspec.json.decode(data, type=list[msgspec.Raw])
            return Document(file, tuple(Entry(raw, index=index) for index, raw in enumerate(elements)))
        decode(data)
    except (ValueError, RecursionError) as error:
        return _read_torn(file, data, str(error), array=array)
    return Document(file, (Entry(data),))


def decode(raw: bytes | msgspec.Raw) -> object:
    """The value of JSON text; lone surrogates and bytes that are no UTF-8 become U+FFFD.

    Raises ValueError with the reason for what is no JSON, or is nested too deep to be decoded.
    """
    try:
        try:
            return msgspec.json.decode(raw)
        except msgspec.DecodeError:
            value = json.loads(bytes(raw).decode(errors="replace"), parse_constant=_refuse)
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            return msgspec.json.decode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _read_torn(file: str, data: bytes, reason: str, *, array: bool) -> Document:
    """A file that the strict reader gave up on: a lone surrogate is enough for that, so it may be whole."""
    entries: tuple[Entry, ...] = ()
    index = None
    if array:
        entries, reason = _elements(data.decode(errors="replace"))
        if not reason:
            return Document(file, entries)
        index = len(entries)
    lines = _lines(data)
    # A torn array may have one element a line, so that some line of it is JSON: only its first line tells.
    if any(map(_is_record, lines[:1] if array else lines)):
        return Document(file, lines)
    return Document(file, entries, (Problem(file, f"not JSON: {reason}", index=index),))


def _elements(text: str) -> tuple[tuple[Entry, ...], str]:
    """The elements of an array up to where it cannot be read, and the reason why not, empty at its end."""
    entries: list[Entry] = []
    at = _skip_space(text, text.index("[") + 1)
    while text[at : at + 1] != "]":
        try:
            _, end = _STDLIB.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            return tuple(entries), str(error)
        entries.append(Entry(text[at:end].encode(), index=len(entries)))
        at = _skip_space(text, end)
        if text[at : at + 1] == ",":
            at = _skip_space(text, at + 1)
        elif text[at : at + 1] != "]":
            return tuple(entries), f"a comma is missing at character {at}"
    return tuple(entries), "" if _skip_space(text, at + 1) == len(text) else "more follows after its end"


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _lines(data: bytes) -> tuple[Entry, ...]:
    lines = enumerate(data.split(b"\n"), 1)
    return tuple(Entry(line.rstrip(), line=number) for number, line in lines if not line.isspace() and line)


def _is_record(line: Entry) -> bool:
    try:
        return bytes(line.raw).startswith((b"{", b"[")) and bool(decode(line.raw))
    except ValueError:
        return False
