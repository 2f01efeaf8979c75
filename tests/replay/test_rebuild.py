"""A rebuild gives what the appends gave, beside readers and writers, as often as it is asked for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventstore import rows
from eventstore.errors import InvalidArgumentError, ProjectionError
from replay import rebuild, verify
from sessions import SessionManager, open_store
from sessions.store import Store
from tests.eventstore.support import Tally, created, file_at, sql, tallied
from tests.fixtures.golden.write_log import clock, tell_the_story, what_sessions_read
from tests.replay.dumps import dumps

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["file", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Return an empty store."""
    url = file_at(tmp_path) if request.param == "file" else "sqlite://"
    async with open_store(url, clock=clock()) as store:
        yield store


async def spoil(store: Store) -> None:
    """Change a row of each projection by SQL."""
    for change in (
        "UPDATE assistant_messages SET role = 'spoilt'",
        "DELETE FROM assistant_sessions",
        "INSERT INTO assistant_fts (rowid, terms) VALUES (1, 'spoilt')",
    ):
        await store.log.database.write(lambda tx, change=change: tx.execute(sql(change)))  # type: ignore[misc]


async def test_rebuild_of_an_empty_store(store: Store) -> None:
    """Rebuilding an empty store returns at once."""
    async with asyncio.timeout(2):
        assert await rebuild(store) == 0
        assert (await verify(store)).ok


@pytest.mark.parametrize("names", ["directory", 5, b"directory", iter(["directory"])], ids=range(4))
async def test_names_must_be_a_collection(store: Store, names: Any) -> None:
    """One name where a list of them belongs is refused, since each of its letters would be taken for a name."""
    with pytest.raises(InvalidArgumentError, match="names"):
        await rebuild(store, names)


async def test_rebuild_repairs_everything(store: Store) -> None:
    """After a rebuild, and after another, every projection is what the appends made of it, whatever was done to it."""
    await tell_the_story(store)
    before, read = await dumps(store), await what_sessions_read(store)
    await spoil(store)
    assert not (await verify(store)).ok
    for _ in range(2):
        assert await rebuild(store) == 17
        assert await dumps(store) == before
        assert await what_sessions_read(store) == read
        assert (await verify(store)).ok


@pytest.mark.parametrize("name", ["message_tree", "search_index", "directory"])
async def test_rebuild_of_one_leaves_the_others(store: Store, name: str) -> None:
    """A rebuild of one projection repairs that one and leaves its siblings as they are, spoilt or not."""
    await tell_the_story(store)
    before = await dumps(store)
    await spoil(store)
    spoilt = await dumps(store)
    await rebuild(store, [name])
    assert await dumps(store) == {**spoilt, name: before[name]}


async def test_rebuild_of_none(store: Store) -> None:
    """A rebuild of no projections changes nothing."""
    await tell_the_story(store)
    before = await dumps(store)
    await rebuild(store, [])
    assert await dumps(store) == before


async def test_unknown_projection_is_refused(store: Store) -> None:
    """A name that no projection has is refused, with the names that there are, and nothing is emptied."""
    await tell_the_story(store)
    before = await dumps(store)
    with pytest.raises(InvalidArgumentError, match=r"message_tree.*directory"):
        await rebuild(store, ["directory", "no_such"])
    assert await dumps(store) == before


