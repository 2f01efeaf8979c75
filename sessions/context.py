"""Blocks of context as they are configured, and as they are shown."""

from __future__ import annotations

from typing import Any

import msgspec

from eventstore.errors import InvalidArgumentError, LimitExceededError
from eventstore.limits import Limits, check_id, clean_text
from sessions.providers import capabilities_of

REMIND = "remind"
"""The value of `when_changed` for blocks whose changes are told between two freezes of the prompt."""


class _Labelled(msgspec.Struct, frozen=True):
    label: str


class ContextConfig(_Labelled, frozen=True, kw_only=True):
    """A block of context to be: without a provider a session on a store keeps it there.

    `when_changed="remind"` has `Session.reminder` tell what became of it since the prompt was frozen.
    """

    description: str | None = None
    max_tokens: int | None = None
    provider: Any = None
    when_changed: str | None = None

    def checked(self, limits: Limits) -> ContextConfig:
        """The configuration as it is used; raises InvalidArgumentError or LimitExceededError."""
        capabilities_of(self.provider)
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 0):
            raise InvalidArgumentError("max_tokens", "must be a number from 0 on")
        if self.when_changed not in (None, REMIND):
            raise InvalidArgumentError("when_changed", f"must be None or {REMIND!r}")
        if not isinstance(self.description, str | None):
            raise InvalidArgumentError("description", f"must be a string, not {type(self.description).__name__}")
        label = check_id(self.label, "label", limits)
        description = None if self.description is None else clean_text(self.description)
        return msgspec.structs.replace(self, label=label, description=description)


class ContextBlock(msgspec.Struct, frozen=True):
    """A block of context: its text, what it may come to, and what can be done with it."""

    label: str
    description: str | None
    content: str
    tokens: int
    max_tokens: int | None
    writable: bool
    is_skill: bool
    is_searchable: bool


def checked_content(content: object, limits: Limits, path: str) -> str:
    """The text of a block or an entry as it is kept; raises InvalidArgumentError or LimitExceededError."""
    if not isinstance(content, str):
        raise InvalidArgumentError("content", f"must be a string, not {type(content).__name__}")
    text = clean_text(str.__str__(content))
    check_size(text, limits, path)
    return text


def joined(held: str | None, more: str) -> str:
    """What a block holds and what is appended to it, which begins on a line of its own."""
    between = "\n" if held and not more.startswith("\n") else ""
    return f"{held or ''}{between}{more}"


def check_size(text: str, limits: Limits, path: str) -> None:
    """Raise LimitExceededError for a text that is larger than a block may be."""
    if len(text) > limits.block_bytes or len(text.encode()) > limits.block_bytes:
        raise LimitExceededError("block_bytes", limits.block_bytes, path)
