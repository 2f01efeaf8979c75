"""What every publisher promises, and what one that can be followed promises beside."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from eventstore.publisher import QUEUE, InProcessPublisher
from eventstore.redis_publisher import RedisPublisher
from tests.eventstore.support import eventually

Followed = InProcessPublisher | RedisPublisher


@pytest.fixture(params=["in process", "redis"])
async def publisher(request: pytest.FixtureRequest) -> AsyncIterator[Followed]:
    """Return a publisher that can be followed."""
    made: Followed = InProcessPublisher()
    if request.param == "redis":
        made = RedisPublisher(request.getfixturevalue("redis_url"), channel_prefix=f"{uuid.uuid4()}:")
    yield made
    await made.close()


async def heard_by(publisher: Followed, count: int, channel: str = "c") -> None:
    """Wait until so many follow a channel, and will hear what is published next."""
    await eventually(lambda: publisher.followers(channel) == count)
    if isinstance(publisher, RedisPublisher):
        await eventually(lambda: channel in publisher._live)


async def gone_out(publisher: Followed, count: int) -> None:
    """Wait until so many messages have come to whoever followed."""
    if isinstance(publisher, RedisPublisher):
        await eventually(lambda: publisher.sent == count)


async def follow(publisher: Followed, channel: str = "c") -> tuple[list[Any], asyncio.Task[None]]:
    """Follow a channel in a task; return what it hears, and the task."""
    heard: list[Any] = []

    async def listen() -> None:
        async for message in publisher.subscribe(channel):
            heard.append(message["n"])  # noqa: PERF401 - what was heard so far is looked at meanwhile

    before = publisher.followers(channel)
    task = asyncio.create_task(listen())
    await heard_by(publisher, before + 1, channel)
    return heard, task


async def take(messages: AsyncIterator[dict[str, Any]], count: int) -> list[Any]:
    """Return the next messages' numbers."""
    async with asyncio.timeout(2):
        return [(await anext(messages))["n"] for _ in range(count)]


async def begun(publisher: Followed, channel: str = "c") -> AsyncGenerator[dict[str, Any], None]:
    """Return a subscription that has begun: it has heard one message."""
    before = publisher.followers(channel)
    messages = publisher.subscribe(channel)
    first = asyncio.ensure_future(anext(messages))
    await heard_by(publisher, before + 1, channel)
    await publisher.publish(channel, {"n": "first"})
    await first
    return messages


async def test_messages_come_in_order(publisher: Followed) -> None:
    """A follower hears what is published, in order, and nothing of other channels."""
    heard, task = await follow(publisher)
    for number in range(100):
        await publisher.publish("c", {"n": number})
        await publisher.publish("other", {"n": -1})
    await eventually(lambda: len(heard) == 100)
    assert heard == list(range(100))
    task.cancel()


async def test_publishing_to_nobody(publisher: Followed) -> None:
    """Publishing where nobody listens does nothing, and nothing of it is heard later."""
    await publisher.publish("c", {"n": 1})
    await gone_out(publisher, 1)
    assert publisher.followers("c") == 0
    messages = await begun(publisher)
    await publisher.publish("c", {"n": 2})
    assert await take(messages, 1) == [2]


async def test_everybody_hears_everything(publisher: Followed) -> None:
    """Every follower of a channel hears every message."""
    followers = [await follow(publisher) for _ in range(5)]
    for number in range(10):
        await publisher.publish("c", {"n": number})
    await eventually(lambda: all(len(heard) == 10 for heard, _ in followers))
    assert all(heard == list(range(10)) for heard, _ in followers)
    for _, task in followers:
        task.cancel()


async def test_slow_follower_loses_the_oldest(publisher: Followed) -> None:
    """A follower that is too far behind loses the oldest messages, and others lose nothing (BUS-6)."""
    slow = await begun(publisher)
    quick, task = await follow(publisher)
    for number in range(QUEUE + 500):
        await publisher.publish("c", {"n": number})
        if number % 100 == 0:
            await asyncio.sleep(0)
    await eventually(lambda: len(quick) == QUEUE + 500)
    assert await take(slow, QUEUE) == list(range(500, QUEUE + 500))
    await publisher.publish("c", {"n": "next"})
    assert await take(slow, 1) == ["next"]
    task.cancel()


async def test_publish_does_not_wait_for_followers(publisher: Followed) -> None:
    """Publishing returns at once, whoever has stopped reading."""
    await begun(publisher)
    async with asyncio.timeout(1):
        for number in range(2_000):
            await publisher.publish("c", {"n": number})


async def test_dropped_follower_is_forgotten(publisher: Followed) -> None:
    """A follower that was dropped, cancelled or closed is forgotten without a further message (BUS-6)."""
    _, task = await follow(publisher)
    task.cancel()
    await eventually(lambda: publisher.followers("c") == 0)
    messages = await begun(publisher)
    await messages.aclose()
    assert publisher.followers("c") == 0
    dropped = await begun(publisher)
    del dropped
    await eventually(lambda: publisher.followers("c") == 0)
    unread = publisher.subscribe("c")
    del unread
    assert publisher.followers("c") == 0


async def test_follower_that_leaves_disturbs_nobody(publisher: Followed) -> None:
    """While one follower leaves, the others hear on."""
    staying, leaving = await begun(publisher), await begun(publisher)
    await take(staying, 1)
    await publisher.publish("c", {"n": 1})
    await leaving.aclose()
    await publisher.publish("c", {"n": 2})
    assert await take(staying, 2) == [1, 2]


async def test_listening() -> None:
    """Only who knows all that could listen says that making a message is not worth it."""
    here, anywhere = InProcessPublisher(), RedisPublisher("redis://localhost")
    assert (here.listening("c"), anywhere.listening("c")) == (False, True)
    _, task = await follow(here)
    assert (here.listening("c"), here.listening("other")) == (True, False)
    task.cancel()
    await eventually(lambda: not here.listening("c"))


async def test_close_ends_followers(publisher: Followed) -> None:
    """Closing ends the followers that wait, that are busy with a message and that have not begun (BUS-6)."""
    _, waiting = await follow(publisher)
    busy, unread = await begun(publisher), publisher.subscribe("c")
    await publisher.close()
    async with asyncio.timeout(2):
        await waiting
        assert [message async for message in busy] == []
        assert [message async for message in unread] == []
    assert publisher.followers("c") == 0
    await publisher.publish("c", {"n": 1})
    await publisher.close()


async def test_what_was_published_before_close_is_heard(publisher: Followed) -> None:
    """A follower hears what was published before the publisher was closed."""
    heard, task = await follow(publisher)
    busy = await begun(publisher)
    for number in range(3):
        await publisher.publish("c", {"n": number})
    await publisher.close()
    async with asyncio.timeout(2):
        await task
        assert [message["n"] async for message in busy] == [0, 1, 2]
    assert heard == ["first", 0, 1, 2]
