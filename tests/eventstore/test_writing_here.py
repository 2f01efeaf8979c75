from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventstore import database
from eventstore.errors import StoreUnavailableError
from eventstore.heads import Head, Proposal
from eventstore.log import BESIDE, EventLog
from eventstore.ports import Tx
from eventstore.writer import MOST_HERE
from tests.eventstore.support import file_at, notes, opened, stream, texts_of, write_lock


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every disk count as quick, whatever else it is doing."""
    monkeypatch.setattr(database, "MOST_COMMIT", 60.0)
    monkeypatch.setattr(database, "MOST_WRITE", 60.0)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EventLog]:
    """Return a log on a file."""
    async with opened(file_at(tmp_path)) as log:
        yield log


class Noting:
    """Decides to append a note, and remembers the threads that it was decided on."""

    def __init__(self, text: str) -> None:
        self.threads: list[int] = []
        self._text = text

    def __call__(self, _tx: Tx, _head: Head) -> tuple[Proposal, None]:
        """Decide, as often as it is asked to."""
        self.threads.append(threading.get_ident())
        return notes(self._text), None

    @property
    def is_here(self) -> list[bool]:
        """Whether it was the test's own thread, for each time."""
        return [one == threading.get_ident() for one in self.threads]


async def append(log: EventLog, text: str, size: float = BESIDE) -> list[bool]:
    """Append a note of about this size; return whether that was done on this thread, for each time it was tried."""
    noting = Noting(text)
    await log.transact("s", noting, size=size)
    return noting.is_here


async def test_small_appends_are_written_where_they_are_asked_for(log: EventLog) -> None:
    """An append that says it is small crosses into no other thread; one that says nothing, or is large, does."""
    assert await append(log, "small") == [True]
    assert await append(log, "large", MOST_HERE + 1) == [False]
    assert await append(log, "unknown", float("inf")) == [False]
    assert texts_of(await stream(log)) == ["small", "large", "unknown"]


async def test_group_is_small_as_a_whole(log: EventLog) -> None:
    """Appends that are small each, but not together, are written on the writer's thread."""
    many = await asyncio.gather(*(append(log, str(number), MOST_HERE / 10) for number in range(11)))
    assert many == [[False]] * 11
    few = await asyncio.gather(*(append(log, str(number), MOST_HERE / 10) for number in range(10)))
    assert few == [[True]] * 10


async def test_small_append_goes_behind_what_the_writer_does(log: EventLog) -> None:
    """While the writer's thread is at work a small append takes its turn behind it."""
    go = threading.Event()
    working = asyncio.ensure_future(log.database.on_writer(lambda _: go.wait(5)))
    await asyncio.sleep(0)
    appending = asyncio.ensure_future(append(log, "behind"))
    await asyncio.sleep(0.05)
    assert not appending.done()
    go.set()
    assert await working
    assert await appending == [False]
    assert await append(log, "alone") == [True]


async def test_write_lock_does_not_hold_up_the_event_loop(log: EventLog, tmp_path: Path) -> None:
    """While another process has the write lock a small append waits on the writer's thread, and others run (SQL-2)."""
    await append(log, "first")
    with write_lock(tmp_path / "log.db"):
        appending = asyncio.ensure_future(append(log, "second"))
        async with asyncio.timeout(2):
            await asyncio.sleep(0.1)
        assert not appending.done()
    assert await appending == [False]
    assert await append(log, "third") == [True]


async def test_slow_disk_sends_appends_to_the_writer(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a commit that took too long, small appends go to the writer's thread for a while."""
    monkeypatch.setattr(database, "MOST_COMMIT", -1.0)
    assert await append(log, "slow") == [True]
    assert await append(log, "after") == [False]
    monkeypatch.setattr(database, "MOST_COMMIT", 60.0)
    log.database._pace._resume_at = 0.0
    assert await append(log, "later") == [True]


async def test_slow_decisions_send_appends_to_the_writer(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a transaction that took too long, for whatever reason, small appends go to the writer's thread."""
    monkeypatch.setattr(database, "MOST_WRITE", 0.01)

    def slow(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        time.sleep(0.02)
        return notes("slow"), None

    await log.transact("s", slow, size=BESIDE)
    assert await append(log, "after") == [False]


async def test_what_breaks_a_group_is_found_on_the_writer_s_thread(log: EventLog) -> None:
    """A decision that breaks a small group is tried again with the others, and fails alone."""

    class BrokenError(Exception):
        pass

    def broken(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        raise BrokenError

    fine = [Noting(str(number)) for number in range(3)]
    outcomes = await asyncio.gather(
        log.transact("s", fine[0], size=BESIDE),
        log.transact("s", broken, size=BESIDE),
        log.transact("s", fine[1], size=BESIDE),
        log.transact("s", fine[2], size=BESIDE),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["Committed", "BrokenError", "Committed", "Committed"]
    assert texts_of(await stream(log)) == ["0", "1", "2"]
    assert await append(log, "after") == [True]


def test_signal_in_the_middle_leaves_nothing_half_written(tmp_path: Path) -> None:
    """An interrupt that reaches a decision on the event loop's thread fails its group alone; the store goes on."""

    def interrupted(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        raise KeyboardInterrupt

    with asyncio.Runner() as runner:
        opening = opened(file_at(tmp_path))
        log = runner.run(opening.__aenter__())
        runner.run(append(log, "before"))

        async def begin() -> list[asyncio.Task[Any]]:
            decisions = (Noting("with it"), interrupted)
            return [asyncio.ensure_future(log.transact("s", decide, size=BESIDE)) for decide in decisions]

        async def outcomes(tasks: list[asyncio.Task[Any]]) -> list[Any]:
            return await asyncio.gather(*tasks, return_exceptions=True)

        tasks = runner.run(begin())
        with pytest.raises(KeyboardInterrupt):
            runner.run(outcomes(tasks))
        # They may have been cancelled with the rest, or told that their group came to nothing.
        found = runner.run(outcomes(tasks))
        assert all(isinstance(one, StoreUnavailableError | asyncio.CancelledError) for one in found)
        assert runner.run(append(log, "after")) == [True]
        assert texts_of(runner.run(stream(log))) == ["before", "after"]
        runner.run(opening.__aexit__(None, None, None))
