from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from eventstore import Envelope
from sessions import Session, Store, open_store
from tests.sessions.talk import chain, said

WAIT = 10.0


async def take(stream: AsyncIterator[Envelope], count: int) -> list[int]:
    """Return the versions of the next events, which must come in time."""
    async with asyncio.timeout(WAIT):
        return [(await anext(stream)).version for _ in range(count)]


async def is_silent(stream: AsyncIterator[Envelope]) -> bool:
    """Tell whether nothing comes for a while; the stream is over afterwards."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.15):
            await anext(stream)
            return False
    return True


async def test_history_then_live_without_a_seam(session: Session) -> None:
    """A subscription from the start gives the session's past, then what is appended, each event once and in order."""
    await session.append_messages([said(f"m{n}") for n in range(1, 1501)])
    stream = session.subscribe(0)
    assert await take(stream, 1000) == list(range(1, 1001))
    await chain(session, "x", "y")
    assert await take(stream, 502) == list(range(1001, 1503))
    await session.select_leaf("m1")
    assert await take(stream, 1) == [1503]
    assert await is_silent(stream)


async def test_from_a_version(session: Session) -> None:
    """A subscription after a version begins with the next one, and beyond the end it waits for it."""
    await chain(session, "m1", "m2", "m3")
    assert await take(session.subscribe(2), 1) == [3]
    ahead = session.subscribe(after_version=4)
    waiting = asyncio.create_task(take(ahead, 1))
    await asyncio.sleep(0.05)
    await chain(session, "m4", "m5")
    assert await waiting == [5]


async def test_from_now(session: Session) -> None:
    """Without a version only what is appended after the call is given, also when reading begins later."""
    await chain(session, "m1", "m2")
    stream = session.subscribe()
    await chain(session, "m3")
    assert await take(stream, 1) == [3]
    assert await is_silent(stream)


async def test_only_its_own_session(store: Store, session: Session) -> None:
    """A subscription hears nothing of other sessions, and one to a session that does not exist yet waits for it."""
    stream = session.subscribe(0)
    waiting = asyncio.create_task(take(stream, 2))
    other = Session.create(store).for_session("other")
    await chain(other, "m1", "m2", "m3")
    assert not waiting.done()
    await chain(session, "m1", "m2")
    assert await waiting == [1, 2]


async def test_many_subscribers(session: Session) -> None:
    """Every subscriber gets every event, whoever reads slowly."""
    streams = [session.subscribe(0) for _ in range(5)]
    reading = [asyncio.create_task(take(stream, 50)) for stream in streams[1:]]
    await asyncio.gather(*(session.append_message(said(f"m{n}")) for n in range(50)))
    for read in await asyncio.gather(*reading):
        assert read == list(range(1, 51))
    assert await take(streams[0], 50) == list(range(1, 51))


async def test_other_stores_of_the_same_file_are_heard(url: str) -> None:
    """What another store writes to the same file reaches a subscriber in time."""
    async with open_store(url) as here, open_store(url) as there:
        stream = Session.create(here).for_session("chat").subscribe(0)
        waiting = asyncio.create_task(take(stream, 3))
        await chain(Session.create(there).for_session("chat"), "m1", "m2", "m3")
        assert await waiting == [1, 2, 3]
        await stream.aclose()
