"""Callers that are cancelled, time out or fail leave all or nothing, and nothing open behind them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from eventstore.errors import ProjectionError, StoreClosedError, VersionConflictError
from eventstore.log import EventLog
from tests.eventstore.support import MEMORY, Tally, everything, file_at, notes, opened, stream, texts_of, threads_left

ROUNDS = 51
DESCRIPTORS = Path("/proc/self/fd")


def descriptors() -> int:
    """Return how many files this process has open, where the system tells."""
    return sum(1 for _ in DESCRIPTORS.iterdir()) if DESCRIPTORS.exists() else 0


async def ticks(count: int) -> None:
    """Let the event loop turn so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[EventLog, EventLog]]:
    """Return two logs on one file, as two processes have them."""
    url = file_at(tmp_path)
    async with opened(url, Tally()) as log, opened(url, Tally()) as other:
        yield log, other


async def check_whole(log: EventLog, other: EventLog, name: str, size: int) -> bool:
    """Check that a stream holds all of an append or nothing, and that both logs append at once; return which."""
    await log.append("settled", notes("now"))
    version = await other.stream_version(name)
    assert version in {0, size}
    async with asyncio.timeout(1):
        await other.append(name, notes("other"), expected=version)
        await log.append(name, notes("own"), expected=version + 1)
    return version == size


@pytest.mark.parametrize("pause", [0, 0.0002], ids=["ticks", "time"])
async def test_cancelled_append_is_whole_or_not_there(pair: tuple[EventLog, EventLog], pause: float) -> None:
    """Cancelled after any number of ticks an append is there with all its events or none, and blocks nobody (SQL-1)."""
    log, other = pair
    await log.append("warm", notes("up"))
    before = threading.active_count(), descriptors()
    found = []
    for n in range(ROUNDS):
        appending = asyncio.ensure_future(log.append(f"s{n}", notes(*range(10))))
        for _ in range(n):
            await asyncio.sleep(pause)
        appending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await appending
            assert await other.stream_version(f"s{n}") == 10
        found.append(await check_whole(log, other, f"s{n}", 10))
    assert found[0] is False
    assert [e.position for e in await everything(log)] == list(range(1, 2 + 3 * ROUNDS + 10 * sum(found)))
    # Readers' connections are opened when they are first needed: each log may have a few more than before.
    assert threading.active_count() - before[0] <= 8
    assert descriptors() - before[1] <= 8 * 3


async def test_timed_out_append_is_whole_or_not_there(pair: tuple[EventLog, EventLog]) -> None:
    """An append under `wait_for` that runs out of time is there whole or not at all (SQL-1)."""
    log, other = pair
    for n in range(20):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(log.append(f"s{n}", notes(*range(10))), timeout=n * 0.0002)
        await check_whole(log, other, f"s{n}", 10)


async def test_cancelled_one_of_a_group_takes_nobody_with_it(pair: tuple[EventLog, EventLog]) -> None:
    """When some callers of a group are cancelled, the others are answered as always."""
    log, other = pair
    for n in range(30):
        calls = [asyncio.ensure_future(log.append(f"s{n}.{k}", notes(*range(3)))) for k in range(6)]
        await ticks(n)
        for call in calls[::2]:
            call.cancel()
        answers = await asyncio.gather(*calls[1::2])
        assert [len(answer.envelopes) for answer in answers] == [3, 3, 3]
        for k in range(6):
            assert await other.stream_version(f"s{n}.{k}") in ({0, 3} if k % 2 == 0 else {3})


async def test_failing_projection_leaves_nothing_open(tmp_path: Path) -> None:
    """An append that a projection makes fail again and again leaves no transaction open for others to meet (SQL-1)."""
    url = file_at(tmp_path)
    async with opened(url, Tally("poison")) as log, opened(url, Tally()) as other:
        for n in range(20):
            failing = asyncio.ensure_future(log.append("s", notes(n, "poison")))
            if n % 2:
                await ticks(n)
                failing.cancel()
            with pytest.raises((ProjectionError, asyncio.CancelledError)):
                await failing
            async with asyncio.timeout(1):
                await other.append("s", notes(n))
        assert texts_of(await stream(log)) == [str(n) for n in range(20)]


async def test_failures_leave_nothing_open(pair: tuple[EventLog, EventLog]) -> None:
    """Conflicts leave no transaction open either."""
    log, other = pair
    for n in range(20):
        with pytest.raises(VersionConflictError):
            await log.append("s", notes("x"), expected=n + 1)
        async with asyncio.timeout(1):
            await other.append("s", notes(n), expected=n)


