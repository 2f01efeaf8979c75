"""Wakes those who wait for events: after a commit of this process, and when another one, anywhere, has written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

from eventstore.database import Database
from eventstore.errors import EventStoreError
from eventstore.ports import Publisher
from eventstore.publisher import InProcessPublisher
from eventstore.redis_publisher import RedisPublisher

POLL_SECONDS = 0.05
CHANNEL = "log"
REMEMBERED = 1_000

Follow = Callable[[str], AsyncIterator[dict[str, Any]]]

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
    """Bells, one for each waiting reader; while there is one, other processes' writes are watched for.

    They are seen in the file, and heard of from a publisher that can be followed. Either way a bell only says that
    there may be something to read: a hint that is lost, doubled, late or nonsense loses, doubles and moves no event.
    """

    def __init__(self, database: Database, publisher: Publisher) -> None:
        self.closed = False
        self._database = database
        self._publisher = publisher
        # What an in-process publisher could tell, this process has rung its own bells for.
        follow = None if isinstance(publisher, InProcessPublisher) else getattr(publisher, "subscribe", None)
        self._follow: Follow | None = follow if callable(follow) else None
        self._told: dict[int, None] = {}
        self._bells: set[asyncio.Event] = set()
        self._nows: weakref.WeakSet[Now] = weakref.WeakSet()
        self._watch: asyncio.Task[None] | None = None

    @property
    def readers(self) -> int:
        """How many readers are waiting or reading."""
        return len(self._bells)

    def notify(self, first: int, last: int) -> None:
        """Wake every reader: this process has just written these positions."""
        self._ring()
        # Going through a set of weak references takes long even when it is empty.
        for now in self._nows or ():
            if now.first_written is None:
                now.first_written = first
        if self._follow is not None:
            self._told[last] = None
            if len(self._told) > REMEMBERED:
                del self._told[next(iter(self._told))]

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
        self._ring()

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()

    async def _watch_others(self) -> None:
        async with self._hearing_others():
            try:
                await self._look_at_others()
            finally:
                self._watch = None

    async def _look_at_others(self) -> None:
        seen: int | None = None
        # It ends by itself once nobody listens: readers that come and go quickly find it still there.
        while self._bells:
            try:
                version = await self._database.data_version()
            except EventStoreError as error:
                logger.warning("watching for other processes' writes failed, trying again: %s", error.code)
            else:
                if version != seen:
                    self._ring()
                seen = version
            await asyncio.sleep(POLL_SECONDS)

    @contextlib.asynccontextmanager
    async def _hearing_others(self) -> AsyncIterator[None]:
        if isinstance(self._publisher, RedisPublisher):
            # Also when it begins to hear, and begins again: what was told before then was told to nobody.
            with self._publisher.watch(CHANNEL, self._heard, self._ring):
                yield
        elif self._follow is not None:
            hearing = asyncio.create_task(self._hear_others(self._follow))
            try:
                yield
            finally:
                hearing.cancel()
                await asyncio.wait([hearing])
        else:
            yield

    async def _hear_others(self, follow: Follow) -> None:
        hints = follow(CHANNEL)
        try:
            async for hint in hints:
                self._heard(hint)
        except Exception as error:  # noqa: BLE001 - a publisher's trouble is not the reader's
            logger.warning("following hints failed: %s", type(error).__name__)
        finally:
            if isinstance(hints, AsyncGenerator):
                await hints.aclose()

    def _heard(self, hint: dict[str, Any]) -> None:
        # What this process has told comes back to it, and its readers were woken at once.
        position = hint.get("position")
        if not isinstance(position, int) or self._told.pop(position, self) is self:
            self._ring()
