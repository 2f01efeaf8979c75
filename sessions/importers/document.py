"""A file of JSON or JSONL, cut into the entries that stand in it; each is decoded only when it is asked for."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from sessions.importers.conversation import Problem
from sessions.importers.decoding import Decoded, UnreadableError, decode, unreadable
from sessions.importers.kind import why_not_json

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
        """The entries in file order with their values, and what is wrong with them.

        A problem stands in place of each entry that cannot be decoded, and before each whose text is damaged.
        """
        for item in self._decoded():
            if isinstance(item, Problem):
                yield item
                continue
            entry, decoded = item
            if decoded.damage is not None:
                yield self.problem(entry, decoded.damage.reason, skipped=False, line=decoded.damage.line)
            yield entry, decoded.value

    def values(self) -> Iterator[object]:
        """The values of the entries that can be decoded, in file order."""
        return (item[1].value for item in self._decoded() if not isinstance(item, Problem))

    def unreadable(self) -> Iterator[Problem]:
        """What cannot be decoded, in file order."""
        return (item for item in self._decoded() if isinstance(item, Problem))

    def problem(self, entry: Entry, reason: str, *, skipped: bool = True, line: int | None = None) -> Problem:
        """A problem with one entry of this file; a `line` (1-based) is one of the entry's own text."""
        # Of an element it is not known at which line it begins.
        line = line if entry.line is None and entry.index is None else entry.line
        return Problem(self.file, reason, line=line, index=entry.index, skipped=skipped)

    def _decoded(self) -> Iterator[tuple[Entry, Decoded] | Problem]:
        for entry in self.entries:
            try:
                yield entry, decode(entry.raw)
            except UnreadableError as error:
                yield self.problem(entry, error.reason, skipped=entry.index is not None, line=error.line)
        yield from self.problems


def read_document(file: str, data: bytes) -> Document:
    """The entries of one JSON value or, failing that, of lines; of a torn array those before the tear."""
    other = why_not_json(data)
    if other is not None:
        return Document(file, (), (Problem(file, other),))
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.lstrip()[:1] == b"[":
        try:
            elements = msgspec.json.decode(data, type=list[msgspec.Raw])
        except (ValueError, RecursionError):
            return _read_array(file, data)
        return Document(file, tuple(Entry(raw, index=index) for index, raw in enumerate(elements)))
    try:
        decode(data)
    except UnreadableError as error:
        return _read_lines(file, data, error)
    return Document(file, (Entry(data),))


def _read_array(file: str, data: bytes) -> Document:
    """An array that the strict reader gave up on: a lone surrogate is enough for that, so it may be whole."""
    # Each byte that is no UTF-8 is kept, to be told of where its entry is decoded.
    entries, torn = _elements(data.decode(errors="surrogateescape"))
    if torn is None:
        return Document(file, entries)
    # A torn array may have one element a line, so that some line of it is JSON: only its first line tells.
    lines = _lines(data)
    if any(map(_is_record, lines[:1])):
        return Document(file, lines)
    return Document(file, entries, (Problem(file, torn.reason, line=torn.line, index=len(entries)),))


def _read_lines(file: str, data: bytes, error: UnreadableError) -> Document:
    """The lines of a file that is not one value, if any of them is a record."""
    lines = _lines(data)
    if any(map(_is_record, lines)):
        return Document(file, lines)
    return Document(file, (), (Problem(file, error.reason, line=error.line),))


def _elements(text: str) -> tuple[tuple[Entry, ...], UnreadableError | None]:
    """The elements of an array up to where it cannot be read, and why not, None at its end."""
    entries: list[Entry] = []
    at = _skip_space(text, text.index("[") + 1)
    while text[at : at + 1] != "]":
        try:
            _, end = _STDLIB.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            return tuple(entries), unreadable(error)
        entries.append(Entry(text[at:end].encode(errors="surrogateescape"), index=len(entries)))
        at = _skip_space(text, end)
        if text[at : at + 1] == ",":
            at = _skip_space(text, at + 1)
        elif text[at : at + 1] != "]":
            return tuple(entries), unreadable(json.JSONDecodeError("A comma or the end is missing", text, at))
    after = _skip_space(text, at + 1)
    if after == len(text):
        return tuple(entries), None
    return tuple(entries), unreadable(json.JSONDecodeError("More follows after the end of the array", text, after))


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _lines(data: bytes) -> tuple[Entry, ...]:
    lines = enumerate(data.split(b"\n"), 1)
    return tuple(Entry(line.rstrip(), line=number) for number, line in lines if not line.isspace() and line)


def _is_record(line: Entry) -> bool:
    try:
        return bytes(line.raw).startswith((b"{", b"[")) and bool(decode(line.raw).value)
    except UnreadableError:
        return False
