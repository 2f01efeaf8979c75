"""Appending, beside one commit an append (F1) and many to a commit (F2)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_least, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus, JsonMessage
from benchmarks.floors import Floor, append_in_groups
from benchmarks.ours import Ours, append_each, append_in_batches
from benchmarks.rounds import Contestant, race, rates

SEQUENTIAL = 400
WRITERS = 64
EACH = 16
GROUP = 64
BULK = 1_000

Load = tuple[str, list[JsonMessage]]


@pytest.fixture
def floor(folder: Path) -> Iterator[Floor]:
    """A new floor beside it, on the same disk."""
    with closing(Floor(folder / "floor.db")) as floor:
        yield floor


@pytest.fixture
def grouped(folder: Path) -> Iterator[Floor]:
    """Another floor, for what is appended in groups."""
    with closing(Floor(folder / "grouped.db")) as floor:
        yield floor


class Loads:
    """New messages for a new session each time; any two give the same ones in the same order."""

    def __init__(self, count: int) -> None:
        self._corpus = Corpus(seed=11)
        self._numbers = itertools.count(1)
        self._count = count

    def next(self) -> Load:
        """A session id, and the messages to append."""
        return f"session-{next(self._numbers)}", self._corpus.messages(self._count)


def floor_1(floor: Floor, count: int) -> Contestant[Load]:
    """Floor F1 over so many messages a round."""

    def run(load: Load) -> None:
        session_id, messages = load
        for message in messages:
            floor.append(session_id, message)

    return Contestant(Loads(count).next, run)


def floor_2(floor: Floor, count: int, *, size: int) -> Contestant[Load]:
    """Floor F2 over so many messages a round."""
    return Contestant(Loads(count).next, lambda load: append_in_groups(floor, *load, size=size))


def test_sequential(benchmark: BenchmarkFixture, post: Post, ours: Ours, floor: Floor) -> None:
    """One session, one append after the other."""

    def run(load: Load) -> None:
        session_id, messages = load
        ours.run(append_each(ours.session(session_id), messages))

    us, f1 = race(benchmark, Contestant(Loads(SEQUENTIAL).next, run), floor_1(floor, SEQUENTIAL))
    post(
        ratio(
            "append, one session, sequential ÷ F1",
            size=f"{SEQUENTIAL} a round",
            ours=rates(us, SEQUENTIAL),
            beside=rates(f1, SEQUENTIAL),
            unit="/s",
            label="F1",
            goal=at_least(0.50),
        )
    )


async def append_at_once(ours: Ours, session_ids: Sequence[str], messages: list[JsonMessage]) -> None:
    """As many writers as session ids, each with a session object of its own and an equal share of the messages."""
    async with asyncio.TaskGroup() as group:
        for number, session_id in enumerate(session_ids):
            group.create_task(append_each(ours.session(session_id), messages[number :: len(session_ids)]))


@pytest.mark.parametrize(("sessions", "goal"), [(WRITERS, 3), (1, 4)])
def test_many_writers(
    benchmark: BenchmarkFixture, post: Post, ours: Ours, floor: Floor, grouped: Floor, sessions: int, goal: float
) -> None:
    """64 writers, each to its own session, and all to one."""
    count = WRITERS * EACH

    def run(load: Load) -> None:
        session_id, messages = load
        ours.run(append_at_once(ours, [f"{session_id}-{n % sessions}" for n in range(WRITERS)], messages))

    us, f1, f2 = race(
        benchmark,
        Contestant(Loads(count).next, run),
        floor_1(floor, count),
        floor_2(grouped, count, size=GROUP),
    )
    name = f"append, {WRITERS} writers to {f'{sessions} sessions' if sessions > 1 else 'one session'}"
    mine = rates(us, count)
    size = f"{count:,} a round"
    post(
        ratio(f"{name} ÷ F1", size=size, ours=mine, beside=rates(f1, count), unit="/s", label="F1", goal=at_least(goal))
    )
    post(ratio(f"{name} ÷ F2", size=size, ours=mine, beside=rates(f2, count), unit="/s", label=f"F2({GROUP})"))


def test_bulk(benchmark: BenchmarkFixture, post: Post, ours: Ours, grouped: Floor) -> None:
    """A thousand messages in one call."""
    count = BULK * 2

    def run(load: Load) -> None:
        session_id, messages = load
        ours.run(append_in_batches(ours.session(session_id), messages))

    us, f2 = race(benchmark, Contestant(Loads(count).next, run), floor_2(grouped, count, size=BULK))
    post(
        ratio(
            "append_messages ÷ F2",
            size=f"{BULK:,} a call",
            ours=rates(us, count),
            beside=rates(f2, count),
            unit="/s",
            label=f"F2({BULK:,})",
            goal=at_least(0.5),
        )
    )
