"""What a store keeps for sessions, used by itself: a text under a key, entries under a label, a prompt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventstore import BlockTooLargeError, InvalidArgumentError, LimitExceededError, Limits
from sessions import Session, StaticContext, Store, StoredContext, StoredSearch, open_store
from tests.sessions.talk import log_of


async def test_text_is_set_and_appended_to(store: Store) -> None:
    """A text is set, is appended to on a line of its own, and is the whole that the append gives back."""
    notes = StoredContext(store, "notes")
    assert await notes.get() is None
    assert await notes.append("one") == "one"
    assert await notes.append("two") == "one\ntwo"
    assert await StoredContext(store, "notes").append("\nthree") == "one\ntwo\nthree"
    assert await notes.append("") == "one\ntwo\nthree\n"
    await notes.set("")
    assert await notes.append("one") == "one"
    before = await log_of(store)
    await notes.set("one")
    assert await log_of(store) == before
    assert await StoredContext(store, "other").get() is None


async def test_texts_that_are_appended_at_once_are_all_there(store: Store) -> None:
    """Of texts that tasks append at once each gets the whole as it was when its own was written, and none is lost."""
    notes = StoredContext(store, "notes")
    wholes = await asyncio.gather(*(notes.append(str(number)) for number in range(20)))
    assert [whole.split("\n") for whole in wholes] == [[str(n) for n in range(last + 1)] for last in range(20)]


async def test_whoever_appends_may_refuse_what_it_comes_to(store: Store) -> None:
    """A check is asked about the whole text, and what it raises refuses the append."""
    notes = StoredContext(store, "notes")
    await notes.set("one")

    def refuse(whole: str) -> None:
        raise BlockTooLargeError("notes", len(whole), 5)

    with pytest.raises(BlockTooLargeError) as refused:
        await notes.append("two", check=refuse)
    assert refused.value.tokens == len("one\ntwo")
    assert await notes.get() == "one"


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]])
async def test_what_is_no_text_is_refused(store: Store, text: Any) -> None:
    """A text, an entry, a query or a fixed text that is none is refused, and nothing is written."""
    notes, entries = StoredContext(store, "notes"), StoredSearch(store)
    entries.init("kb")
    for attempt in (
        notes.set(text),
        notes.append(text),
        notes.keep(text),
        entries.set("k", text),
        entries.search(text),
    ):
        with pytest.raises(InvalidArgumentError):
            await attempt
    with pytest.raises(InvalidArgumentError):
        StaticContext(text)
    assert await log_of(store) == []


async def test_prompt_is_bounded(url: str) -> None:
    """A prompt of blocks that together are larger than an event may be is refused, and the frozen one stays."""
    async with open_store(url, limits=Limits(message_bytes=2_000)) as store:
        session = Session.create(store).for_session("chat").with_cached_prompt()
        for label in ("one", "two"):
            session.with_context(label)
        await session.replace_context_block("one", "x" * 1_000)
        frozen = await session.freeze_system_prompt()
        await session.replace_context_block("two", "x" * 1_000)
        for attempt in (session.refresh_system_prompt(), session.clear_messages()):
            with pytest.raises(LimitExceededError) as refused:
                await attempt
            assert refused.value.limit == "message_bytes"
        assert await session.freeze_system_prompt() == frozen
