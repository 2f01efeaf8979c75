"""What every format is read into: conversations of messages, and the problems met on the way."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any

import msgspec


class SourceMessage(msgspec.Struct, frozen=True):
    """A message as it will be stored, in its wire form (`id`, `role`, `parts`, …), and the id of its parent."""

    message: dict[str, Any]
    parent_id: str | None = None

    @property
    def id(self) -> str:
        """The message's id, which is the source's own where the source has one."""
        return str(self.message["id"])


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a source, ready to be written.

    `messages` stand in log order: a parent before its children, otherwise as in the file. `leaf_id` is the end of the
    current branch (None without messages), `repaired_links` the number of parent links that could not be followed,
    `overlays` are the source's own compactions, and `metadata` is what the source says about the conversation beyond
    these fields. `file`, `line` (1-based) and `index` (0-based) say where it was read.
    """

    format: str
    source_id: str
    title: str | None = None
    parent_source_id: str | None = None
    messages: tuple[SourceMessage, ...] = ()
    leaf_id: str | None = None
    overlays: tuple[dict[str, Any], ...] = ()
    repaired_links: int = 0
    created_at: dt.datetime | None = None
    model: str | None = None
    metadata: dict[str, Any] | None = None
    file: str = ""
    line: int | None = None
    index: int | None = None

    @property
    def session_id(self) -> str:
        """The id of the session that the conversation becomes."""
        return f"{self.format}:{self.source_id}"

    @property
    def parent_session_id(self) -> str | None:
        """The id of the session of the conversation that this one belongs to, if it belongs to one."""
        return None if self.parent_source_id is None else f"{self.format}:{self.parent_source_id}"


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read: in which file, at which line (1-based) or entry (0-based), and why.

    `skipped` tells that a whole entry, which would have been a conversation, was left out for it.
    """

    file: str
    reason: str
    line: int | None = None
    index: int | None = None
    skipped: bool = False

    def __str__(self) -> str:
        """The problem as one line of text."""
        places = {"line": self.line, "entry": self.index}
        at = "".join(f", {name} {number}" for name, number in places.items() if number is not None)
        return f"{self.file}{at}: {self.reason}"


def content_id(value: object) -> str:
    """An id derived from JSON content alone, whatever the order of its keys, so that the same is found again."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]
