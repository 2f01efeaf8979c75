"""The system prompt: rendered from blocks, frozen until it is refreshed, and what became of it since."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Any

from eventstore.limits import Limits
from sessions.blocks import SessionBlocks
from sessions.context import REMIND, ContextBlock
from sessions.providers import settle
from sessions.stored_context import StoredText, checked_prompt

RULE = "═" * 46
BETWEEN = "\n\n"


def render(blocks: Iterable[ContextBlock]) -> str:
    """The text that a model is given of blocks; those with nothing to read and nothing to do are left out."""
    return BETWEEN.join(section for block in blocks if (section := render_block(block)))


def render_block(block: ContextBlock) -> str:
    """The section of one block; empty when it is left out."""
    if not block.content and not (block.writable or block.is_skill or block.is_searchable):
        return ""
    return f"{RULE}\n{_header(block)}\n{RULE}\n{block.content}"


def is_rendered(section: str, prompt: str) -> bool:
    """Whether a section stands in a prompt as it is, and not as the beginning or the end of another."""
    return f"{BETWEEN}{section}{BETWEEN}{RULE}\n" in f"{BETWEEN}{prompt}{BETWEEN}{RULE}\n"


def percent(tokens: int, max_tokens: int) -> int:
    """How much of a block is used, rounded half up."""
    return math.floor(tokens / max_tokens * 100 + 0.5)


def _header(block: ContextBlock) -> str:
    header = block.label.upper()
    if block.description:
        header += f" ({block.description})"
    if block.max_tokens:
        header += f" [{percent(block.tokens, block.max_tokens)}% — {block.tokens}/{block.max_tokens} tokens]"
    return f"{header} [{_kind(block)}]"


def _kind(block: ContextBlock) -> str:
    if block.is_searchable:
        return "searchable"
    if block.is_skill:
        return "loadable"
    return "writable" if block.writable else "readonly"


class SystemPrompt:
    """The prompt of one session: kept by a store, if it has one, else for as long as the session object lives."""

    def __init__(self, blocks: SessionBlocks, store: Any, limits: Limits) -> None:
        self._blocks = blocks
        self._store = store
        self._limits = limits
        self._held: str | None = None
        self._changing = asyncio.Lock()
        self._is_ready = False

    async def frozen(self) -> str | None:
        """The prompt as it was frozen; None when it was not. An empty one is frozen, too."""
        if self._store is None:
            return self._held
        if not self._is_ready:
            init = getattr(self._store, "init", None)
            if callable(init):
                await settle(init("system_prompt"))
            self._is_ready = True
        stored: str | None = await settle(self._store.get())
        return stored

    async def freeze(self) -> str:
        """The frozen prompt; it is rendered when there is none. Of two that are frozen at once the first is kept."""
        frozen = await self.frozen()
        if frozen is not None:
            return frozen
        async with self._changing:
            frozen = await self.frozen()
            if frozen is not None:
                return frozen
            prompt = await self._rendered(again=False)
            if isinstance(self._store, StoredText):
                return await self._store.keep(prompt)
            await self.keep(prompt)
            return prompt

    async def refresh(self) -> str:
        """Render the prompt from what the blocks' providers have now, and freeze that."""
        async with self._changing:
            prompt = await self._rendered(again=True)
            await self.keep(prompt)
            return prompt

    async def rendered(self) -> str:
        """The prompt as it would be frozen now."""
        return await self._rendered(again=True)

    async def current(self) -> str:
        """The frozen prompt; as long as there is none, as it would be frozen of what the blocks show."""
        frozen = await self.frozen()
        return await self._rendered(again=False) if frozen is None else frozen

    async def keep(self, prompt: str) -> None:
        """Let this be the frozen prompt."""
        if self._store is not None:
            await settle(self._store.set(prompt))
        self._held = prompt

    async def reminder(self) -> str | None:
        """The sections of the blocks to be reminded of that are not in the frozen prompt as they are now, if any."""
        frozen = await self.frozen()
        wanted = [bound for bound in await self._blocks.all() if bound.config.when_changed == REMIND]
        if frozen is None or not wanted:
            return None
        for bound in wanted:
            await bound.load()
        sections = [render_block(bound.block()) for bound in wanted]
        return BETWEEN.join(one for one in sections if one and not is_rendered(one, frozen)) or None

    async def _rendered(self, *, again: bool) -> str:
        await self._blocks.load(again=again)
        return checked_prompt(render(bound.block() for bound in await self._blocks.all()), self._limits)
