"""Reading a history with branches and overlays, beside as many rows by an index range, decoded (R); and streaming."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import closing
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import amount, at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus
from benchmarks.floors import Floor, append_in_groups
from benchmarks.ours import Ours, append_in_batches
from benchmarks.rounds import Contestant, milliseconds, race
from benchmarks.test_read import touch

SHOWN = 1_000
BRANCHES = 50
OVERLAYS = 5
COVERED = 21
LENGTH = SHOWN + OVERLAYS * (COVERED - 1)
TIMES = 10
STREAMED = 100_000
MEGABYTE = 1 << 20


def test_branches_and_overlays(benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path) -> None:
    """A path that turns off at 50 messages and is compacted in 5 places; it shows 1,000 messages."""
    corpus = Corpus(seed=15)
    messages = corpus.messages(LENGTH)
    with closing(Ours(runner, folder / "ours.db")) as ours, closing(Floor(folder / "floor.db")) as floor:
        append_in_groups(floor, "chat", messages, size=1_000)

        async def build() -> None:
            session = ours.session("chat")
            step = LENGTH // BRANCHES
            for start in range(0, LENGTH, step):
                stretch = messages[start : start + step]
                await session.append_messages(stretch)
                # What was answered first, and answered again by the next stretch.
                await session.append_message(corpus.messages(1)[0])
                await session.select_leaf(stretch[-1]["id"])
            for number in range(OVERLAYS):
                first = number * (LENGTH // OVERLAYS) + 7
                ends = messages[first]["id"], messages[first + COVERED - 1]["id"]
                await session.add_compaction(f"What was said in part {number}", *ends)

        async def read() -> int:
            session = ours.session("chat")
            return sum([touch(await session.get_history()) for _ in range(TIMES)])

        ours.run(build())
        assert len(ours.run(ours.session("chat").get_history())) == SHOWN
        us, r = race(
            benchmark,
            Contestant(lambda: None, lambda _: ours.run(read())),
            Contestant(lambda: None, lambda _: sum(touch(floor.read("chat", SHOWN)) for _ in range(TIMES))),
        )
    post(
        ratio(
            "history, branches and overlays ÷ R",
            size=f"{SHOWN:,} messages, {BRANCHES} branches, {OVERLAYS} overlays",
            ours=milliseconds(us, TIMES),
            beside=milliseconds(r, TIMES),
            unit=" ms",
            label="R",
            goal=at_most(2),
        )
    )


def test_streamed_memory(benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path) -> None:
    """The most memory that is in use at once while a long history is streamed."""
    corpus = Corpus(seed=16)
    with closing(Ours(runner, folder / "ours.db")) as ours:
        for _ in range(STREAMED // 10_000):
            ours.run(append_in_batches(ours.session("chat"), corpus.messages(10_000)))

        async def stream() -> int:
            return sum([len(message.parts) async for message in ours.session("chat").history()])

        def peak(_: None) -> float:
            tracemalloc.start()
            try:
                assert ours.run(stream()) >= STREAMED
                return tracemalloc.get_traced_memory()[1] / MEGABYTE
            finally:
                tracemalloc.stop()

        (laps,) = race(benchmark, Contestant(lambda: None, peak), rounds=3)
    peaks = [lap.result for lap in laps]
    post(amount("streamed history, peak memory", size=f"{STREAMED:,}", ours=peaks, unit=" MB", goal=at_most(10, " MB")))
