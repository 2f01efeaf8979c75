"""From an append to a subscriber in another process over Redis, beside what Redis needs from publish to receive (B)."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from redis.asyncio import Redis

from benchmarks.board import at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus
from benchmarks.listeners import CHANNEL
from benchmarks.ours import Ours
from benchmarks.rounds import ROUNDS, Contestant, race
from eventstore.redis_publisher import RedisPublisher
from tests.eventstore.redis_server import RedisServer, find_server

ROOT = Path(__file__).resolve().parents[1]
TIMES = 100
PAUSE = 0.003


class Listener:
    """A process that writes down when something came to it."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "benchmarks.listeners", *arguments]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self._line()

    async def lag(self, send: Callable[[], Awaitable[object]], begun: Callable[[], int]) -> float:
        """Milliseconds from when a sending has begun to when it came, the median of many."""
        sent = []
        for _ in range(TIMES):
            await send()
            await asyncio.sleep(PAUSE)
            sent.append(begun())
        return median((int(self._line()) - at) / 1e6 for at in sent)

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Noting(RedisPublisher):
    """Notes when it was last given a hint: that is when the log knows that an append is durable."""

    at = 0

    def hand(self, channel: str, message: dict[str, Any]) -> None:
        """Take a message."""
        if channel == "log":
            self.at = time.monotonic_ns()
        super().hand(channel, message)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A Redis server of this benchmark's own."""
    one = RedisServer()
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.mark.skipif(find_server() is None, reason="there is no Redis server here")
def test_live(
    benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path, server: RedisServer
) -> None:
    """B counts from before the message is handed to the driver, ours from before the hint of a commit is published."""
    path = folder / "ours.db"
    messages = iter(Corpus(seed=17).messages(TIMES * (ROUNDS + 1)))
    with contextlib.ExitStack() as stack:
        publisher = Noting(server.url)
        ours = stack.enter_context(closing(Ours(runner, path, publisher=publisher)))
        elsewhere = stack.enter_context(closing(Listener("ours", server.url, f"sqlite:///{path}")))
        listener = stack.enter_context(closing(Listener("plain", server.url, "")))
        redis = Redis.from_url(server.url)
        stack.callback(lambda: runner.run(redis.aclose()))
        session = ours.session("chat")

        at = 0

        async def publish() -> None:
            nonlocal at
            at = time.monotonic_ns()
            await redis.publish(CHANNEL, b'{"position":1}')

        async def append() -> None:
            await session.append_message(next(messages))

        us, b = race(
            benchmark,
            Contestant(lambda: None, lambda _: ours.run(elsewhere.lag(append, lambda: publisher.at))),
            Contestant(lambda: None, lambda _: ours.run(listener.lag(publish, lambda: at))),
        )
    lags, floors = [lap.result for lap in us], [lap.result for lap in b]
    added = [lag - floor for lag, floor in zip(lags, floors, strict=True)]
    size = "over Redis on this machine"
    post(ratio("append → subscriber elsewhere ÷ B", size=size, ours=lags, beside=floors, unit=" ms", label="B"))
    post(
        ratio(
            "what that adds to B ÷ B",
            size=size,
            ours=added,
            beside=floors,
            unit=" ms",
            label="B",
            goal=at_most(3),
        )
    )
