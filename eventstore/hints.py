"""Wakes those who wait for events: after a commit of this process, and when another process has written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Iterator

from eventstore.database import Database
from eventstore.errors import EventStoreError

POLL_SECONDS = 0.05

logger = logging.getLogger(__name__)


class Now:
    """The moment of a call: the end of the log then, whoever writes meanwhile."""

    def __init__(self, reading: asyncio.Task[int]) -> None:
        self.first_written: int | None = None
        self._reading = reading
        # Nobody may ever ask, and then a failed reading is nobody's news.
        reading.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def position(self) -> int:
        """The last position before the call: what this process has written since does not count."""
        end = await self._reading
        return end if self.first_written is None else min(end, self.first_written - 1)


class Hints:
    """Bells, one for each waiting reader; while there is one, other processes' writes are watched for."""

    def __init__(self, database: Database) -> None:
        self.closed = False
        self._database = database
        self._bells: set[asyncio.Event] = set()
        self._nows: weakref.WeakSet[Now] = weakref.WeakSet()
        self._watch: asyncio.Task[None] | None = None

    @property
    def readers(self) -> int:
        """How many readers are waiting or reading."""
        return len(self._bells)

    def notify(self, first: int | None = None) -> None:
        """Wake every reader; `first` is the first position that this process has just written."""
        for bell in self._bells:
            bell.set()
        for now in self._nows:
            if now.first_written is None:
                now.first_written = first

    def add(self, now: Now) -> Now:
        """Tell a moment about what is written after it."""
        self._nows.add(now)
        return now

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """A bell that rings after every write, as long as the context lasts."""
        bell = asyncio.Event()
        self._bells.add(bell)
        if self._watch is None and not (self.closed or self._database.dialect.in_memory):
            self._watch = asyncio.create_task(self._watch_others())
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    async def close(self) -> None:
        """Wake every reader for the last time."""
        self.closed = True
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
        self.notify()

    async def _watch_others(self) -> None:
        seen: int | None = None
        # It ends by itself once nobody listens: readers that come and go quickly find it still there.
        while self._bells:
            try:
                version = await self._database.data_version()
            except EventStoreError as error:
                logger.warning("watching for other processes' writes failed, trying again: %s", error.code)
            else:
                if version != seen:
                    self.notify()
                seen = version
            await asyncio.sleep(POLL_SECONDS)
        self._watch = None
