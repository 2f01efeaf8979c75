"""Another process that follows a log and a session's frames over Redis: `python redis_worker.py URL REDIS_URL PREFIX`.

It says `ready`, and what it has heard once it gets a line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from eventstore import hints
from eventstore.redis_publisher import RedisPublisher
from tests.eventstore.support import opened, text_of

END = "end"


def say(answer: Any) -> None:
    """Answer with a line of JSON."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def main(url: str, redis_url: str, prefix: str) -> None:
    """Follow both until each has come to its end, and tell what came."""
    # The file is not looked at: what wakes the reader comes over Redis.
    hints.POLL_SECONDS = 3600
    publisher = RedisPublisher(redis_url, channel_prefix=prefix)
    listening = asyncio.Event()
    texts: list[str] = []
    frames: list[Any] = []

    async def hear_frames() -> None:
        async for frame in publisher.subscribe("session:s", resumed=listening.set):
            frames.append(frame["n"])
            if frame["n"] == END:
                return

    async with opened(url, publisher=publisher) as log:
        hearing = asyncio.create_task(hear_frames())
        await listening.wait()
        say("ready")
        async for envelope in log.subscribe(after=0):
            texts.append(text_of(envelope))
            if texts[-1] == END:
                break
        await hearing
        say([texts, frames])
    await publisher.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
