"""What is asked between two turns: as many statements in a long session as in a short one, and no message is read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from sessions import Session, Store, StoredSession
from tests.projections.skill_messages import answer, call
from tests.sessions.compactions import Frames
from tests.sessions.providers import Entries
from tests.sessions.talk import said
from tests.sessions.watching import on_connections, working

SHORT, LONG = 10, 10_000
BODY = "Boil the water, warm the pot, and wait for four minutes before you pour."
Call = Callable[[Session], Awaitable[Any]]

# The whole text of messages is in these columns, and nowhere else.
CONTENT = {("assistant_messages", "content"), ("events", "payload")}

READS: dict[str, Call] = {
    "token estimate": lambda session: stored(session).token_estimate(),
    "token estimate of a leaf": lambda session: stored(session).token_estimate("m5"),
    "loaded skills": lambda session: session.get_loaded_skill_keys(),
    "path length": lambda session: session.get_path_length(),
    "path length of a leaf": lambda session: session.get_path_length("m5"),
    "version": lambda session: session.version(),
    "frozen prompt": lambda session: session.freeze_system_prompt(),
    "reminder": lambda session: session.reminder(),
    "blocks": lambda session: session.get_context_blocks(),
    "tools": lambda session: session.tools(),
}
WRITES: dict[str, Call] = {
    "first freeze": lambda session: session.freeze_system_prompt(),
    "refresh": lambda session: session.refresh_system_prompt(),
    "skill loaded": lambda session: session.load_skill("skills", "coffee"),
    "skill unloaded": lambda session: session.unload_skill("skills", "tea"),
    "block written": lambda session: session.replace_context_block("memory", "new"),
    "block appended to": lambda session: session.append_context_block("memory", "more"),
}


def stored(session: Session) -> StoredSession:
    """Return what keeps the messages of a session."""
    storage = session._storage
    assert isinstance(storage, StoredSession)
    return storage


def opened(store: Store, length: int) -> Session:
    """Return the session of so many messages, as a program that has just started has it."""
    session = Session.create(store).for_session(f"of {length}").with_cached_prompt()
    session.with_context("memory", when_changed="remind")
    session.with_context("skills", provider=Entries(tea=BODY, coffee=BODY))
    return session.with_publisher(Frames())


async def fill(store: Store, length: int) -> None:
    """Store a session of so many messages, with a branch, a summary and a skill that was given out and one gone."""
    session = Session.create(store).for_session(f"of {length}")
    loads = [answer(f"s{n}", call("load_context", "skills", "tea", BODY, call_id=f"c{n}")) for n in range(2)]
    await session.append_messages([*(said(f"m{n}") for n in range(length - 2)), *loads])
    await session.append_message(said("branch"), "m3")
    await session.select_leaf("s1")
    await session.add_compaction("In short.", "m1", "m4")


@contextlib.asynccontextmanager
async def columns_read(store: Store) -> AsyncIterator[set[tuple[str, str]]]:
    """Note the columns that statements read within the block, as long as only one call at a time is made."""
    seen: set[tuple[str, str]] = set()

    def note(action: int, table: str | None, column: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ:
            seen.add((str(table), str(column)))
        return sqlite3.SQLITE_OK

    await _watch(store, note)
    try:
        yield seen
    finally:
        await _watch(store, None)


async def _watch(store: Store, note: Callable[..., int] | None) -> None:
    # Statements are prepared anew when an authorizer is set, so those that were used before are seen too.
    await on_connections(store, lambda connection: connection.set_authorizer(note))


@pytest.fixture
async def lengths(store: Store) -> tuple[int, int]:
    """Return the lengths of a short session and of a long one, both of which are stored."""
    for length in (SHORT, LONG):
        await fill(store, length)
    return SHORT, LONG


@pytest.mark.parametrize("name", ["cold", "warm"])
async def test_reads_between_turns_read_no_message(store: Store, lengths: tuple[int, int], name: str) -> None:
    """What is asked between turns takes the same statements at 10 messages and at 10,000, and reads none of them."""
    counts: dict[str, list[int]] = {read: [] for read in READS}
    for length in lengths:
        session = opened(store, length)
        await session.freeze_system_prompt()
        for read, run in READS.items():
            asked = session if name == "warm" else opened(store, length)
            async with working(store) as work, columns_read(store) as columns:
                await run(asked)
            counts[read].append(work.statements)
            assert not columns & CONTENT, read
    assert {read for read, (short, long) in counts.items() if short != long} == set()


async def test_latest_leaf_reads_itself_alone(store: Store, lengths: tuple[int, int]) -> None:
    """The latest leaf takes as many statements, and as little work, of 10,000 messages as of 10."""
    works = []
    for length in lengths:
        session = opened(store, length)
        async with working(store) as work:
            leaf = await session.get_latest_leaf()
        assert leaf is not None
        assert leaf.id == "s1"
        works.append(work)
    short, long = works
    assert long.statements == short.statements
    assert long.steps <= short.steps + 50


async def test_writes_beside_messages_read_none(store: Store, lengths: tuple[int, int]) -> None:
    """Freezing, refreshing, writing blocks and loading skills cost the same beside 10,000 messages, and read none."""
    counts: dict[str, list[int]] = {write: [] for write in WRITES}
    for length in lengths:
        session = opened(store, length)
        await session.get_context_blocks()
        for write, run in WRITES.items():
            async with working(store) as work, columns_read(store) as columns:
                await run(session)
            counts[write].append(work.statements)
            assert not columns & CONTENT, write
    assert {write for write, (short, long) in counts.items() if short != long} == set()


async def test_reading_a_message_is_seen(store: Store, lengths: tuple[int, int]) -> None:
    """A read of the history is noticed, so that the tests above can tell."""
    async with columns_read(store) as columns:
        await opened(store, lengths[0]).get_history()
    assert columns & CONTENT
