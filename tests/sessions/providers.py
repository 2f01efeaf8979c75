"""Providers of an application, as small as they can be."""

from __future__ import annotations

import asyncio


class Note:
    """A text in memory; it remembers the labels that it was told."""

    def __init__(self, content: str | None = None) -> None:
        self.content = content
        self.labels: list[str] = []

    def init(self, label: str) -> None:
        """Remember the label."""
        self.labels.append(label)

    def get(self) -> str | None:
        """Give the text."""
        return self.content

    async def slowly_get(self) -> str | None:
        """Give the text, a moment later."""
        await asyncio.sleep(0)
        return self.content

    async def set(self, content: str) -> None:
        """Replace the text, a moment later."""
        await asyncio.sleep(0)
        self.content = content


class Entries:
    """Skills in memory."""

    def __init__(self, **entries: str) -> None:
        self.entries = entries

    def get(self) -> str | None:
        """List the keys."""
        return "\n".join(f"- {key}" for key in self.entries) or None

    def load(self, key: str) -> str | None:
        """Give a body."""
        return self.entries.get(key)

    def set(self, key: str, content: str, description: str | None = None) -> None:
        """Write an entry."""
        self.entries[key] = content if description is None else f"{content} ({description})"


class Failing:
    """A text of which one method fails."""

    def __init__(self, method: str, message: str, content: str | None = None) -> None:
        self.method = method
        self.message = message
        self.content = content

    def get(self) -> str | None:
        """Give the text, or fail."""
        self._fail("get")
        return self.content

    def set(self, content: str) -> None:
        """Replace the text, or fail."""
        self._fail("set")
        self.content = content

    def _fail(self, method: str) -> None:
        if method == self.method:
            raise RuntimeError(self.message)
