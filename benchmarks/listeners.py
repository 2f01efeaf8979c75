"""Another process that listens: `python -m benchmarks.listeners plain|ours REDIS_URL DATABASE_URL`.

It writes a line `ready`, and then for each thing that comes the moment at which it came, in nanoseconds of the clock
that all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import sys
import time

from redis.asyncio import Redis

from sessions import open_store

CHANNEL = "benchmark"


def say(word: object) -> None:
    """Write a line."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def plain(redis_url: str, _url: str) -> None:
    """Listen to a channel, with the driver alone."""
    async with Redis.from_url(redis_url) as redis, redis.pubsub() as channel:
        await channel.subscribe(CHANNEL)
        say("ready")
        async for message in channel.listen():
            if message["type"] == "message":
                say(time.monotonic_ns())


async def ours(redis_url: str, url: str) -> None:
    """Follow the log."""
    async with open_store(url, redis_url=redis_url) as store:
        say("ready")
        async for _envelope in store.log.subscribe():
            say(time.monotonic_ns())


if __name__ == "__main__":
    kind, *urls = sys.argv[1:]
    asyncio.run({"plain": plain, "ours": ours}[kind](*urls))