@pytest.mark.parametrize("url", ["file", "memory"])
async def test_cancelled_readers_leave_nothing(url: str, tmp_path: Path) -> None:
    """Readers that are cancelled at any moment lose no connection: as many others can read afterwards."""
    before = threading.active_count()
    for n in range(0, ROUNDS, 3):
        async with opened(file_at(tmp_path) if url == "file" else MEMORY) as log:
            await log.append("s", notes("a"))
            reading = [asyncio.ensure_future(stream(log)) for _ in range(12)]
            await ticks(n)
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            async with asyncio.timeout(2):
                found = await asyncio.gather(*(log.stream_version("s") for _ in range(12)))
            assert set(found) == {n // 3 + 1 if url == "file" else 1}
        assert await threads_left(before) == 0


def test_cancelled_reader_may_be_the_last_thing_that_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the event loop ends right after a reader was cancelled and the log closed, no thread is still at work."""
    complaints: list[object] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)

    async def read_and_leave(n: int) -> None:
        async with opened(file_at(tmp_path)) as log:
            reading = [asyncio.ensure_future(log.stream_version("s")), asyncio.ensure_future(anext(log.subscribe()))]
            await asyncio.sleep(n * 0.0001)
            for task in reading:
                task.cancel()

    before = threading.active_count()
    for n in range(30):
        asyncio.run(read_and_leave(n))
    assert asyncio.run(threads_left(before)) == 0
    assert complaints == []


async def test_cancelled_followers_leave_nothing(tmp_path: Path) -> None:
    """Followers that come and go before they have read anything lose no connection."""
    before = threading.active_count()
    async with opened(file_at(tmp_path)) as log:
        for n in range(40):
            following = [asyncio.ensure_future(anext(log.subscribe(after=after))) for after in (0, None, 7)]
            await ticks(n)
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        async with asyncio.timeout(2):
            await asyncio.gather(*(log.stream_version("s") for _ in range(12)))
        assert log._hints.readers == 0
    assert await threads_left(before) == 0


@pytest.mark.parametrize("url", ["file", "memory"])
async def test_cancelled_opening_leaves_nothing(url: str, tmp_path: Path) -> None:
    """Opening that is cancelled at any moment leaves no thread, and the next opening works."""
    before = threading.active_count()

    async def open_and_close(path: str) -> None:
        async with opened(path, Tally()):
            pass

    for n in [*range(0, 120, 4), 200, 400]:
        path = file_at(tmp_path, f"{n}.db") if url == "file" else MEMORY
        opening = asyncio.ensure_future(open_and_close(path))
        await ticks(n)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening
        assert await threads_left(before) == 0, n
        async with asyncio.timeout(2), opened(path, Tally()) as log:
            await log.append("s", notes("a"))
    assert await threads_left(before) == 0


@pytest.mark.parametrize("url", ["file", "memory"])
async def test_close_while_others_read_leaves_nothing(url: str, tmp_path: Path) -> None:
    """Closing in the middle of reads lets them end or fail as closed, and leaves no thread."""
    before = threading.active_count()
    for n in range(0, 60, 2):
        async with opened(file_at(tmp_path) if url == "file" else MEMORY) as log:
            await log.append("s", notes("a"))
            unread = log.subscribe()
            reading = [asyncio.ensure_future(log.stream_version("s")) for _ in range(12)]
            await ticks(n)
            async with asyncio.timeout(2):
                await log.close()
                outcomes = await asyncio.gather(*reading, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} <= {int, StoreClosedError}
            del unread
        assert await threads_left(before) == 0, n


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 20])
async def test_cancelled_close_strands_nobody(n: int, tmp_path: Path) -> None:
    """When closing is cancelled, those who wait for their appends are answered all the same, and it can be closed."""
    before = threading.active_count()
    async with opened(file_at(tmp_path)) as log:
        appending = [asyncio.ensure_future(log.append("s", notes(k))) for k in range(600)]
        await ticks(1)
        closing = asyncio.ensure_future(log.close())
        await ticks(n)
        closing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closing
        async with asyncio.timeout(5):
            outcomes = await asyncio.gather(*appending, return_exceptions=True)
            await log.close()
        assert {type(outcome).__name__ for outcome in outcomes} == {"Committed"}
    assert await threads_left(before) == 0


async def test_two_close_at_once(tmp_path: Path) -> None:
    """Closing from two tasks at once is closing once, and both wait for its end."""
    before = threading.active_count()
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes("a"))
        async with asyncio.timeout(2):
            await asyncio.gather(log.close(), log.close(), log.close())
    assert await threads_left(before) == 0
