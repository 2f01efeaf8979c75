"""The formats that can be read, and how a file is matched with one of them by what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eventstore.errors import InvalidArgumentError
from sessions.importers import ai_sdk, chatgpt, claude_code, json_tree
from sessions.importers.conversation import Problem
from sessions.importers.document import Document, read_document
from sessions.importers.format import AnyFormat, Format, Found, RecordFormat
from sessions.importers.kind import HEAD_BYTES, looks_like_json, looks_like_lines, looks_like_zip
from sessions.importers.reading import Unit, units, unopened
from sessions.importers.sources import UNOPENED, FileSource, Source

FORMATS: Final[dict[str, AnyFormat]] = {
    known.name: known for known in (chatgpt.FORMAT, json_tree.FORMAT, claude_code.FORMAT, ai_sdk.FORMAT)
}
"""Every format by its name, in the order in which they are asked whether a file is theirs."""


def choose_formats(name: str) -> list[AnyFormat]:
    """The formats that a name stands for: all for `auto`; an unknown name raises InvalidArgumentError."""
    if name == "auto":
        return list(FORMATS.values())
    if name not in FORMATS:
        raise InvalidArgumentError("format", f"must be auto or one of {', '.join(FORMATS)}, not {name!r}")
    return [FORMATS[name]]


def conversations(path: str, formats: Sequence[AnyFormat]) -> Iterator[Found]:
    """What stands at a path, in file order, read with the first of the formats that recognises a file.

    Files are told by what they hold, never by their names: JSON of another kind is passed over, as exports are full of
    it, and so in a folder or a zip is what is no JSON; but torn files are reported, and so is a path at which there is
    nothing to import at all. Raises OSError when the path itself cannot be opened.
    """
    silent = empty = True
    for unit in units(path):
        empty = False
        for item in [unit] if isinstance(unit, Problem) else _read(unit, formats):
            silent = False
            yield item
    if empty:
        yield Problem(path, f"a {'folder' if Path(path).is_dir() else 'zip'} without files")
    elif silent:
        names = ", ".join(known.name for known in formats)
        wanted = "a known format" if len(formats) > 1 else "the format that was named"
        yield Problem(path, f"holds no conversation in {wanted} ({names})")


def _read(unit: Unit, formats: Sequence[AnyFormat]) -> Iterator[Found]:
    by_record = [known for known in formats if isinstance(known, RecordFormat)]
    by_document = [known for known in formats if isinstance(known, Format)]
    recorded: dict[str, list[Source]] = {}
    for source in unit.sources:
        try:
            head = source.head(HEAD_BYTES)
            is_zip = isinstance(source, FileSource) and looks_like_zip(head)
            is_document = unit.is_given or is_zip or looks_like_json(head)
            known = _recognise_records(source, by_record) if is_document or looks_like_lines(head) else None
            if known is not None:
                recorded.setdefault(known.name, []).append(source)
            elif is_document:
                yield from _read_document(read_document(source.name, source.read()), by_document)
        except UNOPENED as error:
            if unit.is_given:
                raise
            yield unopened(source.name, error)
    for known in by_record:
        if sources := recorded.get(known.name):
            yield from known.parse(sources)


def _recognise_records(source: Source, formats: Sequence[RecordFormat]) -> RecordFormat | None:
    with source.open() as stream:
        return next((known for known in formats if known.recognises(stream)), None)


def _read_document(document: Document, formats: Sequence[Format]) -> Iterator[Found]:
    for known in formats:
        if any(map(known.recognises, document.values())):
            return known.parse(document)
    return document.unreadable()
