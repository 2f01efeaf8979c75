"""Checkpoints beside the writer: the write-ahead log goes into the database while appends go on."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from eventstore.database import Database
from eventstore.errors import EventStoreError

EVERY: Final = 1_000
"""Pages after which a checkpoint is started; how many a commit writes is estimated."""
PAGES_PER_COMMIT: Final = 16
MOST: Final = 4_000
"""Pages that the log may hold before it is brought to its end, so that it is written from its start again."""

logger = logging.getLogger(__name__)


class Checkpoints:
    """Starts a checkpoint now and then, one at a time, on a connection of its own.

    A checkpoint that appends go on beside never reaches the log's end, and the log would grow; so once in a while what
    is left of it, which is little by then, is copied on the writer's connection, between two groups. Should all this
    fail, the writer's own limit is reached, and SQLite does its checkpoints within commits.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pages = 0
        self._running: asyncio.Task[None] | None = None

    def committed(self, events: int) -> None:
        """Count a commit of so many events; called on the event loop."""
        self._pages += PAGES_PER_COMMIT + events
        if self._pages >= EVERY and self._running is None and not self._database.dialect.in_memory:
            self._pages = 0
            self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Wait for the one that is running."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            if await self._database.checkpoint() >= MOST:
                await self._database.on_writer(self._database.dialect.checkpoint)
        except EventStoreError as error:
            logger.warning("a checkpoint failed, the next one will do its work: %s", error.code)
        finally:
            self._running = None