async def test_rebuilds_in_any_pages_are_equal(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows do not depend on how many events are read at a time."""
    await tell_the_story(store)
    before = await dumps(store)
    for page in (1, 2, 3, 7):
        monkeypatch.setattr(rows, "PAGE_EVENTS", page)
        await rebuild(store)
        assert await dumps(store) == before


async def test_progress_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`progress` hears rising positions up to the last one, and the last one with each."""
    await tell_the_story(store)
    monkeypatch.setattr(rows, "PAGE_EVENTS", 5)
    heard: list[tuple[int, int]] = []
    await rebuild(store, progress=lambda position, end: heard.append((position, end)))
    assert heard == [(5, 17), (10, 17), (15, 17), (17, 17)]


async def test_custom_projection_is_rebuilt(tmp_path: Path) -> None:
    """A projection that was handed in is rebuilt like the store's own, and verified."""
    async with open_store(file_at(tmp_path), projections=[Tally()]) as store:
        session = SessionManager(store).get_session("s")
        await session.append_messages([{"id": id_, "role": "user", "parts": []} for id_ in "abc"])
        for id_ in "abacb":
            await session.select_leaf(id_)
        assert await store.log.read(tallied) == list("abacb")
        await store.log.database.write(lambda tx: tx.execute(sql("DELETE FROM tallies")))
        assert [problem.detail[:5] for problem in (await verify(store)).problems] == ["tally"]
        await rebuild(store, ["tally"])
        assert await store.log.read(tallied) == list("abacb")
        assert (await verify(store)).ok


async def test_failed_rebuild_changes_nothing(tmp_path: Path) -> None:
    """When an event cannot be applied the rebuild fails as a whole, and readers keep what there was."""
    tally = Tally()
    async with open_store(file_at(tmp_path), projections=[tally]) as store:
        session = SessionManager(store).get_session("s")
        await session.append_messages([{"id": id_, "role": "user", "parts": []} for id_ in "ab"])
        await session.select_leaf("a")
        before = await dumps(store)
        tally.fails_on = "a"
        with pytest.raises(ProjectionError, match="tally"):
            await rebuild(store)
        assert await dumps(store) == before
        tally.fails_on = ""
        await session.append_message({"id": "c", "role": "user", "parts": []})
        assert (await verify(store)).ok


async def test_readers_see_old_or_new(tmp_path: Path) -> None:
    """During a rebuild readers see the state before or after it, never an empty or half-filled one."""
    async with open_store(file_at(tmp_path)) as store:
        session = SessionManager(store).get_session("s")
        await session.append_messages([{"id": f"m{n}", "role": "user", "parts": []} for n in range(1_500)])
        rebuilding = asyncio.ensure_future(rebuild(store))
        seen = set()
        while not rebuilding.done():
            seen.add(await session.get_path_length())
        assert await rebuilding == 1_500
        assert seen == {1_500}


async def test_appends_during_a_rebuild_are_in_it(tmp_path: Path) -> None:
    """Appends that come while one projection is rebuilt are neither lost nor doubled in any of them."""
    async with open_store(file_at(tmp_path)) as store:
        session = SessionManager(store).get_session("s")
        await session.append_messages([{"id": f"m{n}", "role": "user", "parts": []} for n in range(500)])
        writing = asyncio.gather(
            *(
                session.append_message({"id": f"n{n}", "role": "user", "parts": [{"type": "text", "text": "x"}]})
                for n in range(200)
            )
        )
        for name in ("message_tree", "search_index", "directory"):
            await rebuild(store, [name])
        await writing
        assert await session.get_path_length() == 700
        assert (await verify(store)).problems == []


async def test_two_rebuilds_at_once(tmp_path: Path) -> None:
    """Two stores on one file that rebuild and append at the same time wait for each other, and the outcome is right."""
    url = file_at(tmp_path)
    async with open_store(url) as first, open_store(url) as second:
        session = SessionManager(second).get_session("s")
        await session.append_messages([{"id": f"m{n}", "role": "user", "parts": []} for n in range(300)])
        counts = await asyncio.gather(
            rebuild(first),
            rebuild(second),
            session.append_message({"id": "late", "role": "user", "parts": []}),
            rebuild(first),
        )
        assert set(counts[:2] + counts[3:]) <= {300, 301}
        for store in (first, second):
            assert (await verify(store)).ok
        assert await session.get_path_length() == 301


async def test_cancelled_rebuild_leaves_nothing_half(tmp_path: Path) -> None:
    """A rebuild that is cancelled leaves the old or the new state, and appends go on."""
    async with open_store(file_at(tmp_path)) as store:
        session = SessionManager(store).get_session("s")
        await session.append_messages([{"id": f"m{n}", "role": "user", "parts": []} for n in range(300)])
        for ticks in range(0, 30, 3):
            rebuilding = asyncio.ensure_future(rebuild(store))
            for _ in range(ticks):
                await asyncio.sleep(0.0005)
            rebuilding.cancel()
            await asyncio.wait([rebuilding])
            await session.append_message({"id": f"n{ticks}", "role": "user", "parts": []})
        assert await session.get_path_length() == 310
        assert (await verify(store)).ok


async def test_rebuild_publishes_nothing(store: Store) -> None:
    """A rebuild repeats no side effects: no hint goes out, and no subscriber gets an event again."""
    await tell_the_story(store)
    heard: list[Any] = []

    async def listen() -> None:
        async for hint in store.publisher.subscribe("log"):  # type: ignore[attr-defined]
            heard.append(hint)  # noqa: PERF401 - what was heard so far is looked at meanwhile

    async def follow() -> None:
        async for envelope in store.log.subscribe(after=17):
            heard.append(envelope)  # noqa: PERF401 - the same

    tasks = [asyncio.ensure_future(listen()), asyncio.ensure_future(follow())]
    await asyncio.sleep(0.02)
    await rebuild(store)
    await asyncio.sleep(0.1)
    assert heard == []
    await store.log.append("context:k", [created("x")])
    await asyncio.sleep(0.1)
    assert len(heard) == 2
    for task in tasks:
        task.cancel()


SCRIPT = """
import asyncio, hashlib, sys
from replay import rebuild
from sessions import open_store
async def main():
    async with open_store(sys.argv[1]) as store:
        await rebuild(store)
        def everything(tx):
            return [row for projection in store.log.projections for row in projection.dump(tx)]
        print(hashlib.sha256(repr(await store.log.read(everything)).encode()).hexdigest())
asyncio.run(main())
"""


def test_rebuild_is_the_same_everywhere(tmp_path: Path) -> None:
    """A rebuild gives the same bytes in any time zone, locale and with any hash seed."""

    async def write() -> None:
        async with open_store(file_at(tmp_path), clock=clock()) as store:
            await tell_the_story(store)

    asyncio.run(write())
    surroundings: list[dict[str, str]] = [
        {"TZ": "America/New_York", "LC_ALL": "C", "PYTHONHASHSEED": "1"},
        {"TZ": "Asia/Tokyo", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "2", "PYTHONUTF8": "0"},
    ]
    digests = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, file_at(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **here},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for here in surroundings
    ]
    assert len(digests[0]) == 65
    assert len(set(digests)) == 1


async def test_redelivery_is_not_needed(store: Store) -> None:
    """An append that is repeated reaches no projection a second time."""
    first = await store.log.append("s", [created("a")], event_ids=["k"])
    before = await dumps(store)
    assert await store.log.append("s", [created("a")], event_ids=["k"]) == first
    assert await dumps(store) == before
