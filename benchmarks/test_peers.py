"""Appending beside other libraries, where they are installed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_least, at_most, missing, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import JsonMessage
from benchmarks.ours import Ours
from benchmarks.peers import PEERS, Append, Peer, Writers
from benchmarks.rounds import Contestant, p99, race, rates
from benchmarks.test_append import EACH, SEQUENTIAL, WRITERS, Loads

OPENAI = PEERS[0]

Load = tuple[list[Append], list[JsonMessage]]


@pytest.fixture
def opened(runner: asyncio.Runner) -> Iterator[AsyncExitStack]:
    """What is opened on the event loop, and closed in the end."""
    stack = AsyncExitStack()
    yield stack
    runner.run(stack.aclose())


def theirs(
    peer: Peer, post: Post, figure: str, runner: asyncio.Runner, opened: AsyncExitStack, folder: Path
) -> Writers:
    """What appends with a library; without it the figure is left out."""
    if not peer.is_installed():
        post(missing(figure, peer.name))
        pytest.skip(f"{peer.name} is not installed")
    return runner.run(opened.enter_async_context(peer.open(folder)))


def contestant(runner: asyncio.Runner, writers: Writers, *, count: int, sessions: int) -> Contestant[Load]:
    """New sessions and messages for each round, and what it takes to append them: the milliseconds of each append."""
    loads = Loads(count)

    def prepare() -> Load:
        session_id, messages = loads.next()
        return runner.run(_writers_of(writers, [f"{session_id}-{number}" for number in range(sessions)])), messages

    return Contestant(prepare, lambda load: runner.run(timed(*load)))


async def timed(appends: Sequence[Append], messages: Sequence[JsonMessage]) -> list[float]:
    """The milliseconds that each append took, all writers at once, each with an equal share of the messages."""
    times: list[float] = []

    async def write(append: Append, share: Sequence[JsonMessage]) -> None:
        for message in share:
            start = time.perf_counter()
            await append(message)
            times.append((time.perf_counter() - start) * 1000)

    async with asyncio.TaskGroup() as group:
        for number, append in enumerate(appends):
            group.create_task(write(append, messages[number :: len(appends)]))
    return times


def test_sequential_beside_openai(
    benchmark: BenchmarkFixture,
    post: Post,
    runner: asyncio.Runner,
    folder: Path,
    ours: Ours,
    opened: AsyncExitStack,
) -> None:
    """One session, one append after the other."""
    figure = f"append, one session, sequential ÷ {OPENAI.name}"
    writers = theirs(OPENAI, post, figure, runner, opened, folder)
    us, other = race(
        benchmark,
        contestant(runner, _ours(ours), count=SEQUENTIAL, sessions=1),
        contestant(runner, writers, count=SEQUENTIAL, sessions=1),
    )
    post(
        ratio(
            figure,
            size=f"{SEQUENTIAL} a round",
            ours=rates(us, SEQUENTIAL),
            beside=rates(other, SEQUENTIAL),
            unit="/s",
            label="OpenAI",
            goal=at_least(0.75),
        )
    )


@pytest.mark.parametrize("peer", PEERS, ids=[peer.module for peer in PEERS])
def test_slowest(
    benchmark: BenchmarkFixture,
    post: Post,
    runner: asyncio.Runner,
    folder: Path,
    ours: Ours,
    opened: AsyncExitStack,
    peer: Peer,
) -> None:
    """The slowest append in a hundred, of 64 writers that each have a session."""
    figure = f"append p99, {WRITERS} writers to {WRITERS} sessions ÷ {peer.name}"
    writers = theirs(peer, post, figure, runner, opened, folder)
    count = WRITERS * EACH
    us, other = race(
        benchmark,
        contestant(runner, _ours(ours), count=count, sessions=WRITERS),
        contestant(runner, writers, count=count, sessions=WRITERS),
    )
    post(
        ratio(
            figure,
            size=f"{count:,} a round",
            ours=[p99(us)],
            beside=[p99(other)],
            unit=" ms",
            label=peer.name.split()[0],
            goal=at_most(0.8),
        )
    )


def _ours(ours: Ours) -> Writers:
    async def writers(session_ids: Sequence[str]) -> list[Append]:
        return [ours.session(session_id).append_message for session_id in session_ids]

    return writers


async def _writers_of(writers: Writers, session_ids: Sequence[str]) -> list[Append]:
    return await writers(session_ids)
