from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventstore import rows, short_reads
from eventstore.crossing import raw
from eventstore.log import EventLog
from eventstore.ports import Tx
from eventstore.rows import high_water
from eventstore.short_reads import MOST, ShortReads, Steps
from tests.eventstore.support import file_at, notes, opened, sql, stream, take, write_lock

# Some hundred milliseconds of SQLite's own work.
_MUCH = sql("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000000) SELECT count(*) FROM c")


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EventLog]:
    """Return a log on a file that has been read from, as it is after the first read."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes("a", "b"))
        await log.high_water()
        yield log


def thread(_tx: Tx) -> int:
    """Return the thread that a query runs on."""
    return threading.get_ident()


def reads_of(log: EventLog) -> ShortReads:
    """Return what runs the short reads of a log."""
    short = log.database._short
    assert short is not None
    return short


async def test_short_reads_run_where_they_are_asked_for(log: EventLog) -> None:
    """A read that is short crosses into no other thread."""
    assert await log.read(thread) == threading.get_ident()


async def test_first_read_runs_elsewhere(tmp_path: Path) -> None:
    """The first read of a store, which finds nothing of the file in memory, does not hold up the event loop."""
    async with opened(file_at(tmp_path)) as log:
        assert await log.read(thread) != threading.get_ident()


async def test_long_reads_are_broken_off_and_run_elsewhere(log: EventLog) -> None:
    """A read that takes too long is run again on another thread, and gives what it would have given."""
    threads: list[int] = []

    def query(tx: Tx) -> int:
        threads.append(threading.get_ident())
        return int(tx.fetch(_MUCH)[0][0])

    assert await log.read(query) == 3_000_000
    assert [one == threading.get_ident() for one in threads] == [True, False]


async def test_others_run_while_a_long_read_goes_on(log: EventLog) -> None:
    """The event loop is not held up by a read for longer than a short one may take, but for what the machine adds."""
    reading = asyncio.ensure_future(log.read(lambda tx: tx.fetch(_MUCH)))
    ticks = 0
    while not reading.done():
        await asyncio.sleep(MOST)
        ticks += 1
    assert ticks > 5


async def test_after_a_long_read_others_run_elsewhere_for_a_while(log: EventLog) -> None:
    """What took too long is not tried again at once: the reads after it go to other threads, and later come back."""
    reading = asyncio.ensure_future(log.read(lambda tx: tx.fetch(_MUCH)))
    await asyncio.sleep(0)
    assert await log.read(thread) != threading.get_ident()
    await reading
    reads_of(log)._pace._resume_at = time.perf_counter()
    assert await log.read(thread) == threading.get_ident()


async def test_who_only_reads_lets_others_run(log: EventLog) -> None:
    """A task that does nothing but read does not keep others from running."""
    others = asyncio.ensure_future(asyncio.sleep(0.01))
    async with asyncio.timeout(10):
        while not others.done():
            await log.high_water()


async def test_errors_of_a_query_come_out_as_they_are(log: EventLog) -> None:
    """What a short read raises is raised, and the next read works."""

    def query(_tx: Tx) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await log.read(query)
    assert await log.high_water() == 2


async def test_no_end_of_a_read_is_broken_off(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often reads are broken off, at whatever step, the next one finds the connection out of transactions."""
    monkeypatch.setattr(short_reads, "MOST", 0.0)
    short = reads_of(log)
    for _ in range(1_500):
        short._pace._resume_at = 0.0
        assert await log.high_water() == 2
        assert not short._connection.in_transaction
    for _ in range(500):
        short._pace._resume_at = 0.0
        assert len(await log.read_in_steps(in_steps)) == 3
        assert not short._connection.in_transaction


async def test_locks_are_not_waited_for(log: EventLog, tmp_path: Path) -> None:
    """What another process has locked is waited for on another thread, while the event loop goes on."""
    threads: list[int] = []

    def query(tx: Tx) -> int:
        threads.append(threading.get_ident())
        # No read does this; but nothing else needs a lock that can be held here.
        tx.execute(sql("DELETE FROM events WHERE 0"))
        return high_water(tx)

    with write_lock(tmp_path / "log.db"):
        reading = asyncio.ensure_future(log.read(query))
        await asyncio.sleep(0.1)
        assert not reading.done()
    assert await reading == 2
    assert [one == threading.get_ident() for one in threads] == [True, False]


def in_steps(tx: Tx, steps: int = 3) -> Steps[list[tuple[int, int]]]:
    """Read the end of the log a few times, and name the thread each time."""
    found = []
    for _ in range(steps):
        found.append((threading.get_ident(), high_water(tx)))
        yield None
    yield found


