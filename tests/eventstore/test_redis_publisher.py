"""What only a publisher over Redis can meet: a server that goes, freezes or was never there."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
from redis.asyncio import Redis

from eventstore import redis_link, redis_publisher
from eventstore.redis_publisher import OUTBOX, OUTBOX_BYTES, RedisPublisher
from tests.eventstore.redis_server import PASSWORD, RedisServer, free_port
from tests.eventstore.redis_support import SOON, closing, listener
from tests.eventstore.support import MEMORY, eventually, everything, notes, opened, take


async def test_subscriptions_survive_restarts(server: RedisServer) -> None:
    """Followers hear on after each restart, and `resumed` tells them when they may have missed something (BUS-1)."""
    async with closing(RedisPublisher(server.url)) as publisher:
        gaps: list[int] = []
        heard, task = await listener(publisher)
        other = publisher.subscribe("c", resumed=lambda: gaps.append(len(gaps)))
        first = asyncio.ensure_future(anext(other))
        await eventually(lambda: gaps == [0])
        for number in range(3):
            server.stop()
            await eventually(lambda: not publisher._live)
            server.start()
            await eventually(lambda wanted=number + 2: len(gaps) == wanted, within=SOON)
            await publisher.publish("c", {"n": number})
            await eventually(lambda number=number: heard[-1:] == [number], within=SOON)
        assert heard == [0, 1, 2]
        assert await first == {"n": 0}
        task.cancel()


def closed_port() -> tuple[str, None]:
    """An address at which nobody is."""
    return f"127.0.0.1:{free_port()}", None


def black_hole() -> tuple[str, socket.socket]:
    """A socket that takes connections and never answers."""
    hole = socket.create_server(("127.0.0.1", 0))
    return f"127.0.0.1:{hole.getsockname()[1]}", hole


def unroutable() -> tuple[str, None]:
    """An address to which no packet finds its way."""
    return "10.255.255.1:6379", None


@pytest.mark.parametrize("address", [closed_port, black_hole, unroutable])
async def test_unreachable_redis_costs_nothing(address: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Without a Redis appends and frames take their normal time, nothing is raised, drops are counted (BUS-1)."""
    caplog.set_level(logging.DEBUG)
    where, hole = address()
    publisher = RedisPublisher(f"redis://user:{PASSWORD}@{where}/0")
    async with opened(MEMORY, publisher=publisher) as log:
        events = log.subscribe(after=0)
        async with asyncio.timeout(2):
            for number in range(100):
                await log.append("s", notes(number))
                await publisher.publish("session:s", {"n": number})
            assert len(await take(events, 100)) == 100
        assert not publisher.connected
        await log.close()
        async with asyncio.timeout(2):
            await publisher.close()
    assert (publisher.sent, publisher.dropped) == (0, 200)
    assert PASSWORD not in caplog.text
    if hole is not None:
        hole.close()


async def test_redis_that_stops_costs_nothing(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """When Redis goes away appends go on, what could not be sent is counted, and it is logged once (BUS-1)."""
    async with closing(RedisPublisher(server.url)) as publisher, opened(MEMORY, publisher=publisher) as log:
        await log.append("s", notes("before"))
        await eventually(lambda: publisher.sent == 1)
        server.stop()
        async with asyncio.timeout(2):
            for number in range(100):
                await log.append("s", notes(number))
        assert len(await everything(log)) == 101
        await eventually(lambda: publisher.dropped >= 90, within=SOON)
        await eventually(lambda: not publisher.connected)
        server.start()
        # The latest position was kept.
        await eventually(lambda: publisher.connected and publisher.sent >= 2, within=SOON)
        assert publisher.sent + publisher.dropped == 101
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "no connection to Redis, trying again: ConnectionError",
        "connected to Redis again",
    ]
    assert PASSWORD not in caplog.text


