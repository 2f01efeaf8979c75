from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventstore import InvalidArgumentError, SessionCreated
from replay import rebuild, verify
from sessions import Session, SessionManager, Store, open_store
from tests.sessions.exporters.exports import imported
from tests.sessions.exporters.test_json_tree import tree_of
from tests.sessions.talk import collect, ids, log_of, said

NOON = dt.datetime(2025, 6, 1, 12, 0, 0, 250_000, tzinfo=dt.UTC)
ROOT = Path(__file__).parents[2]
EAST = dt.timezone(dt.timedelta(hours=5))

REPORT_TIMES = """
import asyncio, datetime, json, sys
from sessions import Session, SessionManager, open_store
from sessions.exporters import export_session

async def main(url, first):
    async with open_store(url) as store:
        manager = SessionManager(store)
        session = manager.get_session("chat")
        if first:
            made = await manager.create("Chat", id="chat")
            appended = await session.append_message({"id": "m1", "role": "user", "parts": []})
            own = {"createdAt": "2024-03-10T02:30:00"}
            await session.append_message({"id": "m2", "role": "user", "parts": [{"type": "text", "text": "w"}], **own})
        (info,) = await manager.list()
        got = await manager.get("chat")
        times = [info.created_at, info.updated_at, got.created_at, got.updated_at]
        times += [message.created_at for message in await session.get_history()]
        times += [hit.created_at for hit in await session.search("w")]
        times += [envelope.recorded_at async for envelope in session.events()]
        told = json.loads("".join([piece async for piece in export_session(store, "chat", format="json")]))["session"]
        times += [datetime.datetime.fromisoformat(told[name]) for name in ("created_at", "updated_at")]
        if first:
            assert [made.created_at, appended.message.created_at] == [info.created_at, times[4]]
        print(json.dumps([[time.isoformat(), time.timestamp(), time.utcoffset().total_seconds()] for time in times]))

asyncio.run(main(sys.argv[1], sys.argv[2] == "first"))
"""


async def everything_read(session: Session) -> list[Any]:
    """Return what every read of a session gives that has an order."""
    latest = await session.get_latest_leaf()
    return [
        ids(await session.get_history()),
        ids(await collect(session.history())),
        ids(await session.get_history("u7")),
        ids(await session.get_branches("fork")),
        [(node.message.id, node.parent_id) for node in await collect(session.tree())],
        latest and latest.id,
        [hit.id for hit in await session.search("same")],
        [hit.id for hit in await session.search("same", order="newest")],
        [(envelope.version, envelope.position, envelope.type) async for envelope in session.events()],
    ]


