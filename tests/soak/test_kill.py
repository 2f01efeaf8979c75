from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import defaultdict
from pathlib import Path

import pytest

from replay import verify
from sessions import Session, SessionManager, Store, open_store
from tests.sessions.processes import spawn
from tests.sessions.talk import collect, said
from tests.soak.appending import BATCHES, TASKS

WORKER = Path(__file__).with_name("appending.py")
ROUNDS = int(os.environ.get("SOAK_ROUNDS", "100"))
ROUNDS_PER_FILE = 5

Acknowledged = dict[str, list[list[str]]]


def killed_at_random(url: str, name: str, chance: random.Random) -> Acknowledged:
    """Run a worker, kill it at a random moment, and return what it had acknowledged, by session."""
    process = spawn(WORKER, {"url": url, "name": name})
    assert process.stdout is not None
    # Now and then while it is still starting and opening the store, mostly while it appends.
    if chance.random() < 0.9:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    time.sleep(chance.uniform(0.020, 0.400))
    os.kill(process.pid, signal.SIGKILL)
    assert process.stdin is not None
    assert process.stderr is not None
    # Not by `communicate`, which knows nothing of what the first line's read has taken along.
    with process.stdin, process.stdout, process.stderr:
        output, errors = process.stdout.read(), process.stderr.read()
    process.wait(timeout=60)
    assert (process.returncode, errors) == (-signal.SIGKILL, "")
    acknowledged: Acknowledged = defaultdict(list)
    for line in output.splitlines(keepends=True):
        assert line.endswith("\n")
        if line != "ready\n":
            session_id, *names = line.split()
            acknowledged[session_id].append(names)
    return acknowledged


async def check_whole(store: Store, session_id: str, acknowledged: list[list[str]]) -> int:
    """Check that a session has every acknowledged append, whole batches and whole versions; return its size."""
    session = Session.create(store).for_session(session_id)
    nodes = await collect(session.tree())
    parents = {node.message.id: node.parent_id for node in nodes}
    versions = [envelope.version async for envelope in session.events()]
    assert versions == list(range(1, len(nodes) + 1))
    names = list(parents)
    assert list(parents.values()) == [None, *names[:-1]]
    assert [message.id async for message in session.history()] == names
    for batch in acknowledged:
        assert all(name in parents for name in batch), f"lost: {batch}"
    at = 0
    while at < len(names):
        batch_name, place, size = names[at].rsplit(".", 2)
        assert place == "0"
        assert names[at : at + int(size)] == [f"{batch_name}.{number}.{size}" for number in range(int(size))]
        at += int(size)
    return len(nodes)


async def check_store(url: str, acknowledged: Acknowledged, kills: int) -> None:
    """Check a store after so many kills, and that it can be written to."""
    async with open_store(url) as store:
        sessions = {info.id for info in await SessionManager(store).list()} - {"after"}
        assert sessions >= acknowledged.keys()
        stored = 0
        for session_id in sessions:
            stored += await check_whole(store, session_id, acknowledged[session_id])
        told = sum(len(batch) for batches in acknowledged.values() for batch in batches)
        # What is there without having been told was under way when the process was killed: one append for each task.
        assert told <= stored <= told + kills * TASKS * max(BATCHES)
        report = await verify(store)
        assert report.problems == []
        assert report.events == stored + kills - 1
        await Session.create(store).for_session("after").append_message(said(f"kill {kills}"))


async def run_rounds(folder: Path, rounds: int, seed: int) -> None:
    """Kill so many workers, a few of them on one file after another, and check the store after each."""
    chance = random.Random(seed)
    acknowledged: Acknowledged = {}
    for number in range(rounds):
        kills = number % ROUNDS_PER_FILE + 1
        url = f"sqlite:///{folder / f'{number - kills + 1}.db'}"
        if kills == 1:
            acknowledged = defaultdict(list)
        told = await asyncio.to_thread(killed_at_random, url, f"r{number}", chance)
        for session_id, batches in told.items():
            acknowledged[session_id] += batches
        await check_store(url, acknowledged, kills)


async def test_killed_writers_lose_nothing(tmp_path: Path) -> None:
    """A process killed under load loses no acknowledged append, leaves no half of one, and the store verifies."""
    await run_rounds(tmp_path, 3, seed=1)


@pytest.mark.soak
async def test_many_killed_writers_lose_nothing(tmp_path: Path) -> None:
    """The same holds for a hundred kills, or as many as SOAK_ROUNDS says, at other moments in each run."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    await run_rounds(tmp_path, ROUNDS, seed)
