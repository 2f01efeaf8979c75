"""Watching what a store asks of its database: the statements that it runs, and the steps that they take."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest

from eventstore import database
from eventstore.crossing import RawTx, raw
from eventstore.statements import Row, Statement
from sessions import Store


class Work(msgspec.Struct):
    """What was asked of a database: how many statements, and how many steps of its virtual machine."""

    statements: int = 0
    steps: int = 0

    def step(self) -> int:
        """Count a step, and let the statement go on."""
        self.steps += 1
        return 0


@contextlib.asynccontextmanager
async def working(store: Store) -> AsyncIterator[Work]:
    """Count what is asked within the block, as long as only one call at a time is made, on a disk that is quick."""
    work = Work()
    with pytest.MonkeyPatch.context() as patch, recorded(patch) as seen:
        patch.setattr(database, "MOST_COMMIT", 60.0)
        patch.setattr(database, "MOST_WRITE", 60.0)
        store.log.database._pace._resume_at = 0.0
        await settled(store)
        await _watch(store, work)
        yield work
        await _watch(store, None)
        # The text index merges whenever the log has grown by so much, whatever the call is.
        work.statements = sum("'merge'" not in sql for sql, _ in seen)


async def _watch(store: Store, work: Work | None) -> None:
    handler = None if work is None else work.step
    await on_connections(store, lambda connection: connection.set_progress_handler(handler, 1))


async def settled(store: Store) -> None:
    """Wait for what the writer does between groups."""
    # It is handed over behind those who are woken by their answers.
    await asyncio.sleep(0)
    await store.log.database.on_writer(lambda _: None)


async def on_connections(store: Store, do: Callable[[sqlite3.Connection], object]) -> None:
    """Do something to the connections that one call at a time uses: that which writes, that of short reads, a reader.

    No connection may be touched while another thread uses it.
    """
    database = store.log.database
    # As the first read does, whose connection is the one of short reads from then on; the next opens another one.
    for _ in range(2):
        await database._read_on_thread(lambda _: None)
    await database.on_writer(do)
    for connection in (database._near, *database._idle):
        if connection is not None:
            do(raw(connection.driver_connection))


@contextlib.contextmanager
def recorded(patch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Row]]]:
    """Note every statement with its parameters that is run within the block."""
    seen: list[tuple[str, Row]] = []

    def note(tx: RawTx, statement: Statement, params: Row) -> None:
        sql, arrange = statement.compiled(tx._core)
        seen.append((sql, arrange(params) if arrange else params))

    def noting(name: str) -> Any:
        run = getattr(RawTx, name)

        def noted(tx: RawTx, statement: Statement, params: Any = ()) -> Any:
            if name != "executemany":
                note(tx, statement, params)
            elif params:
                note(tx, statement, params[0])
            return run(tx, statement, params)

        return noted

    for name in ("execute", "executemany", "fetch", "iterate"):
        patch.setattr(RawTx, name, noting(name))
    yield seen
