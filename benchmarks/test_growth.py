"""What an append costs when its session is long: in one of 1,000,000 messages beside one of 1,000.

Without `BENCH_FULL=1` the long session has 100,000.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus, JsonMessage
from benchmarks.ours import Ours, append_each, append_in_batches
from benchmarks.rounds import Contestant, Lap, p99, race

SHORT = 1_000
LONG = 1_000_000 if os.environ.get("BENCH_FULL") == "1" else 100_000
WARM = 20
TIMED = 200

Load = tuple[Ours, list[JsonMessage]]


def test_growth(benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path) -> None:
    """The time of a single append, the median and the slowest in a hundred."""
    corpus = Corpus(seed=14)
    numbers = itertools.count(1)

    def open_short() -> Load:
        short = Ours(runner, folder / f"short-{next(numbers)}.db")
        short.run(append_in_batches(short.session("chat"), corpus.messages(SHORT)))
        return warm(short)

    def warm(ours: Ours) -> Load:
        ours.run(append_each(ours.session("chat"), corpus.messages(WARM)))
        return ours, corpus.messages(TIMED)

    async def append(ours: Ours, messages: list[JsonMessage]) -> list[float]:
        session = ours.session("chat")
        times = []
        for message in messages:
            start = time.perf_counter()
            await session.append_message(message)
            times.append((time.perf_counter() - start) * 1000)
        return times

    def run(load: Load) -> list[float]:
        ours, messages = load
        return ours.run(append(ours, messages))

    with closing(Ours(runner, folder / "long.db")) as long:
        for _ in range(LONG // 10_000):
            long.run(append_in_batches(long.session("chat"), corpus.messages(10_000)))
        at_long, at_short = race(
            benchmark,
            Contestant(lambda: warm(long), run),
            Contestant(open_short, run, lambda load: load[0].close()),
        )
    label, size = f"at {SHORT:,}:", f"{LONG:,} in one session"
    for name, ours, beside, goal in (
        ("p50", medians(at_long), medians(at_short), 1.2),
        ("p99", [p99(at_long)], [p99(at_short)], 3),
    ):
        post(
            ratio(
                f"append {name}, long session ÷ short",
                size=size,
                ours=ours,
                beside=beside,
                unit=" ms",
                label=label,
                goal=at_most(goal),
            )
        )


def medians(laps: list[Lap]) -> list[float]:
    """The median time of each round."""
    return [median(lap.result) for lap in laps]
