"""Several processes on one file: nothing is lost, numbered twice or refused, and each notices the others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.eventstore import worker
from tests.eventstore.support import (
    Tally,
    everything,
    file_at,
    note,
    notes,
    opened,
    rows_of,
    stream,
    take,
    tallied,
    text_of,
    texts_of,
)

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A process that runs a command of `worker.py` on a file."""

    def __init__(self, url: str, command: str, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.eventstore.worker", url, command, name],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str = "go") -> None:
        """Write a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Return its next answer; it must give one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(self._process.communicate()[1])
        return json.loads(line)

    def end(self) -> str:
        """Let it come to its end, and return what it complained of."""
        try:
            return self._process.communicate(timeout=10)[1]
        finally:
            self._process.kill()


def run(url: str, command: str, count: int) -> list[Any]:
    """Run a command in so many processes at once, and return their answers."""
    workers = [Worker(url, command, f"w{number}") for number in range(count)]
    assert [one.hear() for one in workers] == ["ready"] * count
    for one in workers:
        one.tell()
    answers = [one.hear() for one in workers]
    assert [one.end() for one in workers] == [""] * count
    return answers


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Worker]:
    """Return a process that appends when it is told to."""
    one = Worker(file_at(tmp_path), "append_when_told", "w")
    assert one.hear() == "ready"
    yield one
    assert one.end() == ""


async def test_eight_processes_append_to_one_stream_and_to_their_own(tmp_path: Path) -> None:
    """Eight processes with fifty appends each to one stream and to their own lose none and share no number (CON-1)."""
    url, count = file_at(tmp_path), 8
    answers = run(url, "append_to_both", count)
    async with opened(url, Tally()) as log:
        events = await everything(log)
        assert [e.position for e in events] == list(range(1, 2 * count * worker.APPENDS + 1))
        shared = await stream(log, "shared")
        assert [e.version for e in shared] == list(range(1, count * worker.APPENDS + 1))
        assert sorted(texts_of(shared)) == sorted(f"w{w}.{n}" for w in range(count) for n in range(worker.APPENDS))
        for number, told in enumerate(answers):
            own = [e for e in shared if text_of(e).startswith(f"w{number}.")]
            assert told["shared"] == [[e.version, e.position] for e in own]
            assert texts_of(own) == [f"w{number}.{n}" for n in range(worker.APPENDS)]
            alone = await stream(log, f"w{number}")
            assert told[f"w{number}"] == [[e.version, e.position] for e in alone]
            assert [e.version for e in alone] == list(range(1, worker.APPENDS + 1))
        assert await log.read(lambda tx: tallied(tx, "shared")) == texts_of(shared)
    assert rows_of(tmp_path / "log.db", "SELECT COUNT(*) FROM streams") == [(count + 1,)]


async def test_five_processes_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    """Five processes whose twenty tasks are the first to use a file store all, and the schema is made once (CON-2)."""
    url = file_at(tmp_path)
    run(url, "open_and_append", 5)
    async with opened(url, Tally()) as log:
        found = await stream(log, "new")
    assert sorted(texts_of(found)) == sorted(f"w{w}.{task}" for w in range(5) for task in range(worker.TASKS))
    assert [e.version for e in found] == list(range(1, 101))
    assert rows_of(tmp_path / "log.db", "SELECT COUNT(*) FROM eventstore_schema") == [(1,)]
    assert rows_of(tmp_path / "log.db", "SELECT name FROM projections") == [("tally",)]
    assert rows_of(tmp_path / "log.db", "SELECT stream_id FROM streams") == [("new",)]


async def test_read_check_append_from_four_processes(tmp_path: Path) -> None:
    """Processes that read, check and append with the version they read meet conflicts only, never a lock (SQL-2)."""
    url = file_at(tmp_path)
    run(url, "read_check_append", 4)
    async with opened(url, Tally()) as log:
        found = await stream(log, "counter")
    assert [int(text_of(e).split(".")[1]) for e in found] == list(range(4 * (worker.APPENDS // 2)))


async def test_decisions_of_four_processes_see_each_other(tmp_path: Path) -> None:
    """What a decision sees inside its transaction is what it appends to, whoever wrote it."""
    url = file_at(tmp_path)
    run(url, "decide_in_the_transaction", 4)
    async with opened(url, Tally()) as log:
        assert texts_of(await stream(log, "counted")) == [str(n) for n in range(4 * (worker.APPENDS // 2))]


async def test_heads_in_memory_notice_another_process(tmp_path: Path, other: Worker) -> None:
    """A writer that remembers where a stream stood looks again after another process has written."""
    async with opened(file_at(tmp_path), Tally()) as log:
        assert (await log.append("shared", notes("a"), expected=0)).envelopes[0].version == 1
        for version in range(2, 20, 2):
            other.tell(f"{version}")
            assert other.hear() == version
            committed = await log.append("shared", notes(version + 1), expected=version)
            assert (committed.envelopes[0].version, committed.envelopes[0].position) == (version + 1, version + 1)
        first = (await log.append("mine", notes("x"))).envelopes[0]
        other.tell("y")
        assert other.hear() == 20
        assert first.stream_no == 2
        assert (await log.append("third", notes("z"))).envelopes[0].stream_no == 3


async def test_repeat_from_another_process_is_recognised(tmp_path: Path) -> None:
    """An event id that another process has used is recognised by one that remembers the stream as it was."""
    url = file_at(tmp_path)
    async with opened(url) as log, opened(url) as other_log:
        await log.append("s", notes("a"))
        first = await other_log.append("s", notes("b"), event_ids=["k"], expected=1)
        assert await log.append("s", notes("b"), event_ids=["k"], expected=1) == first
        assert len(await everything(log)) == 2


async def test_another_process_s_append_is_noticed_soon(tmp_path: Path, other: Worker) -> None:
    """A follower gets what another process has appended within a moment, and once."""
    async with opened(file_at(tmp_path), Tally()) as log:
        events = log.subscribe(after=0)
        waited = []
        for number in range(6):
            following = asyncio.ensure_future(take(events, 1))
            await asyncio.sleep(0.06 + 0.01 * number)
            other.tell(str(number))
            await asyncio.to_thread(other.hear)
            began = time.monotonic()
            assert texts_of(await following) == [str(number)]
            waited.append(time.monotonic() - began)
        # The median: what one wait costs more is the machine's load.
        assert sorted(waited)[3] < 0.15


async def test_followers_of_two_logs_see_one_order(tmp_path: Path) -> None:
    """Followers in different processes get the same events in the same order, whoever writes them."""
    url = file_at(tmp_path)
    async with opened(url) as log, opened(url) as other_log:
        following = [asyncio.ensure_future(take(one.subscribe(after=0), 200)) for one in (log, other_log)]
        await asyncio.gather(*((log, other_log)[n % 2].append(f"s{n % 3}", [note(n)]) for n in range(200)))
        mine, theirs = await asyncio.gather(*following)
        assert mine == theirs
        assert [e.position for e in mine] == list(range(1, 201))
