from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventstore import VersionConflictError
from replay import verify
from sessions import Session, SessionManager, Store, open_store
from tests.sessions.processes import check_written, finish, start, write_at_once
from tests.sessions.talk import collect, ids, log_of, said, stored_parents


async def test_processes_share_sessions(url: str) -> None:
    """Processes that append at once to one session and to one each take every number once, without an error (CON-1)."""
    await asyncio.to_thread(write_at_once, url, processes=3, count=12)
    await check_written(url, processes=3, count=12)


async def test_first_use_from_many_processes(url: str) -> None:
    """Processes that open a new file at once and append to the same new session all succeed (CON-2)."""
    writers = [{"name": f"p{n}", "sessions": ["new"], "count": 2, "together": False} for n in range(5)]
    finish(await asyncio.to_thread(start, url, writers, wait_until_open=False))
    async with open_store(url) as store:
        assert len(await Session.create(store).for_session("new").get_history()) == 10
        assert [info.id for info in await SessionManager(store).list()] == ["new"]
        versions = await store.log.read(_schema_versions)
        assert len(versions) == len(set(versions))


def _schema_versions(tx: Any) -> list[int]:
    from sqlalchemy import text

    from eventstore.statements import Statement

    return [version for (version,) in tx.fetch(Statement(text("SELECT version FROM eventstore_schema")))]


async def test_first_use_from_many_tasks(url: str) -> None:
    """Tasks that each open a new file and append to the same new session all succeed (CON-2)."""

    async def one(number: int) -> None:
        async with open_store(url, synchronous="normal") as store:
            await Session.create(store).for_session("new").append_message(said(f"m{number}"))

    await asyncio.gather(*(one(number) for number in range(20)))
    async with open_store(url) as store:
        session = Session.create(store).for_session("new")
        assert sorted(ids(await session.get_history())) == sorted(f"m{number}" for number in range(20))
        assert await session.version() == 20


async def test_tasks_of_one_store_chain_up(store: Store, session: Session) -> None:
    """Appends without a parent that run at once form one chain, in the order they were handed in."""
    results = await asyncio.gather(*(session.append_message(said(f"m{n}")) for n in range(300)))
    assert [result.version for result in results] == list(range(1, 301))
    parents = await stored_parents(session)
    assert parents == {f"m{n}": f"m{n - 1}" if n else None for n in range(300)}
    assert ids(await session.get_history()) == [f"m{n}" for n in range(300)]
    assert (await verify(store)).ok


async def test_one_id_at_once_is_appended_once(session: Session) -> None:
    """The same message appended by many tasks at once is stored once, and all get its version."""
    results = await asyncio.gather(*(session.append_message(said("m1")) for _ in range(50)))
    assert [result.inserted for result in results] == [True] + [False] * 49
    assert {(result.version, result.position) for result in results} == {(1, 1)}


async def test_conflict_writes_nothing_and_reloads_nothing(store: Store) -> None:
    """A writer behind or ahead gets a conflict with both versions, one that chains versions never does (CON-3)."""
    one, two = (Session.create(store).for_session("chat") for _ in range(2))
    version = 0
    for number in range(5):
        version = (await one.append_message(said(f"m{number}"), expected_version=version)).version
    await two.append_message(said("b"))
    for expected in (5, 7):
        with pytest.raises(VersionConflictError) as raised:
            await one.append_message(said("a"), expected_version=expected)
        assert (raised.value.stream_id, raised.value.expected, raised.value.actual) == ("chat", expected, 6)
    assert len(await log_of(store)) == 6
    assert await one.get_message("a") is None
    version = 6
    for number in range(100):
        version = (await one.append_message(said(f"n{number}"), expected_version=version)).version
    assert version == await two.version() == 106


async def test_one_of_many_expecting_the_same_version_wins(session: Session, store: Store) -> None:
    """Of writers that expect one version at once exactly one is written, the others hear of the conflict (CON-3)."""
    appends = [session.append_message(said(f"m{n}"), expected_version=0) for n in range(40)]
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    conflicts = [outcome for outcome in outcomes if isinstance(outcome, VersionConflictError)]
    assert len(conflicts) == 39
    assert {conflict.actual for conflict in conflicts} == {1}
    assert len(await log_of(store)) == 1


async def test_two_stores_of_one_file_see_each_other(url: str) -> None:
    """What one store has appended is read, and continued, by another on the same file at once."""
    async with open_store(url) as here, open_store(url) as there:
        one, two = (Session.create(store).for_session("chat") for store in (here, there))
        for number in range(0, 20, 2):
            await one.append_message(said(f"m{number}"))
            await two.append_message(said(f"m{number + 1}"))
        for session in (one, two):
            assert ids(await session.get_history()) == [f"m{number}" for number in range(20)]
        assert not (await two.append_message(said("m0"))).inserted
        with pytest.raises(VersionConflictError):
            await two.append_message(said("x"), expected_version=19)


async def test_reads_go_on_beside_writes(session: Session) -> None:
    """Every read beside a running writer sees a whole state: a chain without a hole, as long as its length says."""
    done = False

    async def write() -> None:
        nonlocal done
        for number in range(0, 300, 3):
            await session.append_messages([said(f"m{number + k}") for k in range(3)])
        done = True

    async def read() -> None:
        while not done:
            names = ids(await session.get_history())
            assert names == [f"m{number}" for number in range(len(names))]
            assert len(names) % 3 == 0
            assert await session.get_path_length() % 3 == 0

    await asyncio.gather(write(), read(), read())
    assert len(await collect(session.events())) == 300