@pytest.mark.parametrize("url", ["file", "sqlite://"])
async def test_order_never_depends_on_time(tmp_path: Path, url: str) -> None:
    """Under a clock that stands still or runs backwards every read is in log order, after a rebuild too (ORD-1)."""
    url = f"sqlite:///{tmp_path / 'chats.db'}" if url == "file" else url
    now = NOON
    async with open_store(url, clock=lambda: now, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        for number in range(200):
            now -= dt.timedelta(seconds=number // 100)
            await session.append_messages([said(f"u{number}", "same"), said(f"a{number}", "same")])
        await session.append_message(said("fork"))
        for reply in ("z", "a", "m"):
            await session.append_message(said(reply, "same"), "fork")
        expected_path = [f"{role}{number}" for number in range(200) for role in "ua"] + ["fork"]
        first = await everything_read(session)
        assert first[0] == first[1] == [*expected_path, "m"]
        assert first[3] == ["z", "a", "m"]
        assert [name for name, _ in first[4]] == [*expected_path, "z", "a", "m"]
        assert first[6] == first[7] == ["m", "a", "z", *reversed(expected_path[-18:-1])]
        assert await everything_read(session) == first
        times = [envelope.recorded_at async for envelope in session.events()]
        assert times == sorted(times)
        await rebuild(store)
        assert await everything_read(session) == first


async def test_sessions_of_one_moment_are_listed_by_the_log(tmp_path: Path) -> None:
    """Sessions updated at the same moment are listed by the place of their last event in the log (ORD-1)."""
    async with open_store(f"sqlite:///{tmp_path / 'chats.db'}", clock=lambda: NOON) as store:
        manager = SessionManager(store)
        for name in "cab":
            await manager.create(name, id=name)
        await manager.get_session("c").append_message(said("m1"))
        for _ in range(2):
            assert [info.id for info in await manager.list()] == ["c", "b", "a"]
            await rebuild(store)


async def test_clock_is_asked_for_every_recorded_time() -> None:
    """Recorded times are the injected clock's, in UTC and to the microsecond, whatever zone it gives them in."""
    east = dt.timezone(dt.timedelta(hours=9))
    async with open_store("sqlite://", clock=lambda: NOON.astimezone(east)) as store:
        made = await SessionManager(store).create("n", id="chat")
        session = Session.create(store).for_session("chat")
        result = await session.append_message(said("m1"))
        (read,) = await session.get_history()
        for time in (made.created_at, result.message.created_at, read.created_at):
            assert time == NOON
            assert time is not None
            assert time.utcoffset() == dt.timedelta(0)


async def test_naive_clock_is_refused() -> None:
    """A clock without a zone is refused at the append, which then writes nothing (ORD-3)."""
    async with open_store("sqlite://", clock=lambda: dt.datetime(2025, 1, 1)) as store:  # noqa: DTZ001
        with pytest.raises(InvalidArgumentError):
            await Session.create(store).append_message(said("m1"))
        assert await log_of(store) == []


async def test_recorded_times_are_not_in_the_future(store: Store, session: Session) -> None:
    """What is recorded now has a time between before and after the call (ORD-3)."""
    before = dt.datetime.now(dt.UTC)
    await session.append_message(said("m1"))
    after = dt.datetime.now(dt.UTC)
    message = await session.get_latest_leaf()
    (info,) = await SessionManager(store).list()
    assert message is not None
    for time in (message.created_at, info.created_at, info.updated_at):
        assert time is not None
        assert before <= time <= after


def times_in(zone: str, url: str, which: str) -> list[list[Any]]:
    """Return all times that a process of its own in a time zone reads."""
    environment = {**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", REPORT_TIMES, url, which]
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60)
    times: list[list[Any]] = json.loads(ran.stdout)
    return times


def test_times_are_the_same_in_every_zone(url: str) -> None:
    """Times written in New York read the same in Tokyo, in UTC, on every path, never in the future (ORD-3)."""
    before = dt.datetime.now(dt.UTC).timestamp()
    written = times_in("America/New_York", url, "first")
    after = dt.datetime.now(dt.UTC).timestamp()
    for zone in ("Asia/Tokyo", "UTC", "America/New_York", "Pacific/Apia"):
        assert times_in(zone, url, "again") == written
    assert all(offset == 0 for _, _, offset in written)
    own = dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC).timestamp()
    for _, timestamp, _ in written:
        assert timestamp == own or before <= timestamp <= after
    assert [timestamp for _, timestamp, _ in written].count(own) == 2


async def test_time_zone_changes_nothing_that_is_stored(url: str) -> None:
    """A store written in one zone verifies, and rebuilds to the same rows, in another (ORD-3)."""
    times_in("America/New_York", url, "first")
    async with open_store(url) as store:
        assert (await verify(store)).ok
        await rebuild(store)
        assert (await verify(store)).ok


@pytest.mark.parametrize("way", ["import", "log"])
async def test_created_at_of_another_zone(way: str) -> None:
    """A session's time with an offset is that moment in UTC, and no later time is read as another (ORD-3)."""
    text, moment = "2020-01-01T00:00:00+05:00", dt.datetime(2020, 1, 1, tzinfo=EAST)
    async with open_store("sqlite://") as store:
        if way == "import":
            tree = tree_of(session={"id": "s", "name": "S", "created_at": text})
            await imported(store, json.dumps(tree))
        else:
            await store.log.append("json:s", [SessionCreated(name="S", created_at=moment)])
        info = await SessionManager(store).get("json:s")
        assert info is not None
        assert info.created_at == moment


async def test_time_after_one_of_another_zone() -> None:
    """A time in UTC is stored as it is, whatever equal time was stored before it (ORD-3)."""
    moment = dt.datetime(2021, 1, 1, tzinfo=EAST)
    async with open_store("sqlite://") as store:
        await store.log.append("first", [SessionCreated(name="S", created_at=moment)])
        session = Session.create(store).for_session("chat")
        await session.import_message(said("m"), None, moment)
        assert (await session.get_history())[0].created_at == moment
