"""The database as the log sees it: one connection that writes, others that read, each in one crossing at most."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from eventstore.crossing import RawConnection, RawTx, connect, raw, run_on_thread, snapshot, start_on_thread
from eventstore.dialect import BUSY_SECONDS, READERS, Dialect
from eventstore.errors import NotSupportedError, StoreClosedError, StoreUnavailableError
from eventstore.pace import NotHereError, Pace
from eventstore.short_reads import ShortReads, Steps

T = TypeVar("T")

MOST_COMMIT = 0.001
"""Seconds that a commit of little may take for which the event loop waits."""
COMMIT_PER_BYTE = 1e-8
"""Seconds more that it may take for each byte."""
MOST_WRITE = 0.005
"""Seconds that all of a transaction of little may take on the event loop's thread."""
WRITE_PER_BYTE = 1e-7
"""Seconds more that it may take for each byte."""


class Database:
    """An engine, its writing connection, and plain functions run inside transactions on either."""

    def __init__(self, dialect: Dialect, engine: AsyncEngine, writer: Any) -> None:
        self.dialect = dialect
        self.engine = engine
        self.closed = False
        # How many transactions `write` began: they change what the writer of events keeps in memory.
        self.writes = 0
        # What the writer's thread was handed and is done with; two counts, since each is moved by one thread alone.
        self._handed = 0
        self._done = 0
        # Whether the writing connection waits for locks, as it does on its thread.
        self._is_patient = True
        self._pace = Pace()
        self._commit_took = 0.0
        self._core = engine.dialect
        self._writer = writer
        self._watcher: Any = None
        self._checkpointer: Any = None
        self._loop = asyncio.get_running_loop()
        self._readers = asyncio.Semaphore(READERS)
        self._idle: list[Any] = []
        self._near: Any = None
        self._short: ShortReads | None = None

    @classmethod
    async def open(cls, dialect: Dialect) -> Database:
        """Connect; raises StoreUnavailableError when the database cannot be opened."""
        opening = asyncio.ensure_future(cls._open(dialect))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # Cut off half-way it would leave connections behind, with their threads.
            with contextlib.suppress(StoreUnavailableError):
                await (await opening).close()
            raise

    @classmethod
    async def _open(cls, dialect: Dialect) -> Database:
        engine = dialect.create_engine(connect)
        try:
            writer: Any = await engine.raw_connection()
            await run_on_thread(writer.driver_connection, dialect.prepare_writer)
        except Exception as error:
            await engine.dispose()
            typed = dialect.translate(error)
            if typed is None:
                raise
            raise typed from error
        return cls(dialect, engine, writer)

    async def prepare_file(self) -> None:
        """Set what the database itself keeps of our settings; raises StoreUnavailableError when it stays locked."""
        # The first processes of a new file do this at once, and it does not wait for a lock.
        patiently = AsyncRetrying(
            retry=retry_if_exception(self.dialect.is_busy),
            stop=stop_after_delay(10),
            wait=wait_random_exponential(multiplier=0.01, max=0.2),
            reraise=True,
        )
        with self._translated():
            await patiently(self.on_writer, self.dialect.prepare_file)

    async def read(self, query: Callable[[RawTx], T]) -> T:
        """Run a plain function on one consistent state of the database; it must not write, and may be run again."""
        self.check_usable()
        if self._short is not None:
            with contextlib.suppress(NotHereError), self._translated():
                return await self._short.run(query)
        return await self._read_on_thread(query)

    async def read_in_steps(self, query: Callable[[RawTx], Steps[T]]) -> T:
        """Run a query that may be long on one consistent state, as `read` does, in steps between which others run."""
        self.check_usable()
        if self._short is not None:
            with contextlib.suppress(NotHereError), self._translated():
                async with self._readers:
                    return await self._short.run_in_steps(query)
        return await self._read_on_thread(lambda tx: _to_the_end(query(tx)))

    async def read_on_writer(self, query: Callable[[RawTx], T]) -> T:
        """Run a query on the writing connection, between its transactions; before others open a file that changes."""
        with self._translated():
            return await self.on_writer(partial(snapshot, dialect=self.dialect, core=self._core, query=query))

    async def write(self, work: Callable[[RawTx], T]) -> T:
        """Run a plain function in one writing transaction: committed when it returns, rolled back when it raises."""

        def transaction(connection: RawConnection) -> T:
            self.writes += 1
            with self.transaction(connection) as tx:
                return work(tx)

        return await self.on_writer(transaction)

    async def on_writer(self, function: Callable[[RawConnection], T]) -> T:
        """Run a plain function on the writing connection's thread; transactions are its own affair."""
        self.check_usable()
        return await run_on_thread(self._writer.driver_connection, self._counted(function))

    def start_on_writer(self, function: Callable[[RawConnection], T], done: Callable[[T], object]) -> None:
        """Have a plain function that never raises run on the writing connection's thread; `done` gets its result."""
        self.check_usable()
        start_on_thread(self._writer.driver_connection, self._counted(function), done)

    def write_here(self, function: Callable[[RawConnection], T], size: float) -> T:
        """Run a plain function that writes about so many bytes, on the event loop's own thread.

        It finds a writing transaction that has begun. Raises NotHereError, before anything was done, when the disk was
        slow lately, the writing connection's thread is at work or another process has the lock.
        """
        if self.dialect.in_memory or self._handed != self._done or self._pace.is_slow:
            raise NotHereError
        connection = raw(self._writer.driver_connection)
        start = time.perf_counter()
        # A signal may come between any two steps.
        try:
            try:
                self._begin_write(connection, patient=False)
            except Exception as error:
                raise NotHereError from error
            result = function(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        self._pace.spent(self._commit_took, MOST_COMMIT + size * COMMIT_PER_BYTE)
        self._pace.spent(time.perf_counter() - start, MOST_WRITE + size * WRITE_PER_BYTE)
        return result

    @contextlib.contextmanager
    def transaction(self, connection: RawConnection, *, has_begun: bool = False) -> Iterator[RawTx]:
        """A writing transaction that has the write lock from its start, so that no later statement waits for it."""
        with self._translated():
            if not has_begun:
                self._begin_write(connection, patient=True)
            tx = RawTx(connection, self.dialect, self._core)
            tx.is_here = has_begun
            try:
                yield tx
                start = time.perf_counter()
                connection.execute("COMMIT")
                self._commit_took = time.perf_counter() - start
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                tx.close()

    async def data_version(self) -> int:
        """A number that changes when anybody else has written, seen from a connection kept for this."""
        if self._watcher is None:
            self._watcher = await self._checkout()
        return await run_on_thread(self._watcher.driver_connection, self.dialect.data_version)

    async def checkpoint(self) -> int:
        """Copy the write-ahead log into the database while the writer goes on; returns the pages that the log holds."""
        if self._checkpointer is None:
            self._checkpointer = await self._checkout()
        with self._translated():
            return await run_on_thread(self._checkpointer.driver_connection, self.dialect.checkpoint)

    async def close(self) -> None:
        """Close every connection; a second call does nothing."""
        if not self.closed:
            self.closed = True
            # Reads that are under way give their connections back first; those behind them find the store closed.
            for _ in range(READERS):
                await self._readers.acquire()
            for connection in (self._writer, self._watcher, self._checkpointer, self._near, *self._idle):
                if connection is not None:
                    connection.close()
            self._idle.clear()
            await self.engine.dispose()
            for _ in range(READERS):
                self._readers.release()

    def check_usable(self) -> None:
        """Raise StoreClosedError, or NotSupportedError in another event loop than the one it was opened in."""
        if self.closed:
            raise StoreClosedError
        if asyncio.get_running_loop() is not self._loop:
            raise NotSupportedError("a store in another event loop than the one it was opened in")

    async def _checkout(self) -> Any:
        if self.closed:
            raise StoreClosedError
        opening = asyncio.ensure_future(self.engine.raw_connection())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # Cut off while it opens it would be lost, with its thread: the next reader gets it.
            with contextlib.suppress(Exception):
                self._idle.append(await opening)
            raise
        except Exception as error:
            raise self.dialect.translate(error) or StoreUnavailableError(str(error)) from error

    def _begin_write(self, connection: RawConnection, *, patient: bool) -> None:
        if connection.in_transaction:
            # Left behind by a signal; it may hold half a group.
            connection.execute("ROLLBACK")
        if self._is_patient is not patient:
            self.dialect.wait(connection, BUSY_SECONDS if patient else 0)
            self._is_patient = patient
        connection.execute(self.dialect.begin_write)

    def _counted(self, function: Callable[[RawConnection], T]) -> Callable[[RawConnection], T]:
        self._handed += 1

        def counted(connection: RawConnection) -> T:
            try:
                return function(connection)
            finally:
                self._done += 1

        return counted

    async def _read_on_thread(self, query: Callable[[RawTx], T]) -> T:
        if self.dialect.in_memory:
            return await self.read_on_writer(query)
        async with self._readers:
            # Kept out of the pool between reads: taking one from it costs more than most reads do.
            connection = self._idle.pop() if self._idle else await self._checkout()
            try:
                if self.closed:
                    raise StoreClosedError
                with self._translated():
                    run = partial(snapshot, dialect=self.dialect, core=self._core, query=query)
                    result = await run_on_thread(connection.driver_connection, run)
                if self._short is None:
                    # Not one whose read was cancelled, which may go on.
                    self._near, connection = connection, None
                    self._short = ShortReads(raw(self._near.driver_connection), self.dialect, self._core)
                return result
            finally:
                if connection is not None:
                    self._idle.append(connection)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            typed = self.dialect.translate(error)
            if typed is None:
                raise
            raise typed from error


def _to_the_end(steps: Steps[T]) -> T:
    return next(result for result in steps if result is not None)
