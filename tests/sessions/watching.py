"""Watching what a store asks of its database: the statements that it runs, and the steps that they take."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from eventstore.crossing import RawTx
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
    """Count what is asked within the block, as long as only one call at a time is made."""
    work = Work()
    with pytest.MonkeyPatch.context() as patch, recorded(patch) as seen:
        await _watch(store, work)
        yield work
        await _watch(store, None)
        # The text index merges whenever the log has grown by so much, whatever the call is.
        work.statements = sum("'merge'" not in sql for sql, _ in seen)


async def _watch(store: Store, work: Work | None) -> None:
    # One call at a time uses the writing connection, and the reading one that was used last.
    handler = None if work is None else work.step
    await store.log.database.on_writer(lambda connection: connection.set_progress_handler(handler, 1))
    await store.log.read(lambda tx: _raw(tx).set_progress_handler(handler, 1))


def _raw(tx: Any) -> Any:
    return tx._connection


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
