"""Short reads on the event loop's own thread: the way to another thread and back takes longer than most reads do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from sqlalchemy import Dialect as CoreDialect

from eventstore.crossing import RawConnection, RawTx, snapshot
from eventstore.dialect import Dialect
from eventstore.pace import NotHereError, Pace

T = TypeVar("T")
Steps = Generator[T | None, None, None]
"""A read in steps of about a millisecond: it yields None between them, and its result in the end."""

MOST: Final = 0.005
"""Seconds after which a step is no longer short: a thread that computes keeps the interpreter as long as that."""
TURN: Final = 0.001
"""Seconds of short reads after which others get their turn, though nobody has waited."""


class ShortReads:
    """Runs reads where they are asked for, as long as they are short, on a connection kept for this.

    One that takes too long is broken off; after that, and when a disk was slow, all reads go to other threads for a
    while. A lock is never waited for. That whoever never waits gives way now and then is taken from Tokio's budgets.
    """

    def __init__(self, connection: RawConnection, dialect: Dialect, core: CoreDialect) -> None:
        self._connection = connection
        self._dialect = dialect
        self._core = core
        self._in_use = False
        self._deadline = 0.0
        self._pace = Pace()
        self._since_turn = 0.0
        dialect.wait(connection, 0)
        dialect.break_off(connection, lambda: time.perf_counter() > self._deadline)

    async def run(self, query: Callable[[RawTx], T]) -> T:
        """The result of a query in a transaction of its own; raises NotHereError."""
        self._check_free()
        result = self._step(lambda: snapshot(self._connection, self._dialect, self._core, query))
        if self._since_turn > TURN:
            await self._give_way()
        return result

    async def run_in_steps(self, query: Callable[[RawTx], Steps[T]]) -> T:
        """The result of a query whose steps are one transaction, while others get their turns; raises NotHereError."""
        self._check_free()
        self._step(lambda: self._connection.execute(self._dialect.begin_read))
        steps = query(RawTx(self._connection, self._dialect, self._core))
        self._in_use = True
        try:
            while (result := self._step(steps.__next__)) is None:
                await self._give_way()
        finally:
            steps.close()
            self._in_use = False
            self._connection.execute("COMMIT")
        if self._since_turn > TURN:
            await self._give_way()
        return result

    async def _give_way(self) -> None:
        self._since_turn = 0.0
        await asyncio.sleep(0)

    def _check_free(self) -> None:
        if self._in_use or self._pace.is_slow:
            raise NotHereError

    def _step(self, function: Callable[[], T]) -> T:
        start = time.perf_counter()
        self._deadline = start + MOST
        try:
            return function()
        except Exception as error:
            if self._dialect.is_broken_off(error) or self._dialect.is_busy(error):
                raise NotHereError from error
            raise
        finally:
            taken = time.perf_counter() - start
            self._since_turn += taken
            self._pace.spent(taken, MOST)
