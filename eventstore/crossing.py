"""What is done to the driver behind its back: a plain function run on a connection's own thread, in one crossing.

aiosqlite offers a crossing per statement; a hop costs more than most statements do. Its version is pinned, and a
contract test says when the private parts that are used here have changed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import aiosqlite
from sqlalchemy import Dialect as CoreDialect

from eventstore.dialect import Dialect
from eventstore.errors import StoreClosedError
from eventstore.statements import Row, Statement

SIZES = (64, 32, 16, 8, 4, 2)
"""How many rows are inserted by one statement: few sizes, so that the statements are found prepared."""

T = TypeVar("T")
RawConnection = sqlite3.Connection
DriverConnection = aiosqlite.Connection


async def connect(*args: Any, **options: Any) -> DriverConnection:
    """Connect as the driver does; when that fails, wait for its thread, which would outlive the event loop."""
    connection = aiosqlite.connect(*args, **options)
    connection._thread.daemon = True
    try:
        return await connection
    except (Exception, asyncio.CancelledError):
        # After a signal nothing is waited for: the thread may be one that never ends, or has not begun.
        if connection._thread.is_alive():
            await asyncio.to_thread(connection._thread.join)
        raise


def raw(connection: DriverConnection) -> RawConnection:
    """What the driver runs on its thread, for use on another one as long as nothing is handed to that."""
    _check_open(connection)
    return connection._conn


def start_on_thread(
    connection: DriverConnection, function: Callable[[RawConnection], T], done: Callable[[T], object]
) -> None:
    """Have the function run on the connection's thread, after what was handed in before; it must not raise.

    `done` is called on the event loop with its result: no future and no task stands between them, which is a turn of
    the loop less, and nothing that whoever ends all tasks of an event loop could cut off.
    """
    loop = asyncio.get_running_loop()

    def crossing() -> None:
        loop.call_soon_threadsafe(done, function(connection._conn))

    _check_open(connection)
    connection._tx.put_nowait((None, crossing))


async def run_on_thread(connection: DriverConnection, function: Callable[[RawConnection], T]) -> T:
    """Run the function on the connection's thread, and wait for its result."""

    def crossing() -> T:
        try:
            return function(connection._conn)
        except (StopIteration, asyncio.CancelledError) as error:
            # A future cannot hold the one, and the other would look like a cancellation of whoever waits.
            raise RuntimeError(f"{type(error).__name__} on the connection's thread: {error}") from error

    _check_open(connection)
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    connection._tx.put_nowait((future, crossing))
    return await future


def _check_open(connection: DriverConnection) -> None:
    if not connection._running or connection._connection is None:
        raise StoreClosedError


def nothing_pending() -> None:
    """What flushing means where no decision is pending."""


class RawTx:
    """A transaction over the driver's connection, used on one thread alone."""

    __slots__ = ("_connection", "_core", "_cursors", "dialect", "flush", "hurried", "is_here", "memo")

    def __init__(self, connection: RawConnection, dialect: Dialect, core: CoreDialect) -> None:
        self._connection = connection
        self._core = core
        self.dialect = dialect
        self.memo: dict[Any, Any] = {}
        self._cursors: list[sqlite3.Cursor] = []
        self.flush: Callable[[], None] = nothing_pending
        self.hurried = False
        self.is_here = False

    def execute(self, statement: Statement, params: Row = ()) -> None:
        """Run a statement once."""
        sql, arrange = statement.compiled(self._core)
        self._connection.execute(sql, arrange(params) if arrange else params)

    def executemany(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Run a statement once per row; no rows, no work. Rows are inserted many at a step."""
        done = 0
        # The driver hands the interpreter over before each step and waits for it again after, which on a busy event
        # loop takes milliseconds.
        for size in SIZES if len(rows) > 1 else ():
            while len(rows) - done >= size and (sql := statement.compiled_for(self._core, size)):
                self._connection.execute(sql, [*chain.from_iterable(rows[done : done + size])])
                done += size
        if done < len(rows):
            sql, arrange = statement.compiled(self._core)
            self._connection.executemany(sql, map(arrange, rows) if arrange else rows[done:])

    def fetch(self, statement: Statement, params: Row = ()) -> list[Row]:
        """All rows of a query."""
        sql, arrange = statement.compiled(self._core)
        return self._connection.execute(sql, arrange(params) if arrange else params).fetchall()

    def iterate(self, statement: Statement, params: Row = ()) -> Iterator[Row]:
        """The rows of a query one by one, read as they are asked for."""
        sql, arrange = statement.compiled(self._core)
        cursor = self._connection.execute(sql, arrange(params) if arrange else params)
        self._cursors.append(cursor)
        return iter(cursor)

    def close(self) -> None:
        """Close what was left open: an iterator keeps the state that it sees for whatever is done next."""
        for cursor in self._cursors:
            cursor.close()
        self.flush = nothing_pending


def snapshot(
    connection: RawConnection,
    dialect: Dialect,
    core: CoreDialect,
    query: Callable[[RawTx], T],
    limited: Callable[[Callable[[], T]], T] | None = None,
) -> T:
    """The result of a query on one consistent state of the database; `limited` may watch over the query alone."""
    tx = RawTx(connection, dialect, core)
    # Written out, since a context manager takes as long as a short query.
    try:
        begin_read(connection, dialect)
        return limited(lambda: query(tx)) if limited else query(tx)
    finally:
        end_read(connection, tx)


def begin_read(connection: RawConnection, dialect: Dialect) -> None:
    """Begin a transaction that reads, whatever a signal between any two steps has left behind."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.execute(dialect.begin_read)


def end_read(connection: RawConnection, tx: RawTx) -> None:
    """End a transaction that reads, and what was left open in it; one that did not begin has no end."""
    tx.close()
    if connection.in_transaction:
        connection.execute("COMMIT")
