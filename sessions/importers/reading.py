"""Looks at what a person points at, a file, a folder or a zip, and gives its files, those together that belong so."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from sessions.importers.conversation import Problem
from sessions.importers.sources import BAD_ZIP, FileSource, MemberSource, Source, together

_NOTHING_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a link that leads to no file."""


class Unit(msgspec.Struct, frozen=True):
    """Files that may belong together; `is_given` is true of the one file that a person pointed at."""

    sources: list[Source]
    is_given: bool = False


def units(path: str) -> Iterator[Unit | Problem]:
    """The files at a path, a folder's and a zip's in the order of their names, folders within them included.

    They are named by the path as given, below a folder by the path within it, and in a zip by the member behind the
    zip's name. What cannot be reached is a problem. Raises OSError when the path itself cannot be opened.
    """
    source = Path(path)
    if source.is_dir():
        yield from _folder(source)
    elif zipfile.is_zipfile(source):
        yield from _archive(source, path)
    else:
        yield Unit([FileSource(path, source)], is_given=True)


def unopened(name: str, error: Exception) -> Problem:
    """A file that could not be opened, as a problem."""
    reason = error.strerror if isinstance(error, OSError) else None
    return Problem(name, f"cannot be opened: {reason or error}")


def _folder(folder: Path) -> Iterator[Unit | Problem]:
    found: dict[str, tuple[Path, OSError | None]] = {}
    for path, failure in _below(folder):
        found[path.relative_to(folder).as_posix()] = path, failure
    for group in together([FileSource(name, path) for name, (path, _) in found.items()]):
        readable: list[Source] = []
        for source in group:
            path, failure = found[source.name]
            try:
                if failure is not None:
                    raise failure
                if zipfile.is_zipfile(path):
                    yield from _archive(path, source.name)
                else:
                    readable.append(source)
            except OSError as error:
                yield unopened(source.name, error)
        if readable:
            yield Unit(readable)


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


def _archive(path: Path, name: str) -> Iterator[Unit | Problem]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(member for member in archive.namelist() if not member.endswith("/"))
    except BAD_ZIP:
        yield Problem(name, "not a whole zip file")
        return
    for group in together([MemberSource(f"{name}/{member}", path, member) for member in members]):
        yield Unit(group)
