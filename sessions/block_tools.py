"""The tools for blocks of context: write to them, load and unload skills, search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from eventstore.errors import BlockTooLargeError
from eventstore.limits import clean_text
from projections.skill_calls import LOAD, UNLOAD, not_found
from sessions.blocks import Bound, SessionBlocks
from sessions.context import ContextBlock
from sessions.entry_key import entry_key
from sessions.prompt import percent
from sessions.skills import Unloaded
from sessions.tools import NO_RESULTS, Input, Tool, ToolError, schema, shortened, string

SET = "set_context"
SEARCH = "search_context"


class Skilled(Protocol):
    """What the tools for skills do to a session."""

    async def load_skill(self, label: str, key: str) -> str | None:
        """The body of a skill, which is loaded then."""

    async def get_loaded_skill_keys(self) -> set[str]:
        """The loaded skills as `label:key`."""


Unload = Callable[[str, str], Awaitable[Unloaded]]
"""Unloads a skill, named by its block's label and its key."""


async def block_tools(blocks: SessionBlocks, session: Skilled, unload: Unload) -> dict[str, Tool]:
    """The tools that the blocks of a session give a use to, by name."""
    every = await blocks.all()
    writable = [bound for bound in every if bound.can.writable]
    skills = [bound for bound in every if bound.can.skill]
    searchable = [bound for bound in every if bound.can.search]
    tools: list[Tool] = []
    if writable:
        tools.append(_set_context(blocks, writable))
    if skills:
        tools += [_load_context(blocks, skills, session), _unload_context(blocks, skills, unload)]
        tools[-1] = await _with_loaded(tools[-1], session)
    if searchable:
        tools.append(_search_context(blocks, searchable))
    return {tool.name: tool for tool in tools}


def _set_context(blocks: SessionBlocks, writable: Sequence[Bound]) -> Tool:
    lines = [
        f'- "{bound.label}" ({_kind(bound)}): {bound.config.description or "no description"}' for bound in writable
    ]
    about = [
        "Write to a block of context, which is kept when earlier messages are not shown any more. The blocks:",
        *lines,
    ]
    optional: dict[str, Any] = {
        "action": string("replace (the default) or append; entries are always replaced as a whole", "replace", "append")
    }
    if any(bound.can.keyed for bound in writable):
        about.append(
            "A block of keyed entries takes one entry at a time. Its key is made from the title in metadata; the same "
            "title again replaces the entry. The description in metadata says in the list of entries what it is for."
        )
        texts = {"title": string("what the entry is called"), "description": string("what the entry is for")}
        optional["metadata"] = {"type": "object", "properties": texts}
    required = {"label": _labels(writable), "content": string("the text to write")}

    async def run(given: Input) -> str:
        label, content = given["label"], given["content"]
        bound = await blocks.find(label)
        if bound is None:
            raise ToolError(f'block "{shortened(label)}" not found')
        if bound.can.keyed:
            return await _set_entry(bound, content, given.get("metadata"))
        if not bound.can.writable:
            raise ToolError(f'Block "{label}" is readonly')
        try:
            if given.get("action") == "append":
                await bound.append(content)
            else:
                await bound.replace(content)
        except BlockTooLargeError as error:
            raise ToolError(f'Block "{label}" exceeds maxTokens: {error.tokens} > {error.max_tokens}') from None
        return f"Written to {label}. Usage: {_usage(bound.block())}"

    return Tool(SET, "\n".join(about), schema(required, optional), run)


async def _set_entry(bound: Bound, content: str, metadata: object) -> str:
    if not bound.can.writable:
        raise ToolError(f'Block "{bound.label}" does not support writes')
    told = metadata if isinstance(metadata, Mapping) else {}
    given = (told.get(name) for name in ("title", "description"))
    title, description = (clean_text(one) if isinstance(one, str) else None for one in given)
    key = entry_key(content, title)
    await bound.set_entry(key, content, title if description is None else description)
    return f'Indexed "{key}" in {bound.label}.'


def _load_context(blocks: SessionBlocks, skills: Sequence[Bound], session: Skilled) -> Tool:
    async def run(given: Input) -> str:
        label, key = await _skill(blocks, given)
        body = await session.load_skill(label, key)
        return not_found(key) if body is None else body

    about = f"Read the full text of an entry of a skill block, by the key in its list. Skill blocks: {_quoted(skills)}."
    return Tool(LOAD, about, _skill_schema(skills), run)


def _unload_context(blocks: SessionBlocks, skills: Sequence[Bound], unload: Unload) -> Tool:
    async def run(given: Input) -> str:
        label, key = await _skill(blocks, given)
        unloaded = await unload(label, key)
        name = shortened(key)
        if not unloaded.was_loaded:
            return f'Skill "{name}" is not currently loaded in "{label}".'
        if not unloaded.copies:
            return f'Unloaded "{name}" from {label}. Nothing was taken out of the conversation.'
        return f'Unloaded "{name}" from {label}. Context reclaimed.'

    about = "Take the text of a skill that is not needed any more out of the conversation; it can be loaded again."
    return Tool(UNLOAD, about, _skill_schema(skills), run)


async def _with_loaded(tool: Tool, session: Skilled) -> Tool:
    loaded = ", ".join(map(shortened, sorted(await session.get_loaded_skill_keys())))
    about = f"{tool.description} Currently loaded: {loaded}." if loaded else tool.description
    return Tool(tool.name, about, tool.input_schema, tool.run)


def _search_context(blocks: SessionBlocks, searchable: Sequence[Bound]) -> Tool:
    async def run(given: Input) -> str:
        label = given["label"]
        bound = await blocks.find(label)
        if bound is None or not bound.can.search:
            listed = await _listed(blocks, _is_searchable)
            raise ToolError(f'"{shortened(label)}" is not searchable. Searchable blocks: {listed}')
        return await bound.search(given["query"]) or NO_RESULTS

    about = f"Search the entries of a block for all words of a query. Searchable blocks: {_quoted(searchable)}."
    required = {"label": _labels(searchable), "query": string("the words to search for")}
    return Tool(SEARCH, about, schema(required), run)


async def _skill(blocks: SessionBlocks, given: Input) -> tuple[str, str]:
    label, key = given["label"], given["key"]
    bound = await blocks.find(label)
    if bound is None or not bound.can.skill:
        skills = await _listed(blocks, _is_skill)
        raise ToolError(f'"{shortened(label)}" is not a skill block. Skill blocks: {skills}')
    return label, key


async def _listed(blocks: SessionBlocks, wanted: Callable[[Bound], bool]) -> str:
    return ", ".join(bound.label for bound in await blocks.all() if wanted(bound))


def _is_skill(bound: Bound) -> bool:
    return bound.can.skill


def _is_searchable(bound: Bound) -> bool:
    return bound.can.search


def _kind(bound: Bound) -> str:
    if bound.can.skill:
        return "skill collection, keyed entries"
    return "searchable, keyed entries" if bound.can.search else "writable"


def _quoted(bounds: Iterable[Bound]) -> str:
    return ", ".join(f'"{bound.label}"' for bound in bounds)


def _labels(bounds: Iterable[Bound]) -> dict[str, Any]:
    return string("the block", *(bound.label for bound in bounds))


def _skill_schema(skills: Sequence[Bound]) -> dict[str, Any]:
    return schema({"label": _labels(skills), "key": string("the key of the entry")})


def _usage(block: ContextBlock) -> str:
    if not block.max_tokens:
        return f"{block.tokens} tokens"
    return f"{percent(block.tokens, block.max_tokens)}% ({block.tokens}/{block.max_tokens} tokens)"
