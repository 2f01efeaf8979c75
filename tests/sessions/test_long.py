from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from replay import rebuild
from sessions import Session, Store
from tests.sessions.talk import collect, ids, said
from tests.sessions.watching import settled

LENGTH = 20_000
NAMES = [f"m{number}" for number in range(LENGTH)]


@pytest.fixture
async def deep(session: Session) -> Session:
    """Return a session whose messages are one chain of 20,000."""
    await session.append_messages([said(name, f"{name} " + "x" * 500) for name in NAMES])
    return session


async def test_deep_chain_reads_whole(deep: Session, store: Store) -> None:
    """A chain of 20,000 messages is read whole, in part, streamed, searched, continued and rebuilt."""
    for _ in range(2):
        assert ids(await deep.get_history()) == NAMES
        assert ids([message async for message in deep.history()]) == NAMES
        assert [node.message.id async for node in deep.tree()] == NAMES
        assert await deep.get_path_length() == LENGTH
        assert len(await deep.get_history("m9999")) == await deep.get_path_length("m9999") == 10_000
        assert ids(await deep.get_branches("m9999")) == ["m10000"]
        assert [hit.id for hit in await deep.search("m19998")] == ["m19998"]
        await rebuild(store)
    await deep.append_message(said("b"), "m9999")
    assert await deep.get_path_length() == 10_001
    await deep.append_message(said("next"), "m19999")
    assert (await deep.get_path_length(), len(await collect(deep.events(LENGTH)))) == (LENGTH + 1, 3)


async def test_branches_of_branches(session: Session) -> None:
    """A path through a thousand forks is read as any other."""
    await session.append_message(said("0"))
    for number in range(1, 1_000):
        await session.append_messages([said(f"x{number}")], str(number - 1))
        await session.append_message(said(str(number)), str(number - 1))
    names = [str(number) for number in range(1_000)]
    assert ids(await session.get_history()) == names
    assert ids([message async for message in session.history("x500")]) == [*names[:500], "x500"]
    assert await session.get_path_length("x999") == 1_000
    assert ids(await session.get_branches("500")) == ["x501", "501"]


READS: dict[str, Callable[[Session], AsyncIterator[Any]]] = {
    "history": lambda session: session.history(),
    "tree": lambda session: session.tree(),
    "events": lambda session: session.events(),
    "subscribe": lambda session: session.subscribe(0),
}


@pytest.mark.parametrize("store", ["file"], indirect=True)
async def test_streams_hold_little(deep: Session, store: Store) -> None:
    """Reading 10 MB of messages one by one, in any way, holds a page of them at a time."""
    # What the writer still has to do for them, it has then done.
    await settled(store)
    for name, read in READS.items():
        tracemalloc.start()
        try:
            count = 0
            stream = read(deep)
            async for _ in stream:
                count += 1
                if count == LENGTH:
                    break
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await stream.aclose()  # type: ignore[attr-defined]
        assert (name, count) == (name, LENGTH)
        assert peak < 5_000_000, name


async def test_large_messages_make_small_pages(session: Session) -> None:
    """A page of a stream is bounded in bytes too, so that a few large messages are not all held at once."""
    for number in range(40):
        await session.append_message(said(f"m{number}", "y" * 500_000))
    tracemalloc.start()
    try:
        lengths = [len(message.text) async for message in session.history()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lengths == [500_000] * 40
    assert peak < 12_000_000


async def test_slow_reader_is_not_buffered(session: Session) -> None:
    """A stream that nobody reads on takes no more memory, however much is appended meanwhile."""
    stream = session.subscribe(0)

    async def first() -> int:
        return (await anext(stream)).version

    waiting = asyncio.create_task(first())
    await session.append_message(said("first"))
    assert await waiting == 1
    tracemalloc.start()
    try:
        for start in range(0, 5_000, 500):
            await session.append_messages([said(f"n{start + k}", "x" * 500) for k in range(500)])
        current, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current < 4_000_000
    assert [(await anext(stream)).version for _ in range(5_000)] == list(range(2, 5_002))
    await stream.aclose()
