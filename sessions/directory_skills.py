"""Skills in a folder of this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from eventstore.errors import InvalidArgumentError
from sessions.skill_files import SUFFIX, SkillFiles


class DirectorySkills(SkillFiles):
    """Skills in the Markdown files of a folder, which need not be there yet; links out of it are not followed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._root = Path(path).resolve()

    def _paths(self) -> Iterable[str]:
        found = (path for path in self._root.rglob(f"*{SUFFIX}") if path.is_file() and self._is_inside(path))
        return [path.relative_to(self._root).as_posix() for path in found]

    def _read(self, path: str) -> str | None:
        file = self._root / path
        if not file.is_file() or not self._is_inside(file):
            return None
        return file.read_text(encoding="utf-8", errors="replace")

    def _write(self, path: str, text: str) -> None:
        file = self._root / path
        if not self._is_inside(file):
            raise InvalidArgumentError("key", "leads out of the folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        # Beside the file and in its place at once, so that nobody reads half of it.
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".tmp")
        try:
            os.close(handle)
            Path(name).write_text(text, encoding="utf-8", newline="\n")
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _is_inside(self, file: Path) -> bool:
        return file.resolve().is_relative_to(self._root)
