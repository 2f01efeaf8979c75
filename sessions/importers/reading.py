"""Opens what a person points at: a file, a folder or a zip, and gives the JSON documents in it one by one."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from sessions.importers.conversation import Problem
from sessions.importers.document import Document, read_document

HEAD_BYTES: Final = 4096
# Objects, or arrays of them. A stricter look than JSON asks for, since `[section]` begins many other files.
_LOOKS_LIKE_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\s\0]*(?:\[\s*)*(?:\{\s*[\"}]|\])")


def documents(path: Path) -> Iterator[Document | Problem]:
    """The documents at a path, a folder's and a zip's in the order of their names, folders within them included.

    Files are told by what they hold, never by their names: in a folder or a zip those that hold no JSON are passed
    over, and what cannot be opened is a problem. Raises OSError when the path itself cannot be opened.
    """
    if path.is_dir():
        for file in _files(path):
            name = file.relative_to(path).as_posix()
            try:
                yield from _archive(file, name) if zipfile.is_zipfile(file) else _part(file, name)
            except OSError as error:
                yield Problem(name, f"cannot be opened: {error}")
    elif zipfile.is_zipfile(path):
        yield from _archive(path, path.name)
    else:
        yield read_document(path.name, path.read_bytes())


def _files(folder: Path) -> list[Path]:
    found = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return sorted(file for file in found if file.is_file())


def _part(file: Path, name: str) -> Iterator[Document]:
    with file.open("rb") as stream:
        data = _json_bytes(stream)
    if data is not None:
        yield read_document(name, data)


def _archive(path: Path, name: str) -> Iterator[Document | Problem]:
    with zipfile.ZipFile(path) as archive:
        for member in sorted(member for member in archive.namelist() if not member.endswith("/")):
            try:
                with archive.open(member) as stream:
                    data = _json_bytes(stream)
            except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
                yield Problem(f"{name}/{member}", f"cannot be opened: {error}")
                continue
            if data is not None:
                yield read_document(f"{name}/{member}", data)


def _json_bytes(stream: IO[bytes]) -> bytes | None:
    """All bytes of a stream that begins like a JSON document, else None."""
    head = stream.read(HEAD_BYTES)
    return head + stream.read() if _LOOKS_LIKE_JSON.match(head) else None