async def test_frozen_redis_costs_nothing(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers nothing holds up no append, is noticed, and serves again once it wakes (BUS-1)."""
    for name in ("ANSWER_SECONDS", "PING_SECONDS", "SILENCE_SECONDS"):
        monkeypatch.setattr(redis_publisher, name, 0.3)
    async with closing(RedisPublisher(server.url)) as publisher, opened(MEMORY, publisher=publisher) as log:
        heard, task = await listener(publisher)
        await publisher.publish("c", {"n": 0})
        await eventually(lambda: heard == [0])
        server.freeze()
        async with asyncio.timeout(2):
            for number in range(100):
                await log.append("s", notes(number))
        await eventually(lambda: not publisher.connected and not publisher._live, within=SOON)
        server.thaw()
        await eventually(lambda: publisher.connected and "c" in publisher._live, within=SOON)
        await publisher.publish("c", {"n": 1})
        await eventually(lambda: heard[-1] == 1, within=SOON)
        server.freeze()
        # Nobody sends anything, and it is noticed all the same.
        await eventually(lambda: not publisher.connected and not publisher._live, within=SOON)
        task.cancel()


async def test_quiet_connection_is_kept(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nobody sends anything for long the connections are asked whether they are there, and are kept (BUS-1)."""
    monkeypatch.setattr(redis_publisher, "PING_SECONDS", 0.02)
    monkeypatch.setattr(redis_publisher, "SILENCE_SECONDS", 0.5)
    async with closing(RedisPublisher(server.url)) as publisher, Redis.from_url(server.url) as redis:
        heard, task = await listener(publisher)
        assert await publisher.connect()
        before = (await redis.info("stats"))["total_connections_received"]
        await asyncio.sleep(1)
        assert publisher.connected
        assert publisher._live == {"c"}
        assert (await redis.info("stats"))["total_connections_received"] == before
        await publisher.publish("c", {"n": 1})
        await eventually(lambda: heard == [1])
        task.cancel()


async def test_hanging_handshake(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A connection that is taken and never answered is given up, and tried again."""
    monkeypatch.setattr(redis_link, "CONNECT_SECONDS", 0.1)
    with black_hole()[1] as hole:
        async with closing(RedisPublisher(f"redis://127.0.0.1:{hole.getsockname()[1]}")) as publisher:
            await publisher.publish("c", {"n": 1})
            await eventually(lambda: "trying again: TimeoutError" in caplog.text, within=SOON)


async def test_resumed_means_that_redis_knows(server: RedisServer) -> None:
    """A follower of a channel that was left before is told `resumed` when Redis knows of it again, and not sooner."""
    async with closing(RedisPublisher(server.url)) as publisher, Redis.from_url(server.url) as redis:
        _, task = await listener(publisher)
        task.cancel()
        async with asyncio.timeout(SOON):
            while await redis.pubsub_channels("eventstore:c"):  # noqa: ASYNC110 - the server has no event to wait for
                await asyncio.sleep(0.01)
        server.freeze()
        known: list[bool] = []
        messages = publisher.subscribe("c", resumed=lambda: known.append(True))
        first = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0.1)
        assert known == []
        server.thaw()
        await eventually(lambda: known == [True])
        # One more who comes now is told at once.
        second = asyncio.ensure_future(anext(publisher.subscribe("c", resumed=lambda: known.append(True))))
        await eventually(lambda: len(known) >= 2)
        await publisher.publish("c", {"n": 1})
        assert await first == await second == {"n": 1}


async def test_burst(redis_url: str, prefix: str) -> None:
    """A follower that keeps up loses nothing of thousands of messages that come at once."""
    async with (
        closing(RedisPublisher(redis_url, channel_prefix=prefix)) as publisher,
        Redis.from_url(redis_url) as redis,
    ):
        heard, task = await listener(publisher)
        async with redis.pipeline(transaction=False) as pipeline:
            for number in range(20_000):
                pipeline.publish(f"{prefix}c", f'{{"n":{number}}}')
            await pipeline.execute()
        await eventually(lambda: len(heard) == 20_000, within=SOON)
        assert heard == list(range(20_000))
        task.cancel()


async def test_wrong_password(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """A server that lets nobody in is as good as none, and neither password is shown anywhere."""
    caplog.set_level(logging.DEBUG)
    publisher = RedisPublisher(f"redis://:guessed-badly@127.0.0.1:{server.port}")
    assert not await publisher.connect(within=0.3)
    await publisher.publish("c", {"n": 1})
    await publisher.close()
    assert (publisher.sent, publisher.dropped) == (0, 1)
    assert "AuthenticationError" in caplog.text
    assert "guessed" not in caplog.text + repr(publisher) + str(vars(publisher))


async def test_refused_messages(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """Messages that Redis does not take from this user are counted as dropped, and the log says so once."""
    async with Redis.from_url(server.url) as redis:
        rights = ("on", f">{PASSWORD}", "+@all", "-publish")
        await redis.execute_command("ACL", "SETUSER", "mute", *rights)  # type: ignore[no-untyped-call]
    async with closing(RedisPublisher(f"redis://mute:{PASSWORD}@127.0.0.1:{server.port}")) as publisher:
        for number in range(3):
            await publisher.publish("c", {"n": number})
            await eventually(lambda number=number: publisher.dropped == number + 1)
        assert publisher.connected
        assert publisher.sent == 0
    assert [record.getMessage() for record in caplog.records] == ["Redis refuses messages"]


async def test_what_waits_is_sent_together(server: RedisServer) -> None:
    """A thousand messages take a few round trips, and not one each."""
    async with closing(RedisPublisher(server.url)) as publisher, Redis.from_url(server.url) as redis:
        assert await publisher.connect()
        before = (await redis.info("stats"))["total_reads_processed"]
        for number in range(1_000):
            await publisher.publish("c", {"n": number})
        await eventually(lambda: publisher.sent == 1_000)
        assert (await redis.info("stats"))["total_reads_processed"] - before < 50


async def test_what_waits_is_bounded() -> None:
    """Without a Redis no more than a number of messages, and of bytes, is kept; the newest stay (BUS-6)."""
    async with closing(RedisPublisher("redis://10.255.255.1")) as publisher:
        for number in range(OUTBOX + 500):
            await publisher.publish(f"session:{number}", {"n": number})
        assert publisher.dropped == 500
        for number in range(50):
            await publisher.publish(f"session:{number}", {"n": "x" * (OUTBOX_BYTES // 10)})
        assert publisher._outbox._bytes <= OUTBOX_BYTES
        assert len(publisher._outbox._waiting) == 9
        await publisher.publish("c", {"n": "x" * OUTBOX_BYTES})
        assert len(publisher._outbox._waiting) == 0
    assert publisher.dropped == OUTBOX + 551


async def test_each_channel_keeps_its_last_message(server: RedisServer) -> None:
    """After an outage each channel hears what was said last, so that followers know where things stand."""
    async with (
        closing(RedisPublisher(server.url)) as here,
        closing(RedisPublisher(server.url)) as there,
        Redis.from_url(server.url) as redis,
    ):
        heard_a, task_a = await listener(there, "a")
        heard_b, task_b = await listener(there, "b")
        await here.publish("a", {"n": "begin"})
        await eventually(lambda: heard_a == ["begin"])
        # The publisher's connection is cut and cannot be had again, that of the followers stays.
        await redis.config_set("requirepass", "another")
        await redis.client_kill_filter(_type="normal")
        for number in range(50):
            await here.publish("a", {"n": number})
            await here.publish("b", {"n": -number})
        await eventually(lambda: here.dropped == 98, within=SOON)
        assert not here.connected
        await redis.config_set("requirepass", PASSWORD)
        await eventually(lambda: here.sent == 3, within=SOON)
        await eventually(lambda: (heard_a, heard_b) == (["begin", 49], [-49]))
        assert here.dropped == 98
        for task in (task_a, task_b):
            task.cancel()


async def test_close_sends_what_waits(redis_url: str, prefix: str) -> None:
    """What was published before closing has reached other processes, and what comes after it is dropped."""
    async with closing(RedisPublisher(redis_url, channel_prefix=prefix)) as there:
        heard, task = await listener(there)
        here = RedisPublisher(redis_url, channel_prefix=prefix)
        for number in range(500):
            await here.publish("c", {"n": number})
        await here.close()
        assert (here.sent, here.dropped, here.connected) == (500, 0, False)
        await eventually(lambda: heard == list(range(500)))
        await here.publish("c", {"n": "late"})
        assert not await here.connect(within=0.01)
        assert (here.sent, here.dropped) == (500, 1)
        task.cancel()


async def test_prefixes_keep_stores_apart(redis_url: str, prefix: str) -> None:
    """Publishers with other prefixes hear nothing of each other, on one server."""
    async with (
        closing(RedisPublisher(redis_url, channel_prefix=f"{prefix}a:")) as first,
        closing(RedisPublisher(redis_url, channel_prefix=f"{prefix}b:")) as second,
    ):
        heard_first, task_first = await listener(first, "log")
        heard_second, task_second = await listener(second, "log")
        await first.publish("log", {"n": 1})
        await second.publish("log", {"n": 2})
        await eventually(lambda: (heard_first, heard_second) == ([1], [2]))
        task_first.cancel()
        task_second.cancel()


async def test_names_and_texts_of_any_kind(redis_url: str, prefix: str) -> None:
    """Channels and messages may hold any text, and what is no JSON is dropped without an error."""
    channel = "session:\x00 \r\n 日本 \ud800 *[a-z]"
    async with closing(RedisPublisher(redis_url, channel_prefix=prefix)) as publisher:
        heard, task = await listener(publisher, channel)
        await publisher.publish(channel, {"n": "\x00\r\n日本"})
        await publisher.publish(channel, {"n": object()})
        await publisher.publish("session:other", {"n": 1})
        await publisher.publish(channel, {"n": [1, {"a": None}]})
        await eventually(lambda: heard == ["\x00\r\n日本", [1, {"a": None}]])
        assert publisher.dropped == 1
        task.cancel()
