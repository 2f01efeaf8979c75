"""Skills in a bucket or any other place that fsspec can open; needs the extra `skills`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventstore.errors import NotSupportedError
from sessions.skill_files import SkillFiles


class FsspecSkills(SkillFiles):
    """Skills in the Markdown files below a URL, such as `s3://bucket/skills`; `options` go to the file system.

    Raises NotSupportedError when fsspec, or what it needs for the URL, is not installed.
    """

    def __init__(self, url: str, **options: Any) -> None:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra, which most programs have not

            self._files, root = url_to_fs(url, **options)
        except (ImportError, ValueError) as error:
            raise NotSupportedError(f"{url.partition('://')[0]} without the extra 'skills' and its driver") from error
        self._root = root.rstrip("/")

    def _paths(self) -> Iterable[str]:
        self._files.invalidate_cache()
        if not self._files.exists(self._root):
            return []
        start = len(self._root) + 1
        return [path[start:] for path in self._files.find(self._root)]

    def _read(self, path: str) -> str | None:
        self._files.invalidate_cache()
        try:
            content: bytes = self._files.cat_file(f"{self._root}/{path}")
        except (FileNotFoundError, IsADirectoryError):
            return None
        return content.decode("utf-8", "replace")

    def _write(self, path: str, text: str) -> None:
        folder = f"{self._root}/{path}".rpartition("/")[0]
        self._files.makedirs(folder, exist_ok=True)
        self._files.pipe_file(f"{self._root}/{path}", text.encode())
