"""The formats that can be read, and how a document is matched with one of them by what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eventstore.errors import InvalidArgumentError
from sessions.importers import chatgpt
from sessions.importers.conversation import Conversation, Problem
from sessions.importers.document import Document
from sessions.importers.format import Format
from sessions.importers.reading import documents

FORMATS: Final = {known.name: known for known in (chatgpt.FORMAT,)}
"""Every format by its name, in the order in which they are asked whether a document is theirs."""


def choose_formats(name: str) -> list[Format]:
    """The formats that a name stands for: all for `auto`; an unknown name raises InvalidArgumentError."""
    if name == "auto":
        return list(FORMATS.values())
    if name not in FORMATS:
        raise InvalidArgumentError("format", f"must be auto or one of {', '.join(FORMATS)}, not {name!r}")
    return [FORMATS[name]]


def conversations(path: str, formats: list[Format]) -> Iterator[Conversation | Problem]:
    """What stands at a path, in file order, read with the first of the formats that recognises a document.

    JSON of another kind is passed over, as exports are full of it, but torn files are reported, and so is a path at
    which there is nothing to import at all. Raises OSError when the path cannot be opened.
    """
    silent = True
    for document in documents(path):
        if isinstance(document, Problem):
            found: Iterator[Conversation | Problem] = iter([document])
        elif (known := _recognise(document, formats)) is not None:
            found = known.parse(document)
            silent = False
        else:
            found = document.unreadable()
        for item in found:
            silent = False
            yield item
    if silent:
        names = ", ".join(known.name for known in formats)
        yield Problem(path, f"holds no conversation in a known format ({names})")


def _recognise(document: Document, formats: list[Format]) -> Format | None:
    return next((known for known in formats if any(map(known.recognises, document.values()))), None)
