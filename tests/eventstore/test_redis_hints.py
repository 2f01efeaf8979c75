"""A log over Redis: its subscribers elsewhere are woken by hints, and no event depends on one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from eventstore.errors import InvalidArgumentError
from eventstore.redis_publisher import RedisPublisher
from sessions import Session, open_store
from tests.eventstore.redis_server import PASSWORD, RedisServer
from tests.eventstore.redis_support import SOON, listener, logs, publisher_of
from tests.eventstore.support import eventually, file_at, notes, take, texts_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("only_hints")
async def test_no_event_is_lost_when_redis_restarts(server: RedisServer, tmp_path: Path) -> None:
    """A subscriber elsewhere gets what is appended before, in and after an outage once and in order (BUS-1)."""
    async with logs(file_at(tmp_path), server.url, "p:") as [here, there]:
        await here.append("s", notes("a"))
        events = there.subscribe(after=0)
        assert texts_of(await take(events, 1)) == ["a"]
        waiting = asyncio.ensure_future(take(events, 7, within=SOON))
        await eventually(lambda: publisher_of(there)._live == {"log"})
        await here.append("s", notes("b"))
        server.stop()
        async with asyncio.timeout(5):
            for text in "cdefg":
                await here.append("s", notes(text))
        server.start()
        await here.append("s", notes("h"))
        assert texts_of(await waiting) == list("bcdefgh")
        await here.append("s", notes("i"))
        assert texts_of(await take(events, 1)) == ["i"]


@pytest.mark.usefixtures("only_hints")
async def test_what_was_appended_during_an_outage_needs_no_further_append(server: RedisServer, tmp_path: Path) -> None:
    """Once Redis is back, subscribers get what was written without it, though no more is written (BUS-1)."""
    async with logs(file_at(tmp_path), server.url, "p:") as [here, there]:
        events = there.subscribe(after=0)
        waiting = asyncio.ensure_future(take(events, 5, within=SOON + 5))
        await eventually(lambda: publisher_of(there)._live == {"log"})
        assert await publisher_of(here).connect()
        server.stop()
        for text in "abcde":
            await here.append("s", notes(text))
        await eventually(lambda: not publisher_of(here).connected)
        await asyncio.sleep(0.2)
        assert not waiting.done()
        server.start()
        assert texts_of(await waiting) == list("abcde")


@pytest.mark.usefixtures("only_hints")
async def test_hints_are_only_hints(redis_url: str, prefix: str, tmp_path: Path) -> None:
    """Hints that are doubled, out of order, too high or nonsense neither lose, double nor move an event (BUS-1)."""
    async with logs(file_at(tmp_path), redis_url, prefix) as [here, there], Redis.from_url(redis_url) as redis:
        events = there.subscribe(after=0)
        waiting = asyncio.ensure_future(take(events, 3))
        await eventually(lambda: publisher_of(there)._live == {"log"})
        await here.append("s", notes("a", "b", "c"))
        assert texts_of(await waiting) == ["a", "b", "c"]
        waiting = asyncio.ensure_future(take(events, 2))
        for position in (3, 3, 3, 1, 99, 2, "x", None, -1, 2**80):
            await redis.publish(f"{prefix}log", json.dumps({"position": position}))
        for nonsense in (b"", b"{", b"[]", b"5", b"\xff", b"{}", b'{"n": NaN}'):
            await redis.publish(f"{prefix}log", nonsense)
        await here.append("s", notes("d"))
        await here.append("s", notes("e"))
        assert texts_of(await waiting) == ["d", "e"]
        idle = asyncio.ensure_future(anext(events))
        await redis.publish(f"{prefix}log", b'{"position": 4}')
        await asyncio.sleep(0.05)
        assert not idle.done()
        idle.cancel()


@pytest.mark.usefixtures("only_hints")
async def test_own_hints_wake_nobody_twice(redis_url: str, prefix: str, tmp_path: Path) -> None:
    """A reader that this process's commit has woken is not woken again by its hint when that comes back."""
    async with logs(file_at(tmp_path), redis_url, prefix, 1) as [log]:
        events = log.subscribe(after=0)
        waiting = asyncio.ensure_future(take(events, 4))
        await eventually(lambda: publisher_of(log)._live == {"log"})
        await asyncio.sleep(0.05)
        for text in "abc":
            await log.append("s", notes(text))
        await eventually(lambda: not log._hints._told)
        await asyncio.sleep(0.05)
        [bell] = log._hints._bells
        assert not bell.is_set()
        await log.append("s", notes("d"))
        assert texts_of(await waiting) == list("abcd")


