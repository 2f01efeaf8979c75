"""Short reads on the event loop's own thread: the way to another thread and back takes longer than most reads do."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from sqlalchemy import Dialect as CoreDialect

from eventstore.crossing import RawConnection, RawTx, begin_read, end_read, snapshot
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
        self._was_over = False
        self._deadline = math.inf
        self._pace = Pace()
        self._since_turn = 0.0
        dialect.prepare_near(connection)
        dialect.break_off(connection, self._is_over)

    async def run(self, query: Callable[[RawTx], T]) -> T:
        """The result of a query in a transaction of its own; raises NotHereError."""
        self._check_free()
        result = self._step(lambda: snapshot(self._connection, self._dialect, self._core, query, self._limited))
        if self._since_turn > TURN:
            await self._give_way()
        return result

    async def run_in_steps(self, query: Callable[[RawTx], Steps[T]]) -> T:
        """The result of a query whose steps are one transaction, while others get their turns; raises NotHereError."""
        self._check_free()
        tx = RawTx(self._connection, self._dialect, self._core)
        steps = query(tx)
        self._in_use = True
        try:
            self._step(lambda: begin_read(self._connection, self._dialect))
            while (result := self._step(lambda: self._limited(steps.__next__))) is None:
                await self._give_way()
        finally:
            try:
                steps.close()
            finally:
                self._in_use = False
                end_read(self._connection, tx)
        if self._since_turn > TURN:
            await self._give_way()
        return result

    def _limited(self, function: Callable[[], T]) -> T:
        """Break off what takes too long; but never the beginning or the end of a transaction, which would stay open."""
        self._was_over = False
        self._deadline = time.perf_counter() + MOST
        try:
            return function()
        finally:
            self._deadline = math.inf

    def _is_over(self) -> bool:
        if time.perf_counter() <= self._deadline:
            return False
        self._was_over = True
        return True

    async def _give_way(self) -> None:
        self._since_turn = 0.0
        await asyncio.sleep(0)

    def _check_free(self) -> None:
        if self._in_use or self._pace.is_slow:
            raise NotHereError

    def _step(self, function: Callable[[], T]) -> T:
        start = time.perf_counter()
        try:
            return function()
        except Exception as error:
            if self._dialect.is_broken_off(error) and not self._was_over:
                # What a signal raised while it was asked whether it is over: the driver says no more of it than this.
                raise KeyboardInterrupt from error
            if self._dialect.is_broken_off(error) or self._dialect.is_busy(error):
                raise NotHereError from error
            raise
        finally:
            taken = time.perf_counter() - start
            self._since_turn += taken
            self._pace.spent(taken, MOST)
