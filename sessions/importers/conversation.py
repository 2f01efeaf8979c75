"""What every format is read into: conversations of messages, and the problems met on the way."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """The tokens that one response of a model used, and what it cost where the source says so."""

    input_tokens: int
    output_tokens: int
    cost: float = 0.0
    model: str | None = None


class Content(msgspec.Struct, frozen=True):
    """A message in its wire form (`id`, `role`, `parts`, …), and the usage of the response that it is."""

    message: dict[str, Any]
    usage: Usage | None = None


class Overlay(msgspec.Struct, frozen=True):
    """A summary of the source's own, for the path to the message that it is found at.

    `id` is that of its record; `read` gives the text.
    """

    id: str
    read: Callable[[], str]


class SourceMessage(msgspec.Struct, frozen=True):
    """A message as it will be stored, in its wire form (`id`, `role`, `parts`, …), and the id of its parent."""

    message: dict[str, Any]
    parent_id: str | None = None

    @property
    def id(self) -> str:
        """The message's id, which is the source's own where the source has one."""
        return str(self.message["id"])


class RecordedMessage(msgspec.Struct, frozen=True):
    """A message whose content is read when it is asked for, and the records of the source that it is made of.

    `records` are those that it is, one at least, and `results` those that were folded into it. `read` gives the content
    as it is with some of them, one of the former at least, or with all (None). `overlays` are the summaries of the path
    that ends here.
    """

    id: str
    parent_id: str | None
    records: tuple[str, ...]
    results: tuple[str, ...]
    overlays: tuple[Overlay, ...]
    read: Callable[[Collection[str] | None], Content]

    @property
    def message(self) -> dict[str, Any]:
        """The message in its wire form."""
        return self.read(None).message


class RecordedMessages(Protocol):
    """The messages of a conversation whose records have ids that mean the same in every file, in log order."""

    @property
    def overlays(self) -> int:
        """How many summaries the conversation has, those included that stand for nothing."""

    def __len__(self) -> int:
        """How many messages there are."""

    def __iter__(self) -> Iterator[RecordedMessage]:
        """Each message."""

    def parent_of(self, message_id: str) -> str | None:
        """The id of a message's parent; None for a root and for an unknown message."""


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
        return session_id_of(self.format, self.source_id)

    @property
    def parent_session_id(self) -> str | None:
        """The id of the session of the conversation that this one belongs to, if it belongs to one."""
        return None if self.parent_source_id is None else session_id_of(self.format, self.parent_source_id)


class RecordedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a source whose records are entered in the ledger; it may be larger than memory.

    The fields are those of a Conversation. `opening` is what a user first said, which names a conversation without a
    title.
    """

    format: str
    source_id: str
    title: str | None
    opening: str | None
    parent_source_id: str | None
    messages: RecordedMessages
    leaf_id: str | None
    repaired_links: int
    created_at: dt.datetime | None
    model: str | None
    metadata: dict[str, Any]
    file: str

    @property
    def session_id(self) -> str:
        """The id of the session that the conversation becomes, if it holds anything new."""
        return session_id_of(self.format, self.source_id)

    @property
    def parent_session_id(self) -> str | None:
        """The id of the session of the conversation that this one belongs to, if it belongs to one."""
        return None if self.parent_source_id is None else session_id_of(self.format, self.parent_source_id)


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


def problem_of(conversation: Conversation | RecordedConversation, reason: str, *, skipped: bool = False) -> Problem:
    """A problem with a conversation, or with all of it, at the place where it was read."""
    if isinstance(conversation, RecordedConversation):
        return Problem(conversation.file, reason, skipped=skipped)
    return Problem(conversation.file, reason, conversation.line, conversation.index, skipped)


def session_id_of(format_name: str, source_id: str) -> str:
    """The id of the session that a conversation of a format becomes."""
    return f"{format_name}:{source_id}"


def content_id(value: object) -> str:
    """An id derived from JSON content alone, whatever the order of its keys, so that the same is found again."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]
