"""Skills in Markdown files: the key is in the file's name, the description in its front matter.

A skill is a file `<key>.md`, or a folder `<key>` with a file `SKILL.md`, and `<key>` may be a path of several names.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Iterable
from pathlib import PurePosixPath

import frontmatter
import yaml

from eventstore.errors import InvalidArgumentError

SUFFIX = ".md"
IN_FOLDER = "SKILL.md"


class SkillFiles(abc.ABC):
    """Skills in the files of some place, which a subclass knows how to list, read and write; its methods may block."""

    async def get(self) -> str | None:
        """A line with key and description for each skill, by key; None when there are none."""
        return await asyncio.to_thread(self._listing)

    async def load(self, key: str) -> str | None:
        """The text of a skill without its front matter; None for an unknown key."""
        return await asyncio.to_thread(self._load, key)

    async def set(self, key: str, content: str, description: str | None = None) -> None:
        """Write a skill, new or in the place of the one with its key; without a description it keeps the one it has.

        Raises InvalidArgumentError for a key that is no relative path.
        """
        if not is_key(key):
            raise InvalidArgumentError("key", "must be a name, or names with / between them")
        await asyncio.to_thread(self._set, key, content, description)

    @abc.abstractmethod
    def _paths(self) -> Iterable[str]:
        """The paths of all files that may be skills, with / between names, relative to the place."""

    @abc.abstractmethod
    def _read(self, path: str) -> str | None:
        """The text of a file; None when there is none."""

    @abc.abstractmethod
    def _write(self, path: str, text: str) -> None:
        """Write a file, whole or not at all, with the folders it is in."""

    def _listing(self) -> str | None:
        keys = {key: path for path in sorted(self._paths(), reverse=True) if (key := key_of(path)) is not None}
        lines: list[str] = []
        for key, path in sorted(keys.items()):
            description = parse(self._read(path) or "")[1]
            lines.append(f"- {key}: {description}" if description else f"- {key}")
        return "\n".join(lines) or None

    def _load(self, key: str) -> str | None:
        found = self._find(key)
        return None if found is None else parse(found[1])[0]

    def _set(self, key: str, content: str, description: str | None) -> None:
        found = self._find(key)
        path, before = found or (key + SUFFIX, "")
        self._write(path, compose(content, parse(before)[1] if description is None else description))

    def _find(self, key: str) -> tuple[str, str] | None:
        if not is_key(key):
            return None
        for path in (key + SUFFIX, f"{key}/{IN_FOLDER}"):
            text = self._read(path)
            if text is not None:
                return path, text
        return None


def is_key(key: object) -> bool:
    """Whether a key names a file that is within its place."""
    if not isinstance(key, str) or not key or "\\" in key or "\0" in key or ":" in key:
        return False
    return all(name.strip() and not name.startswith(".") for name in key.split("/"))


def key_of(path: str) -> str | None:
    """The key of the skill in a file; None for a file that is none."""
    parts = PurePosixPath(path)
    if parts.suffix != SUFFIX:
        return None
    key = str(parts.parent) if parts.name == IN_FOLDER and len(parts.parts) > 1 else path.removesuffix(SUFFIX)
    return key if is_key(key) else None


def parse(text: str) -> tuple[str, str | None]:
    """The content and the description in a file's text; what cannot be read as front matter is content."""
    try:
        post = frontmatter.loads(text)
    except (yaml.YAMLError, ValueError):
        return text, None
    description = post.metadata.get("description")
    return post.content, None if description is None else " ".join(str(description).split())


def compose(content: str, description: str | None) -> str:
    """The text of a file."""
    return content if description is None else frontmatter.dumps(frontmatter.Post(content, description=description))
