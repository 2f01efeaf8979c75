"""The limit of a block, whatever keeps its text and however it came to be what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventstore import BlockTooLargeError
from sessions import ContextBlock, Session, SessionManager, Store, StoredContext
from tests.sessions.providers import Note
from tests.sessions.talk import log_of, said

KEPT_BY: dict[str, Callable[[Store], Any]] = {
    "the session": lambda _store: None,
    "a shared context": lambda store: StoredContext(store, "key"),
    "the application": lambda _store: Note(),
}


async def memory(session: Session) -> ContextBlock:
    """Return the block as it is shown."""
    block = await session.get_context_block("memory")
    assert block is not None
    return block


def limited(store: Store, session_id: str = "chat", max_tokens: int | None = 100, provider: Any = None) -> Session:
    """Return a session with a block of at most so many tokens, of four letters each."""
    session = Session.create(store).for_session(session_id)
    return session.with_context("memory", max_tokens=max_tokens, provider=provider)


async def refusals(session: Session, replacement: str, addition: str) -> list[tuple[str, int, int | None]]:
    """Return what the block's writer is told of each way to write too much: label, tokens and limit."""
    told: list[tuple[str, int, int | None]] = []
    for write, text in ((session.replace_context_block, replacement), (session.append_context_block, addition)):
        with pytest.raises(BlockTooLargeError) as refused:
            await write("memory", text)
        told.append((refused.value.label, refused.value.tokens, refused.value.max_tokens))
    return told


async def answers(session: Session, replacement: str, addition: str) -> list[str]:
    """Return what a model is told when it writes too much in each way."""
    tool = (await session.tools())["set_context"]
    return [
        await tool.execute({"label": "memory", "content": text, "action": action})
        for action, text in (("replace", replacement), ("append", addition))
    ]


@pytest.mark.parametrize("kept_by", KEPT_BY)
async def test_limit_is_the_same_whatever_keeps_the_block(store: Store, kept_by: str) -> None:
    """At 95 of 100 tokens a text of 120 and an append of 10 are refused with the numbers, by the tool too (CTX-1)."""
    session = limited(store, provider=KEPT_BY[kept_by](store))
    assert (await session.replace_context_block("memory", "x" * 380)).tokens == 95
    before = await log_of(store)
    assert await refusals(session, "x" * 480, "x" * 40) == [("memory", 120, 100), ("memory", 106, 100)]
    assert await answers(session, "x" * 480, "x" * 40) == [
        'Error: Block "memory" exceeds maxTokens: 120 > 100',
        'Error: Block "memory" exceeds maxTokens: 106 > 100',
    ]
    assert (await memory(session)).content == "x" * 380
    assert await log_of(store) == before
    assert (await session.append_context_block("memory", "x" * 19)).tokens == 100


async def test_append_is_judged_on_what_it_comes_to(store: Store) -> None:
    """An append is measured with what the store holds at that moment, not with what the session has seen (CTX-1)."""
    here, there = limited(store), limited(store)
    assert (await memory(here)).content == (await memory(there)).content == ""
    await there.replace_context_block("memory", "x" * 380)
    assert await refusals(here, "x" * 480, "x" * 40) == [("memory", 120, 100), ("memory", 106, 100)]
    await there.replace_context_block("memory", "x" * 40)
    assert (await here.append_context_block("memory", "x" * 319)).tokens == 90


async def test_fork_with_a_block_over_its_limit(store: Store) -> None:
    """A fork takes a block along that is over its limit: it is shown, flagged, does not grow, and shrinks (CTX-1)."""
    source = limited(store, "source", max_tokens=None)
    await source.append_message(said("m1"))
    await source.replace_context_block("memory", "x" * 1_200)
    fork = limited(store, (await SessionManager(store).fork("source", "m1", "Fork")).id)
    block = await memory(fork)
    assert (block.content, block.tokens, block.max_tokens) == ("x" * 1_200, 300, 100)
    assert "MEMORY [300% — 300/100 tokens] [writable]" in await fork.freeze_system_prompt()
    assert await refusals(fork, "y" * 1_200, "x") == [("memory", 300, 100), ("memory", 301, 100)]
    assert (await memory(fork)).content == "x" * 1_200
    tool = (await fork.tools())["set_context"]
    assert (
        await tool.execute({"label": "memory", "content": "x" * 200}) == "Written to memory. Usage: 50% (50/100 tokens)"
    )
    assert (await memory(limited(store, "source"))).tokens == 300


@pytest.mark.parametrize("kept_by", KEPT_BY)
async def test_block_over_its_limit_can_be_made_smaller(store: Store, kept_by: str) -> None:
    """A block over its limit takes a smaller text that is over it too, from the tool as well, none as large (CTX-1)."""
    provider = KEPT_BY[kept_by](store)
    await limited(store, max_tokens=None, provider=provider).replace_context_block("memory", "x" * 1_200)
    session = limited(store, provider=provider)
    tool = (await session.tools())["set_context"]
    assert (await session.replace_context_block("memory", "x" * 1_000)).tokens == 250
    assert await refusals(session, "y" * 1_000, "x") == [("memory", 250, 100), ("memory", 251, 100)]
    answer = await tool.execute({"label": "memory", "content": "x" * 800})
    assert answer == "Written to memory. Usage: 200% (200/100 tokens)"
    assert await answers(session, "x" * 1_000, "x") == [
        'Error: Block "memory" exceeds maxTokens: 250 > 100',
        'Error: Block "memory" exceeds maxTokens: 201 > 100',
    ]
    assert (await session.replace_context_block("memory", "x" * 400)).tokens == 100
    assert await refusals(session, "x" * 404, "x") == [("memory", 101, 100), ("memory", 101, 100)]
    assert (await memory(limited(store, provider=provider))).content == "x" * 400


async def test_what_shrinks_is_what_is_stored(store: Store) -> None:
    """Whether a text makes a block smaller is judged on what the store holds at that moment (CTX-1)."""
    await limited(store, max_tokens=None).replace_context_block("memory", "x" * 1_200)
    here, there = limited(store), limited(store)
    assert (await memory(here)).tokens == (await memory(there)).tokens == 300
    await there.replace_context_block("memory", "x" * 400)
    assert await refusals(here, "x" * 800, "x") == [("memory", 200, 100), ("memory", 101, 100)]
    assert (await memory(limited(store))).tokens == 100


async def test_block_that_is_added_later_has_its_limit(store: Store) -> None:
    """A block that is added to a session in use, or taken out and added with a lower limit, keeps to it (CTX-1)."""
    session = Session.create(store).for_session("chat")
    await session.add_context("memory", max_tokens=100)
    await session.replace_context_block("memory", "x" * 380)
    await session.remove_context("memory")
    block = await session.add_context("memory", max_tokens=50)
    assert (block.tokens, block.max_tokens) == (95, 50)
    assert await refusals(session, "y" * 380, "x") == [("memory", 95, 50), ("memory", 96, 50)]
    assert (await memory(session)).tokens == 95
    assert (await session.replace_context_block("memory", "x" * 200)).tokens == 50
