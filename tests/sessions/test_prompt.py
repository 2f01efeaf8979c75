from __future__ import annotations

import asyncio
import datetime as dt
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from sessions import Session, StaticContext, Store, StoredContext, open_store
from tests.sessions.processes import ROOT
from tests.sessions.providers import Note

PROGRAM = """
import asyncio, sys
from sessions import Session, open_store

async def main(url, *labels):
    async with open_store(url) as store:
        session = Session.create(store).for_session("chat").with_cached_prompt()
        for label in labels:
            session.with_context(label)
        sys.stdout.buffer.write((await session.freeze_system_prompt()).encode())

asyncio.run(main(*sys.argv[1:]))
"""


def with_blocks(store: Store, *labels: str) -> Session:
    """Return a session with blocks in this order, whose prompt the store keeps."""
    session = Session.create(store).for_session("chat").with_cached_prompt()
    for label in labels:
        session.with_context(label)
    return session


def elsewhere(url: str, labels: Sequence[str], seed: str) -> bytes:
    """Freeze the prompt of the session in another process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, *labels], env=environment, capture_output=True, check=True
    )
    return run.stdout


async def test_frozen_bytes_are_the_same_everywhere(url: str) -> None:
    """A frozen prompt has the same bytes after writes, on another day, in other processes, until a refresh (CTX-3)."""
    now = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    async with open_store(url, clock=lambda: now) as store:
        session = with_blocks(store, "memory", "notes")
        await session.replace_context_block("memory", "likes tea")
        frozen = await session.freeze_system_prompt()
        await session.replace_context_block("notes", "written later")
        now += dt.timedelta(days=1)
        assert await session.freeze_system_prompt() == frozen
        assert await with_blocks(store, "notes", "memory").freeze_system_prompt() == frozen
        for seed, labels in (("1", ("notes", "memory")), ("2", ("memory", "notes", "more"))):
            assert await asyncio.to_thread(elsewhere, url, labels, seed) == frozen.encode()
        refreshed = await session.refresh_system_prompt()
        assert "written later" in refreshed
        assert await asyncio.to_thread(elsewhere, url, ["notes"], "3") == refreshed.encode()


async def test_first_of_two_freezes_wins(url: str) -> None:
    """Of prompts that two stores freeze at once the first is kept, and both are given it."""
    async with open_store(url) as one, open_store(url) as other:
        sessions = [
            Session.create(store).with_context("soul", provider=StaticContext(f"from {n}")).with_cached_prompt()
            for n, store in enumerate((one, other))
        ]
        frozen = await asyncio.gather(*(session.freeze_system_prompt() for session in sessions))
        assert frozen[0] == frozen[1]
        assert [event.type async for event in sessions[0].events()] == ["prompt_frozen"]
        shared = [
            Session.create(store)
            .with_context("soul", provider=StaticContext(f"from {n}"))
            .with_cached_prompt(StoredContext(store, "prompt"))
            for n, store in enumerate((one, other))
        ]
        frozen = await asyncio.gather(*(session.freeze_system_prompt() for session in shared))
        assert frozen[0] == frozen[1] == await StoredContext(one, "prompt").get()


async def test_empty_prompt_is_frozen_too(store: Store) -> None:
    """A prompt of no blocks is an empty one, and stays so when blocks are given until it is refreshed."""
    assert await with_blocks(store).freeze_system_prompt() == ""
    assert await with_blocks(store, "memory").freeze_system_prompt() == ""
    assert await with_blocks(store, "memory").refresh_system_prompt() != ""


async def test_refresh_of_the_same_is_no_event(store: Store) -> None:
    """Rendering a prompt that has not changed writes nothing."""
    session = with_blocks(store, "memory")
    await session.freeze_system_prompt()
    await session.refresh_system_prompt()
    assert await session.version() == 1


async def test_prompt_without_a_store_lives_as_long_as_the_session_object(store: Store) -> None:
    """A prompt that nobody keeps is frozen in the session object, and rendered again by the next one."""
    session = Session.create(store).with_context("memory")
    frozen = await session.freeze_system_prompt()
    await session.replace_context_block("memory", "new")
    assert await session.freeze_system_prompt() == frozen
    assert "new" in await Session.create(store).with_context("memory").freeze_system_prompt()


async def test_clearing_renders_the_prompt_anew(store: Store) -> None:
    """Clearing the messages freezes the prompt as the blocks have it then, in the store as well (CTX-3)."""
    session = with_blocks(store, "memory")
    await session.append_message({"id": "m", "role": "user", "parts": []})
    await session.freeze_system_prompt()
    await session.replace_context_block("memory", "new")
    await session.clear_messages()
    assert "new" in await with_blocks(store, "memory").freeze_system_prompt()
    assert await session.get_history() == []


async def test_failing_block_keeps_messages_from_being_cleared(store: Store) -> None:
    """When the prompt cannot be rendered anew, nothing is cleared."""
    note = Note("text")
    session = Session.create(store).with_context("memory", provider=note)
    await session.append_message({"id": "m", "role": "user", "parts": []})
    note.content = 1  # type: ignore[assignment]
    with pytest.raises(ValueError, match="memory"):
        await session.clear_messages()
    assert await session.get_path_length() == 1


async def test_reminder_tells_what_changed_since_the_freeze(store: Store) -> None:
    """The reminder has the blocks to be reminded of that differ from the frozen prompt, and no others (CTX-3)."""
    task, date = Note("buy tea and milk"), Note("Monday")
    session = Session.create(store).with_context("task", provider=task, when_changed="remind")
    session.with_context("date", provider=date, when_changed="remind").with_context("memory", provider=Note("x"))
    assert await session.reminder() is None
    await session.freeze_system_prompt()
    assert await session.reminder() is None
    task.content = "buy tea"
    reminder = await session.reminder()
    assert reminder is not None
    assert "buy tea" in reminder
    assert "milk" not in reminder
    assert "Monday" not in reminder
    date.content = "Tuesday"
    assert "Tuesday" in (await session.reminder() or "")
    await session.refresh_system_prompt()
    assert await session.reminder() is None
    await session.replace_context_block("memory", "y")
    assert await session.reminder() is None
