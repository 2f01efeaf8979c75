"""Appending beside another library's session, where that library is installed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_least, at_most, missing, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import JsonMessage
from benchmarks.ours import Ours, append_each
from benchmarks.peers import OpenAISessions, add_each
from benchmarks.rounds import Contestant, p99, race, rates
from benchmarks.test_append import EACH, SEQUENTIAL, WRITERS, Load, Loads

SEQUENTIAL_NAME = "append, one session, sequential ÷ OpenAI SQLiteSession"
P99_NAME = f"append p99, {WRITERS} writers to {WRITERS} sessions ÷ OpenAI SQLiteSession"

Append = Callable[[JsonMessage], Awaitable[object]]


def test_sequential_beside_openai(
    benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path
) -> None:
    """One session, one append after the other."""
    if not OpenAISessions.is_installed():
        post(missing(SEQUENTIAL_NAME, OpenAISessions.name))
        pytest.skip(f"{OpenAISessions.name} is not installed")
    peer = OpenAISessions(runner, folder / "openai.db")

    def run(load: Load) -> None:
        session_id, messages = load
        ours.run(append_each(ours.session(session_id), messages))

    def run_peer(load: tuple[Any, list[JsonMessage]]) -> None:
        peer.run(add_each(*load))

    def prepare_peer() -> tuple[Any, list[JsonMessage]]:
        session_id, messages = loads.next()
        return peer.session(session_id), messages

    loads = Loads(SEQUENTIAL)
    with closing(Ours(runner, folder / "ours.db")) as ours:
        us, other = race(
            benchmark,
            Contestant(Loads(SEQUENTIAL).next, run),
            Contestant(prepare_peer, run_peer, lambda _load: peer.close_sessions()),
        )
    post(
        ratio(
            SEQUENTIAL_NAME,
            size=f"{SEQUENTIAL} a round",
            ours=rates(us, SEQUENTIAL),
            beside=rates(other, SEQUENTIAL),
            unit="/s",
            label="OpenAI",
            goal=at_least(0.75),
        )
    )


async def timed(appends: list[Append], messages: list[JsonMessage]) -> list[float]:
    """The milliseconds that each append took, all writers at once, each with an equal share of the messages."""
    times: list[float] = []

    async def write(append: Append, share: list[JsonMessage]) -> None:
        for message in share:
            start = time.perf_counter()
            await append(message)
            times.append((time.perf_counter() - start) * 1000)

    async with asyncio.TaskGroup() as group:
        for number, append in enumerate(appends):
            group.create_task(write(append, messages[number :: len(appends)]))
    return times


def test_slowest_beside_openai(benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path) -> None:
    """The slowest append in a hundred, of 64 writers that each have a session."""
    if not OpenAISessions.is_installed():
        post(missing(P99_NAME, OpenAISessions.name))
        pytest.skip(f"{OpenAISessions.name} is not installed")
    count = WRITERS * EACH
    peer = OpenAISessions(runner, folder / "openai.db")
    loads = Loads(count)

    def run(load: Load) -> list[float]:
        session_id, messages = load
        sessions = [ours.session(f"{session_id}-{number}") for number in range(WRITERS)]
        return ours.run(timed([session.append_message for session in sessions], messages))

    def prepare_peer() -> tuple[list[Append], list[JsonMessage]]:
        session_id, messages = loads.next()
        return [_adding(peer.session(f"{session_id}-{number}")) for number in range(WRITERS)], messages

    def run_peer(load: tuple[list[Append], list[JsonMessage]]) -> list[float]:
        times: list[float] = peer.run(timed(*load))
        return times

    with closing(Ours(runner, folder / "ours.db")) as ours:
        us, other = race(
            benchmark,
            Contestant(Loads(count).next, run),
            Contestant(prepare_peer, run_peer, lambda _load: peer.close_sessions()),
        )
    post(
        ratio(
            P99_NAME,
            size=f"{count:,} a round",
            ours=[p99(us)],
            beside=[p99(other)],
            unit=" ms",
            label="OpenAI",
            goal=at_most(0.8),
        )
    )


def _adding(session: Any) -> Append:
    async def add(message: JsonMessage) -> None:
        await session.add_items([message])

    return add
