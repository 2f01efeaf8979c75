"""Changes whose caller is cancelled or runs out of time: made or not made, and nobody else waits."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from replay import verify
from sessions import Session, Store, open_store
from tests.sessions.talk import collect, log_of, said

LONG_AGO = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)

CHANGES: dict[str, Callable[[Session], Awaitable[Any]]] = {
    "update": lambda session: session.update_message(said("m2", "changed")),
    "upsert": lambda session: session.upsert_message(said("new")),
    "delete": lambda session: session.delete_messages(["m2", "m4"]),
    "clear": lambda session: session.clear_messages(),
    "import": lambda session: session.import_message(said("old"), "m1", LONG_AGO),
    "compact": lambda session: session.add_compaction("S", "m1", "m3"),
}


@pytest.fixture
async def pair(url: str) -> AsyncIterator[tuple[Store, Store]]:
    """Return two stores on one file, as two processes have them."""
    async with open_store(url, synchronous="normal") as one, open_store(url, synchronous="normal") as two:
        yield one, two


async def _settled(store: Store, other: Store, name: str) -> bool:
    """Check that a session of five is as it was or changed whole, and that both stores write at once."""
    await Session.create(store).for_session("settled").append_message(said(name))
    mine, theirs = (Session.create(one).for_session(name) for one in (store, other))
    version = await theirs.version()
    assert version in {5, 6}
    async with asyncio.timeout(1):
        await theirs.append_message(said("other"), expected_version=version)
        await mine.append_message(said("own"), expected_version=version + 1)
    names = {node.message.id for node in await collect(theirs.tree())} - {"other", "own"}
    assert len(names & {"m2", "m4"}) in {0, 2}
    return version == 6


@pytest.mark.parametrize("change", CHANGES)
async def test_cancelled_change_is_made_or_not(pair: tuple[Store, Store], change: str) -> None:
    """A change cancelled after any number of ticks is there whole or not at all, and blocks nobody (SQL-1)."""
    store, other = pair
    found = []
    for n in range(25):
        session = Session.create(store).for_session(f"s{n}")
        await session.append_messages([said(f"m{k}") for k in range(5)])
        changing = asyncio.ensure_future(CHANGES[change](session))
        for _ in range(n):
            await asyncio.sleep(0.0001)
        changing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await changing
        found.append(await _settled(store, other, f"s{n}"))
    assert found[0] is False
    assert (await verify(store)).problems == []


async def test_timed_out_changes_are_made_or_not(pair: tuple[Store, Store]) -> None:
    """Changes under `wait_for` that run out of time are there whole or not at all (SQL-1)."""
    store, other = pair
    for n, change in enumerate([*CHANGES.values()] * 3):
        session = Session.create(store).for_session(f"s{n}")
        await session.append_messages([said(f"m{k}") for k in range(5)])
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_run(change, session), timeout=(n % 7) * 0.0003)
        await _settled(store, other, f"s{n}")
    assert (await verify(store)).problems == []


async def _run(change: Callable[[Session], Awaitable[Any]], session: Session) -> Any:
    return await change(session)


async def test_cancelled_callers_of_a_group_take_nobody_along(store: Store, session: Session) -> None:
    """When some callers of a group of changes are cancelled, the others are answered as always (SQL-1)."""
    await session.append_messages([said(f"m{n}") for n in range(200)])
    for n in range(20):
        calls: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(call)
            for k in range(3)
            for call in (
                session.delete_messages([f"m{n * 6 + k}"]),
                session.update_message(said(f"m{n * 6 + 3 + k}", f"changed {n}")),
            )
        ]
        for _ in range(n):
            await asyncio.sleep(0)
        for cancelled in calls[::2]:
            cancelled.cancel()
        answers = await asyncio.gather(*calls[1::2])
        assert [answer.text for answer in answers] == [f"changed {n}"] * 3
    versions = [version for _, version, _ in await log_of(store)]
    assert versions == list(range(1, len(versions) + 1))
    assert (await verify(store)).problems == []
