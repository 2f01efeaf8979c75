"""What sessions ask of an application's objects: where context comes from, and where messages are kept.

Every method may be plain or async. What a context provider can do is read off its methods, once: `set` makes it
writable, `load` a provider of skills, `search` one that is searched.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from eventstore.errors import InvalidArgumentError

T = TypeVar("T")
Maybe: TypeAlias = T | Awaitable[T]
"""A value, at once or when it is awaited."""


class ContextProvider(Protocol):
    """Gives the text of a block, None for nothing; `init(label)`, if it has one, is called before its first use."""

    def get(self) -> Maybe[str | None]:
        """The block's text; of entries with keys it is what there is to choose from."""


class WritableContextProvider(ContextProvider, Protocol):
    """A block whose text can be replaced."""

    def set(self, content: str) -> Maybe[object]:
        """Replace the block's text."""


class SkillProvider(ContextProvider, Protocol):
    """Entries that are loaded by key; with `set(key, content, description)` they can be written."""

    def load(self, key: str) -> Maybe[str | None]:
        """The body of an entry, None for an unknown key."""


class SearchProvider(ContextProvider, Protocol):
    """Entries that are searched; with `set(key, content)` they can be written."""

    def search(self, query: str) -> Maybe[str | None]:
        """What was found as text, None for nothing."""


class SessionProvider(Protocol):
    """Keeps the messages of one session.

    The parent of a message is left out when the caller did not name one; what writes may return nothing. It may also
    have `session_id`, and `get_recent_history` and `get_history_row_stats` as `StoredSession` has them;
    `search_messages` may be missing.
    """

    def get_message(self, message_id: str) -> Maybe[Any]:
        """The message with this id, or None."""

    def get_history(self, leaf_id: str | None = None) -> Maybe[Sequence[Any]]:
        """The messages from the root to a leaf, or to the latest."""

    def get_latest_leaf(self) -> Maybe[Any]:
        """The latest leaf, or None."""

    def get_branches(self, message_id: str) -> Maybe[Sequence[Any]]:
        """The children of a message."""

    def get_path_length(self, leaf_id: str | None = None) -> Maybe[int]:
        """How many messages there are from the root to a leaf, or to the latest."""

    def append_message(self, message: Any, parent_id: str | None = ...) -> Maybe[Any]:
        """Append a message."""

    def update_message(self, message: Any) -> Maybe[Any]:
        """Replace the content of a message."""

    def delete_messages(self, ids: Sequence[str]) -> Maybe[Any]:
        """Delete messages."""

    def clear_messages(self) -> Maybe[Any]:
        """Delete all messages and compactions."""

    def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> Maybe[Any]:
        """Let a summary stand for a stretch."""

    def get_compactions(self) -> Maybe[Sequence[Any]]:
        """The compactions in order."""

    def search_messages(self, query: str, *, limit: int = 20) -> Maybe[Sequence[Any]]:
        """The messages that hold all words of the query."""


class Capabilities(msgspec.Struct, frozen=True):
    """What a context provider can do."""

    writable: bool = False
    skill: bool = False
    search: bool = False

    @property
    def keyed(self) -> bool:
        """Whether it holds entries with keys, and not one text."""
        return self.skill or self.search


def capabilities_of(provider: object) -> Capabilities:
    """What a context provider can do; of None it is nothing. Raises InvalidArgumentError for what is no provider."""
    if provider is None:
        return Capabilities()
    if not _has(provider, "get"):
        raise InvalidArgumentError("provider", f"must have get(), unlike {type(provider).__name__}")
    return Capabilities(is_writable_provider(provider), is_skill_provider(provider), is_search_provider(provider))


def is_writable_provider(provider: object) -> bool:
    """Whether a provider's text, or its entries, can be written."""
    return _has(provider, "set")


def is_skill_provider(provider: object) -> bool:
    """Whether a provider has entries that are loaded by key."""
    return _has(provider, "load")


def is_search_provider(provider: object) -> bool:
    """Whether a provider has entries that are searched."""
    return _has(provider, "search")


async def settle(value: Maybe[T]) -> T:
    """The result of a method that may be plain or async."""
    return await value if inspect.isawaitable(value) else value


def _has(provider: object, method: str) -> bool:
    return callable(getattr(provider, method, None))
