"""Editing and deleting at the beginning of a long session, beside doing it at its end.

Without `BENCH_FULL=1` the session has 100,000 messages.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus, JsonMessage
from benchmarks.ours import Ours, append_in_batches
from benchmarks.rounds import Contestant, milliseconds, race
from sessions import Session

MESSAGES = 1_000_000 if os.environ.get("BENCH_FULL") == "1" else 100_000
TIMED = 20
LATER = 100

Long = tuple[Ours, Corpus, list[JsonMessage]]


@pytest.fixture(scope="module")
def long(runner: asyncio.Runner) -> Iterator[Long]:
    """A store with one long session, and its first and last messages."""
    corpus = Corpus(seed=17)
    with TemporaryDirectory(prefix="bench-") as name, closing(Ours(runner, Path(name) / "ours.db")) as ours:
        kept: list[JsonMessage] = []
        for start in range(0, MESSAGES, 10_000):
            messages = corpus.messages(10_000)
            ours.run(append_in_batches(ours.session("chat"), messages))
            kept += messages if start in (0, MESSAGES - 10_000) else []
        yield ours, corpus, kept


def test_update(benchmark: BenchmarkFixture, post: Post, long: Long) -> None:
    """Another text for the first message, and for the last."""
    ours, corpus, kept = long

    async def update(session: Session, message: JsonMessage) -> None:
        for other in corpus.messages(TIMED):
            await session.update_message({**other, "id": message["id"]})

    def edit(message: JsonMessage) -> Contestant[None]:
        return Contestant(lambda: None, lambda _: ours.run(update(ours.session("chat"), message)))

    first, last = edit(kept[0]), edit(kept[-1])
    at_first, at_last = race(benchmark, first, last)
    post_ratio(post, "update", milliseconds(at_first, TIMED), milliseconds(at_last, TIMED))


def test_delete(benchmark: BenchmarkFixture, post: Post, long: Long) -> None:
    """The first message that is left, and the last."""
    ours, _, kept = long

    async def delete(pop: Callable[[], JsonMessage]) -> None:
        session = ours.session("chat")
        for _ in range(TIMED):
            await session.delete_messages([pop()["id"]])

    from_start = Contestant(lambda: None, lambda _: ours.run(delete(lambda: kept.pop(1))))
    from_end = Contestant(lambda: None, lambda _: ours.run(delete(kept.pop)))
    at_first, at_last = race(benchmark, from_start, from_end)
    post_ratio(post, "delete", milliseconds(at_first, TIMED), milliseconds(at_last, TIMED))


def test_first_append(benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path) -> None:
    """The first append to a session of 100,000 messages in a store that was just opened, and the ones after it."""
    corpus = Corpus(seed=18)
    path = folder / "ours.db"
    with closing(Ours(runner, path)) as ours:
        for _ in range(10):
            ours.run(append_in_batches(ours.session("chat"), corpus.messages(10_000)))

    async def append(session: Session, messages: Sequence[JsonMessage]) -> None:
        for message in messages:
            await session.append_message(message)

    def opened(before: int) -> Callable[[], Ours]:
        def prepare() -> Ours:
            ours = Ours(runner, path)
            ours.run(append(ours.session("chat"), corpus.messages(before)))
            return ours

        return prepare

    def run(ours: Ours) -> None:
        ours.run(append(ours.session("chat"), corpus.messages(1)))

    first, later = (Contestant(opened(before), run, Ours.close) for before in (0, LATER))
    at_first, at_later = race(benchmark, first, later)
    post(
        ratio(
            "first append after opening ÷ a later one",
            size="100,000 in one session",
            ours=milliseconds(at_first, 1),
            beside=milliseconds(at_later, 1),
            unit=" ms",
            label="later",
            goal=at_most(5),
        )
    )


def post_ratio(post: Post, name: str, at_first: list[float], at_last: list[float]) -> None:
    """Post a figure of this file."""
    post(
        ratio(
            f"{name} of message 1 ÷ of the tip",
            size=f"{MESSAGES:,} in one session",
            ours=at_first,
            beside=at_last,
            unit=" ms",
            label="tip",
            goal=at_most(10),
        )
    )
