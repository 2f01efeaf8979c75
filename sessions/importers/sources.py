"""A file to import, wherever it lies: on disk or in a zip."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, Protocol, cast

import msgspec

BAD_ZIP: Final = (ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)
UNOPENED: Final = (OSError, *BAD_ZIP)
"""What opening or reading a source raises when it cannot be done."""
IN_MEMORY: Final = 8 << 20
"""How much of a zip's member is unpacked to memory; more goes to a temporary file."""
NESTED: Final = "subagents"


class Source(Protocol):
    """A file under the name that reports give it."""

    @property
    def name(self) -> str:
        """The name."""

    def head(self, size: int) -> bytes:
        """The first bytes."""

    def read(self) -> bytes:
        """All bytes."""

    def open(self) -> BinaryIO:
        """A stream that can be read at any place."""


class FileSource(msgspec.Struct, frozen=True):
    """A file on disk."""

    name: str
    path: Path

    def head(self, size: int) -> bytes:
        """The first bytes."""
        with self.path.open("rb") as stream:
            return stream.read(size)

    def read(self) -> bytes:
        """All bytes."""
        with self.path.open("rb") as stream:
            return stream.read()

    def open(self) -> BinaryIO:
        """A stream that can be read at any place."""
        return self.path.open("rb")


class MemberSource(msgspec.Struct, frozen=True):
    """A file in a zip."""

    name: str
    archive: Path
    member: str

    def head(self, size: int) -> bytes:
        """The first bytes."""
        with zipfile.ZipFile(self.archive) as archive, archive.open(self.member) as stream:
            return stream.read(size)

    def read(self) -> bytes:
        """All bytes."""
        with zipfile.ZipFile(self.archive) as archive:
            return archive.read(self.member)

    def open(self) -> BinaryIO:
        """A stream that can be read at any place."""
        unpacked = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))  # noqa: SIM115 - the caller's
        with zipfile.ZipFile(self.archive) as archive, archive.open(self.member) as stream:
            shutil.copyfileobj(stream, unpacked)
        return unpacked


def together(sources: Sequence[Source]) -> list[list[Source]]:
    """The sources in their order, a session's file followed by those of its subagents, which lie in a folder beside it.

    They are `x.jsonl` and what is below `x/subagents`.
    """
    units: dict[str, list[Source]] = {}
    for source in sources:
        units.setdefault(_place(source.name), []).append(source)
    found: list[list[Source]] = []
    for unit in units.values():
        nested = [source for source in unit if is_nested(source.name)]
        own = [source for source in unit if not is_nested(source.name)]
        # Only one can have a folder, and where there are several the one that looks most like a session's.
        chief = next((source for source in own if source.name.endswith(".jsonl")), own[0] if own else None)
        found += [[source, *nested] if source is chief else [source] for source in own]
        if chief is None:
            found.append(nested)
    return found


def is_nested(name: str) -> bool:
    """Whether a name is that of a subagent's file."""
    return NESTED in PurePosixPath(name).parts[:-1]


def _place(name: str) -> str:
    path = PurePosixPath(name)
    parts = path.parts
    if is_nested(name):
        return "/".join(parts[: parts.index(NESTED)])
    return str(path.with_suffix(""))
