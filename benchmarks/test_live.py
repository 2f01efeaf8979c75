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

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from redis.asyncio import Redis

from benchmarks.board import at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus
from benchmarks.listeners import CHANNEL
from benchmarks.ours import Ours
from benchmarks.rounds import ROUNDS, Contestant, race
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

    async def lag(self, send: Callable[[], Awaitable[int]]) -> float:
        """Milliseconds from the moment that a sending returns to that at which it came, the median of many."""
        sent = []
        for _ in range(TIMES):
            sent.append(await send())
            await asyncio.sleep(PAUSE)
        return median((int(self._line()) - at) / 1e6 for at in sent)

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


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
    """B counts from before the message is handed to Redis, ours from when the append has returned, durably."""
    path = folder / "ours.db"
    messages = iter(Corpus(seed=17).messages(TIMES * (ROUNDS + 1)))
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(closing(Ours(runner, path, redis_url=server.url)))
        elsewhere = stack.enter_context(closing(Listener("ours", server.url, f"sqlite:///{path}")))
        listener = stack.enter_context(closing(Listener("plain", server.url, "")))
        redis = Redis.from_url(server.url)
        stack.callback(lambda: runner.run(redis.aclose()))
        session = ours.session("chat")

        async def publish() -> int:
            begun = time.monotonic_ns()
            await redis.publish(CHANNEL, b'{"position":1}')
            return begun

        async def append() -> int:
            await session.append_message(next(messages))
            return time.monotonic_ns()

        us, b = race(
            benchmark,
            Contestant(lambda: None, lambda _: ours.run(elsewhere.lag(append))),
            Contestant(lambda: None, lambda _: ours.run(listener.lag(publish))),
        )
    post(
        ratio(
            "append → subscriber elsewhere ÷ B",
            size="over Redis on this machine",
            ours=[lap.result for lap in us],
            beside=[lap.result for lap in b],
            unit=" ms",
            label="B",
            goal=at_most(3),
        )
    )