async def test_steps_see_one_state_while_others_write(log: EventLog) -> None:
    """Between the steps of a long read others run and write, and the read sees the state that it began with."""
    reading = asyncio.ensure_future(log.read_in_steps(in_steps))
    await asyncio.sleep(0)
    assert not reading.done()
    await log.append("s", notes("c"))
    assert await log.read(high_water) == 3
    assert await reading == [(threading.get_ident(), 2)] * 3
    assert await log.read_in_steps(in_steps) == [(threading.get_ident(), 3)] * 3


async def test_other_reads_run_elsewhere_between_steps(log: EventLog) -> None:
    """While a long read is under way others use other connections."""
    go = asyncio.Event()

    def waiting(tx: Tx) -> Steps[int]:
        while not go.is_set():
            yield None
        yield high_water(tx)

    reading = asyncio.ensure_future(log.read_in_steps(waiting))
    await asyncio.sleep(0)
    assert await log.read(thread) != threading.get_ident()
    others = await log.read_in_steps(in_steps)
    assert threading.get_ident() not in {one for one, _ in others}
    go.set()
    assert await reading == 2
    assert await log.read(thread) == threading.get_ident()


async def test_cancelled_between_steps(log: EventLog) -> None:
    """A long read that is cancelled between two steps leaves its connection as it was."""
    for _ in range(20):
        reading = asyncio.ensure_future(log.read_in_steps(in_steps))
        await asyncio.sleep(0)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        assert await log.read(thread) == threading.get_ident()


async def test_steps_that_take_too_long_run_elsewhere(log: EventLog) -> None:
    """A step that is not short has the whole read run on another thread, from its start."""
    threads: list[int] = []

    def query(tx: Tx) -> Steps[int]:
        threads.append(threading.get_ident())
        yield None
        yield int(tx.fetch(_MUCH)[0][0])

    assert await log.read_in_steps(query) == 3_000_000
    assert [one == threading.get_ident() for one in threads] == [True, False]


async def test_close_waits_for_steps(tmp_path: Path) -> None:
    """A store that is closed during a long read lets it come to its end."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes("a", "b"))
        await log.high_water()
        reading = asyncio.ensure_future(log.read_in_steps(in_steps))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(log.close())
        assert [end for _, end in await reading] == [2, 2, 2]
        await closing


async def test_steps_in_memory() -> None:
    """A store in memory reads in steps too, on the one connection that it has."""
    async with opened("sqlite://") as log:
        await log.append("s", notes("a", "b"))
        assert [end for _, end in await log.read_in_steps(in_steps)] == [2, 2, 2]


async def test_transaction_left_behind_is_ended(log: EventLog) -> None:
    """What a signal between two steps has left open is ended by whoever reads or writes next, and not continued."""
    reads_of(log)._connection.execute("BEGIN")
    assert await log.read(high_water) == 2
    reads_of(log)._connection.execute("BEGIN")
    assert await log.read_in_steps(in_steps) == [(threading.get_ident(), 2)] * 3
    writer = raw(log.database._writer.driver_connection)
    for size in (float("inf"), 100.0):
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM streams")
        end = await log.high_water()
        committed = await log.transact("s", lambda _tx, _head: (notes("c"), None), size=size)
        assert [envelope.version for envelope in committed.envelopes] == [end + 1]


async def test_iterator_that_is_left_open_holds_no_state(log: EventLog) -> None:
    """A query that raises in the middle of its rows, and is remembered, does not have later reads see its state."""
    kept: list[BaseException] = []

    def query(tx: Tx) -> None:
        for _ in tx.iterate(sql("SELECT position FROM events")):
            raise KeyError

    try:
        await log.read(query)
    except KeyError as error:
        kept.append(error)
    await log.append("s", notes("c"))
    assert await log.read(high_water) == 3
    assert kept


async def test_generator_that_cannot_be_closed(log: EventLog) -> None:
    """Steps that raise when they are closed leave the connection to the next read."""

    def query(tx: Tx) -> Steps[int]:
        try:
            while True:
                yield None
        finally:
            yield high_water(tx)

    reading = asyncio.ensure_future(log.read_in_steps(query))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(RuntimeError, match="GeneratorExit"):
        await reading
    assert await log.read(thread) == threading.get_ident()


@pytest.mark.parametrize("stream_id", [None, "s"])
async def test_readers_lose_nothing_when_queries_run_twice(
    log: EventLog, monkeypatch: pytest.MonkeyPatch, stream_id: str | None
) -> None:
    """Whoever follows a stream or the log gets each event once, though each of the queries is run again."""
    run = ShortReads.run

    async def twice(short: ShortReads, query: Any) -> Any:
        await run(short, query)
        return await run(short, query)

    monkeypatch.setattr(ShortReads, "run", twice)
    monkeypatch.setattr(rows, "PAGE_EVENTS", 3)
    await log.append("s", notes(*range(20)))
    events = log.subscribe(after=0, stream_id=stream_id)
    assert [envelope.version for envelope in await take(events, 22)] == list(range(1, 23))
    assert [envelope.version for envelope in await stream(log)] == list(range(1, 23))
