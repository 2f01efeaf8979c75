"""The one private call of the driver, pinned to a version: what this project relies on."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
import threading
from collections.abc import AsyncIterator

import aiosqlite
import pytest

from eventstore.crossing import run_on_thread


@pytest.fixture
async def connection() -> AsyncIterator[aiosqlite.Connection]:
    """Return a connection to an empty database in memory."""
    async with aiosqlite.connect(":memory:") as connection:
        yield connection


def test_private_call_is_there() -> None:
    """The driver still has the queue of its thread, what says that it runs, and the raw connection."""
    assert isinstance(inspect.getattr_static(aiosqlite.Connection, "_conn"), property)
    assert {"_tx", "_running", "_connection", "_thread"} <= vars(aiosqlite.connect(":memory:")).keys()
    source = inspect.getsource(aiosqlite.Connection._execute)
    assert "self._tx.put_nowait((future, function))" in source


async def test_function_runs_on_the_connection_s_thread(connection: aiosqlite.Connection) -> None:
    """The function gets the raw connection, on one thread that is not the caller's."""
    threads = {await run_on_thread(connection, lambda _raw: threading.get_ident()) for _ in range(5)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert await run_on_thread(connection, lambda raw: isinstance(raw, sqlite3.Connection))
    assert await run_on_thread(connection, lambda raw: raw.execute("SELECT 7").fetchone()) == (7,)


async def test_functions_run_in_order(connection: aiosqlite.Connection) -> None:
    """Functions run in the order in which they were handed in, one at a time."""
    seen: list[int] = []
    inside = 0

    def work(number: int) -> int:
        nonlocal inside
        inside += 1
        assert inside == 1
        seen.append(number)
        inside -= 1
        return number

    assert await asyncio.gather(*(run_on_thread(connection, lambda _raw, n=n: work(n)) for n in range(100))) == [  # type: ignore[misc]
        *range(100)
    ]
    assert seen == list(range(100))


@pytest.mark.parametrize(
    "error", [ValueError, sqlite3.OperationalError, KeyError, StopIteration, asyncio.CancelledError]
)
async def test_exceptions_come_back(connection: aiosqlite.Connection, error: type[BaseException]) -> None:
    """What the function raises is raised to its caller, and the thread goes on."""

    def fail(_raw: sqlite3.Connection) -> None:
        raise error("mine")

    async with asyncio.timeout(2):
        with pytest.raises((error, RuntimeError) if issubclass(error, Exception) else RuntimeError, match="mine"):
            await run_on_thread(connection, fail)
        assert await run_on_thread(connection, lambda _raw: 7) == 7


async def test_cancelled_waiter_stops_nothing(connection: aiosqlite.Connection) -> None:
    """A function whose caller is cancelled runs to its end, before and after it has begun, and the next one runs."""
    go, seen = threading.Event(), []

    def wait(_raw: sqlite3.Connection) -> None:
        go.wait(2)
        seen.append("begun")

    begun = asyncio.ensure_future(run_on_thread(connection, wait))
    queued = asyncio.ensure_future(run_on_thread(connection, lambda _raw: seen.append("queued")))
    await asyncio.sleep(0.02)
    begun.cancel()
    queued.cancel()
    await asyncio.wait([begun, queued])
    go.set()
    async with asyncio.timeout(2):
        assert await run_on_thread(connection, lambda _raw: list(seen)) == ["begun", "queued"]


async def test_no_transaction_is_begun_behind_our_back() -> None:
    """With no isolation level the driver begins no transaction of its own."""
    async with aiosqlite.connect(":memory:", isolation_level=None) as connection:

        def write(raw: sqlite3.Connection) -> bool:
            raw.execute("CREATE TABLE t (x)")
            raw.execute("INSERT INTO t VALUES (1)")
            return raw.in_transaction

        assert await run_on_thread(connection, write) is False
