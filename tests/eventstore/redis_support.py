"""What the tests of Redis share: publishers and logs that are closed again, and listeners that Redis knows of."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from eventstore.log import EventLog
from eventstore.redis_publisher import RedisPublisher
from tests.eventstore.support import opened

SOON = 10
"""Seconds within which a connection is back for certain: a try may have to wait for two, and for its turn."""


@contextlib.asynccontextmanager
async def closing(publisher: RedisPublisher) -> AsyncIterator[RedisPublisher]:
    """Close a publisher at the end of the block."""
    try:
        yield publisher
    finally:
        await publisher.close()


@contextlib.asynccontextmanager
async def logs(url: str, redis_url: str, prefix: str, count: int = 2) -> AsyncIterator[list[EventLog]]:
    """Open logs on one database, each with a connection to Redis of its own, as processes have them."""
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                opened(
                    url,
                    publisher=await stack.enter_async_context(
                        closing(RedisPublisher(redis_url, channel_prefix=prefix))
                    ),
                )
            )
            for _ in range(count)
        ]


def publisher_of(log: EventLog) -> RedisPublisher:
    """Return a log's publisher."""
    assert isinstance(log.publisher, RedisPublisher)
    return log.publisher


async def listener(publisher: RedisPublisher, channel: str = "c") -> tuple[list[Any], asyncio.Task[None]]:
    """Follow a channel in a task that Redis knows of; return what it hears, and the task."""
    heard: list[Any] = []
    known = asyncio.Event()

    async def listen() -> None:
        async for message in publisher.subscribe(channel, resumed=known.set):
            heard.append(message["n"])  # noqa: PERF401 - what was heard so far is looked at meanwhile

    task = asyncio.create_task(listen())
    async with asyncio.timeout(SOON):
        await known.wait()
    return heard, task
