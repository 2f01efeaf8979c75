"""The blocks of one session: loaded from their providers, written through to them, within their limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from eventstore.errors import (
    BlockNotFoundError,
    BlockReadOnlyError,
    BlockTooLargeError,
    DuplicateBlockError,
    InvalidArgumentError,
    NotSupportedError,
)
from eventstore.limits import Limits
from sessions.context import ContextBlock, ContextConfig, check_size, checked_content, joined
from sessions.providers import capabilities_of, settle
from sessions.stored_context import StoredText


class Bound:
    """A block and its provider: what it shows is what the provider gave, or took, last."""

    def __init__(self, config: ContextConfig, provider: Any, estimate: Callable[[str], int], limits: Limits) -> None:
        self.config = config
        self.can = capabilities_of(provider)
        self._provider = provider
        self._estimate = estimate
        self._limits = limits
        self._content = ""
        self._is_ready = False
        self._writing = asyncio.Lock()

    @property
    def label(self) -> str:
        """The block's label."""
        return self.config.label

    def block(self) -> ContextBlock:
        """The block as it is shown."""
        config, can, content = self.config, self.can, self._content
        about = (config.label, config.description, content, self._estimate(content), config.max_tokens)
        return ContextBlock(*about, can.writable, can.skill, can.search)

    async def load(self) -> None:
        """Show what the provider has now."""
        self._content = await self._get() or ""

    async def replace(self, content: str) -> None:
        """Replace the text; one that is over the limit may shrink what the provider has at that moment."""
        self._check_plain()
        text = checked_content(content, self._limits, self.label)
        async with self._writing:
            if not self._is_over(text):
                await settle(self._provider.set(text))
            elif isinstance(self._provider, StoredText):
                await self._provider.set(text, check=partial(self.check, text))
            else:
                self.check(text, await self._get())
                await settle(self._provider.set(text))
            self._content = text

    async def append(self, content: str) -> None:
        """Put a text behind the one that the provider has, on a line of its own; in a store with nothing between."""
        self._check_plain()
        async with self._writing:
            if isinstance(self._provider, StoredText):
                self._content = await self._provider.append(content, check=self.check)
                return
            more = checked_content(content, self._limits, self.label)
            text = joined(await self._get(), more)
            check_size(text, self._limits, self.label)
            self.check(text)
            await settle(self._provider.set(text))
            self._content = text

    async def set_entry(self, key: str, content: str, description: str | None) -> None:
        """Write an entry of a block with keys that is writable."""
        text = checked_content(content, self._limits, key)
        more = {"description": description} if self.can.skill and description is not None else {}
        async with self._writing:
            await settle(self._provider.set(key, text, *more.values()))
            await self.load()

    async def load_entry(self, key: str) -> str | None:
        """The body of an entry, None for an unknown key."""
        if not self.can.skill:
            raise NotSupportedError(f"loading from block {self.label!r}, which has no skills,")
        found: str | None = await settle(self._provider.load(key))
        return found

    async def search(self, query: str) -> str | None:
        """What was found in the block, as text."""
        found: str | None = await settle(self._provider.search(query))
        return found

    def check(self, content: str, held: str | None = None) -> None:
        """Raise BlockTooLargeError for a text of more tokens than the block may have, unless it has fewer than held."""
        most = self.config.max_tokens
        if most is None or (tokens := self._estimate(content)) <= most:
            return
        if tokens >= self._estimate(held or ""):
            raise BlockTooLargeError(self.label, tokens, most)

    def _is_over(self, content: str) -> bool:
        most = self.config.max_tokens
        return most is not None and self._estimate(content) > most

    async def _get(self) -> str | None:
        if self._provider is None:
            return None
        if not self._is_ready:
            init = getattr(self._provider, "init", None)
            if callable(init):
                await settle(init(self.label))
            self._is_ready = True
        content: str | None = await settle(self._provider.get())
        if not isinstance(content, str | None):
            raise InvalidArgumentError("provider", f"get() of block {self.label!r} gave a {type(content).__name__}")
        return content

    def _check_plain(self) -> None:
        if not self.can.writable:
            raise BlockReadOnlyError(self.label)
        if self.can.keyed:
            raise NotSupportedError(f"writing block {self.label!r} as a whole, which has entries with keys,")


class SessionBlocks:
    """The blocks of a session in the order in which they were given; loaded at first use, and again when asked to."""

    def __init__(
        self,
        configs: Iterable[ContextConfig],
        default: Callable[[str], Any],
        estimate: Callable[[str], int],
        limits: Limits,
    ) -> None:
        self._bind = partial(_bound, default=default, estimate=estimate, limits=limits)
        self._bound = {config.label: self._bind(config) for config in configs}
        self._is_loaded = False
        self._loading = asyncio.Lock()

    async def load(self, *, again: bool = False) -> None:
        """Have every block show what its provider has, once or again; a provider that fails leaves the others."""
        async with self._loading:
            if again or not self._is_loaded:
                for bound in list(self._bound.values()):
                    await bound.load()
                self._is_loaded = True

    async def all(self) -> list[Bound]:
        """Every block."""
        await self.load()
        return list(self._bound.values())

    async def find(self, label: str) -> Bound | None:
        """The block with this label."""
        await self.load()
        return self._bound.get(label)

    async def get(self, label: str) -> Bound:
        """The block with this label; raises BlockNotFoundError."""
        bound = await self.find(label)
        if bound is None:
            raise BlockNotFoundError(label)
        return bound

    async def add(self, config: ContextConfig) -> Bound:
        """Add a block behind the others; raises DuplicateBlockError."""
        await self.load()
        bound = self._bind(config)
        if bound.label in self._bound:
            raise DuplicateBlockError(bound.label)
        await bound.load()
        return self._bound.setdefault(bound.label, bound)

    def remove(self, label: str) -> bool:
        """Take a block out of the session; what its provider holds stays there."""
        return self._bound.pop(label, None) is not None


def _bound(
    config: ContextConfig, default: Callable[[str], Any], estimate: Callable[[str], int], limits: Limits
) -> Bound:
    config = config.checked(limits)
    provider = default(config.label) if config.provider is None else config.provider
    return Bound(config, provider, estimate, limits)