async def test_readers_leave_no_subscription(redis_url: str, prefix: str, tmp_path: Path) -> None:
    """When the last reader or follower has gone Redis knows of none, without a further message (BUS-6)."""
    async with logs(file_at(tmp_path), redis_url, prefix, 1) as [log], Redis.from_url(redis_url) as redis:

        async def known(channel: str) -> int:
            [(_, count)] = await redis.pubsub_numsub(f"{prefix}{channel}")
            return int(count)

        async def becomes(channel: str, wanted: int) -> None:
            async with asyncio.timeout(5):
                while await known(channel) != wanted:  # noqa: ASYNC110 - the server has no event to wait for
                    await asyncio.sleep(0.01)

        readers = [asyncio.ensure_future(anext(log.subscribe())) for _ in range(3)]
        followers = [await listener(publisher_of(log)) for _ in range(3)]
        await becomes("log", 1)
        await becomes("c", 1)
        for task in (*readers, *(task for _, task in followers)):
            task.cancel()
        await becomes("log", 0)
        await becomes("c", 0)
        assert (log._hints.readers, publisher_of(log).followers("log"), publisher_of(log).followers("c")) == (0, 0, 0)


@pytest.mark.parametrize(
    "url",
    [
        f"http://:{PASSWORD}@host",
        f"redis://:{PASSWORD}@host:{PASSWORD}",
        f"redis://host?db={PASSWORD}",
        f"redis://:{PASSWORD}@[host",
        f"redis://:{PASSWORD}@host?what={PASSWORD}",
        "",
        5,
        b"redis://host",
    ],
    ids=str,
)
async def test_bad_addresses_are_refused(url: Any) -> None:
    """An address that is none is refused when it is given, without being quoted."""
    for give in (lambda: RedisPublisher(url), lambda: open_store("sqlite://", redis_url=url)):
        with pytest.raises(InvalidArgumentError) as raised:
            give()
        assert raised.value.argument == "redis_url"
        assert PASSWORD not in str(raised.value)
        assert raised.value.__suppress_context__


def follower(url: str, redis_url: str, prefix: str) -> subprocess.Popen[str]:
    """Start a process that follows a log and frames over Redis."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.eventstore.redis_worker", url, redis_url, prefix],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_another_process_hears_events_and_frames(redis_url: str, prefix: str, tmp_path: Path) -> None:
    """A second process gets each event once and each frame, both in order, over Redis alone."""
    url = file_at(tmp_path)
    async with logs(url, redis_url, prefix, 1) as [log]:
        await log.append("s", notes("early"))
        process = follower(url, redis_url, prefix)
        try:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == '"ready"\n'
            for number in range(100):
                await log.append("s", notes(number))
                await log.publisher.publish("session:s", {"n": number})
            await log.append("s", notes("end"))
            await log.publisher.publish("session:s", {"n": "end"})
            answer, complaints = await asyncio.to_thread(process.communicate, timeout=20)
        finally:
            process.kill()
    assert (process.returncode, complaints) == (0, "")
    texts, frames = json.loads(answer)
    assert texts == ["early", *map(str, range(100)), "end"]
    assert frames == [*range(100), "end"]


async def test_store_with_a_redis(redis_url: str, tmp_path: Path) -> None:
    """A store that is given an address makes the publisher, tells of what it writes, and closes it."""
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    async with open_store(url, redis_url=redis_url) as store:
        publisher = store.publisher
        assert isinstance(publisher, RedisPublisher)
        await Session.create(store).for_session("s").append_message({"id": "m", "role": "user", "parts": []})
        await eventually(lambda: publisher.sent >= 1 and publisher.connected)
    assert publisher._sender is not None
    assert publisher._sender.done()
    async with open_store(url, publisher=RedisPublisher(redis_url)) as store:
        publisher = store.publisher
        assert isinstance(publisher, RedisPublisher)
        assert await publisher.connect()
    assert not publisher.connected
    with pytest.raises(InvalidArgumentError, match="redis_url"):
        open_store(url, redis_url=redis_url, publisher=publisher)
