"""Opens what a person points at: a file, a folder or a zip, and gives the JSON documents in it one by one."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from sessions.importers.conversation import Problem
from sessions.importers.document import Document, read_document
from sessions.importers.kind import HEAD_BYTES, looks_like_json, looks_like_zip

_BAD_ZIP: Final = (ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)
_NOTHING_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a link that leads to no file."""


def documents(path: str) -> Iterator[Document | Problem]:
    """The documents at a path, a folder's and a zip's in the order of their names, folders within them included.

    They are named by the path as given, below a folder by the path within it, and in a zip by the member behind the
    zip's name. Files are told by what they hold, never by their names: in a folder or a zip those that hold no JSON are
    passed over, and what cannot be opened is a problem. Raises OSError when the path itself cannot be opened.
    """
    source = Path(path)
    if source.is_dir():
        yield from _folder(source)
    elif zipfile.is_zipfile(source):
        yield from _archive(source, path)
    else:
        yield read_document(path, source.read_bytes())


def _folder(folder: Path) -> Iterator[Document | Problem]:
    for path, failure in _below(folder):
        name = path.relative_to(folder).as_posix()
        if failure is not None:
            yield _unopened(name, failure)
            continue
        try:
            yield from _archive(path, name) if zipfile.is_zipfile(path) else _part(path, name)
        except OSError as error:
            yield _unopened(name, error)


def _below(folder: Path) -> list[tuple[Path, OSError | None]]:
    """The files below a folder in the order of their names; those, and the folders, that cannot be reached say why."""
    # The walk passes over what it cannot list: of the folder itself that is an error.
    os.scandir(folder).close()
    failures: list[OSError] = []
    files = [Path(root) / name for root, _, names in os.walk(folder, onerror=failures.append) for name in names]
    found: list[tuple[Path, OSError | None]] = [(Path(error.filename or folder), error) for error in failures]
    for file in files:
        try:
            if stat.S_ISREG(file.stat().st_mode):
                found.append((file, None))
        except OSError as error:
            if error.errno not in _NOTHING_THERE:
                found.append((file, error))
    return sorted(found, key=lambda one: one[0])


def _unopened(name: str, error: Exception) -> Problem:
    reason = error.strerror if isinstance(error, OSError) else None
    return Problem(name, f"cannot be opened: {reason or error}")


def _part(file: Path, name: str) -> Iterator[Document]:
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        wanted = looks_like_json(head) or looks_like_zip(head)
        data = head + stream.read() if wanted else b""
    if wanted:
        yield read_document(name, data)


def _archive(path: Path, name: str) -> Iterator[Document | Problem]:
    try:
        archive = zipfile.ZipFile(path)
    except _BAD_ZIP:
        yield Problem(name, "not a whole zip file")
        return
    with archive:
        for member in sorted(member for member in archive.namelist() if not member.endswith("/")):
            try:
                with archive.open(member) as stream:
                    data = _json_bytes(stream)
            except (OSError, *_BAD_ZIP) as error:
                yield _unopened(f"{name}/{member}", error)
                continue
            if data is not None:
                yield read_document(f"{name}/{member}", data)


def _json_bytes(stream: IO[bytes]) -> bytes | None:
    """All bytes of a stream that begins like a JSON document, else None."""
    head = stream.read(HEAD_BYTES)
    return head + stream.read() if looks_like_json(head) else None
