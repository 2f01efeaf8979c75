"""What the tests of the log share: logs that open quickly, events to append, a projection that counts."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Column, Integer, MetaData, Table, Text, bindparam, insert, select

from eventstore.dialect import BigKey, dialect_of
from eventstore.envelope import Envelope
from eventstore.events import Event, LeafSelected, MessageAppended, SessionCreated
from eventstore.limits import Limits
from eventstore.log import EventLog, open_log
from eventstore.ports import Clock, Projection, Publisher, Tx
from eventstore.publisher import InProcessPublisher
from eventstore.statements import Row, Statement
from projections import Projection as TableProjection

MEMORY = "sqlite://"
NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


def file_at(folder: Path, name: str = "log.db") -> str:
    """Return the URL of a database file in a folder."""
    return f"sqlite:///{folder / name}"


@contextlib.asynccontextmanager
async def opened(
    url: str,
    *projections: Projection,
    publisher: Publisher | None = None,
    clock: Clock | None = None,
    create_tables: bool = True,
) -> AsyncIterator[EventLog]:
    """Open a log with these projections, and close it at the end of the block."""
    log = await open_log(
        dialect_of(url),
        projections,
        publisher=publisher or InProcessPublisher(),
        clock=clock,
        limits=Limits(),
        create_tables=create_tables,
    )
    try:
        yield log
    finally:
        await log.close()


def note(text: object) -> LeafSelected:
    """Return a small event that can be told from others by a text."""
    return LeafSelected(message_id=str(text))


def notes(*texts: object) -> list[Event]:
    """Return a small event for each text."""
    return [note(text) for text in texts]


def created(name: str) -> SessionCreated:
    """Return the event that creates a session of this name."""
    return SessionCreated(name=name)


def message(id_: str, text: str = "hello", parent: str | None = None, **more: Any) -> MessageAppended:
    """Return the event that appends a message of a user."""
    data = {"id": id_, "role": "user", "parts": [{"type": "text", "text": text}], **more}
    return MessageAppended(raw=msgspec.Raw(json.dumps(data).encode()), parent_id=parent)


def text_of(envelope: Envelope) -> str:
    """Return what tells a small event from others."""
    assert isinstance(envelope.event, LeafSelected)
    return envelope.event.message_id


def texts_of(envelopes: Sequence[Envelope]) -> list[str]:
    """Return what tells small events from others, in order."""
    return [text_of(envelope) for envelope in envelopes]


async def stream(log: EventLog, stream_id: str = "s", **bounds: Any) -> list[Envelope]:
    """Return the events of a stream."""
    return [envelope async for envelope in log.read_stream(stream_id, **bounds)]


async def everything(log: EventLog, **bounds: Any) -> list[Envelope]:
    """Return the events of the log."""
    return [envelope async for envelope in log.read_all(**bounds)]


async def take(events: AsyncIterator[Envelope], count: int, *, within: float = 5) -> list[Envelope]:
    """Return the next events of an iterator that never ends by itself."""
    async with asyncio.timeout(within):
        return [await anext(events) for _ in range(count)]


async def is_idle(events: AsyncIterator[Envelope], seconds: float = 0.05) -> bool:
    """Tell whether an iterator gives nothing for a while; it cannot be used afterwards."""
    try:
        async with asyncio.timeout(seconds):
            await anext(events)
    except TimeoutError:
        return True
    return False


async def eventually(holds: Any, *, within: float = 2) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - most conditions have no event to wait for
            await asyncio.sleep(0.005)


async def threads_left(before: int) -> int:
    """Return how many threads there are more than before, once those that are ending have ended."""
    with contextlib.suppress(TimeoutError):
        await eventually(lambda: threading.active_count() <= before)
    return max(0, threading.active_count() - before)


def sql(text: str, *names: str) -> Statement:
    """Return a statement of plain SQL."""
    from sqlalchemy import text as plain

    return Statement(plain(text), *names)


metadata = MetaData()
tallies = Table(
    "tallies",
    metadata,
    Column("position", BigKey, primary_key=True, autoincrement=False),
    Column("stream_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
)
_INSERT = Statement(insert(tallies), *tallies.columns.keys())
_OF_STREAM = Statement(
    select(tallies.c.text).where(tallies.c.stream_id == bindparam("stream_id")).order_by(tallies.c.position),
    "stream_id",
)


class Tally(TableProjection):
    """A row for each small event; fails on the text that it was told to fail on."""

    name = "tally"
    handles = (LeafSelected,)
    tables = (tallies,)

    def __init__(self, fails_on: str = "", error: type[Exception] = RuntimeError) -> None:
        self.fails_on = fails_on
        self.error = error
        self.groups: list[int] = []

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Insert a row per event, and fail afterwards if one of them is the bad one."""
        readable = [envelope for envelope in envelopes if isinstance(envelope.event, LeafSelected)]
        self.groups.append(len(readable))
        tx.executemany(_INSERT, [(e.position, e.stream_id, e.version, text_of(e)) for e in readable])
        if self.fails_on and self.fails_on in texts_of(readable):
            raise self.error(self.fails_on)


def tallied(tx: Tx, stream_id: str = "s") -> list[str]:
    """Return what the tally holds of a stream."""
    return [text for (text,) in tx.fetch(_OF_STREAM, (stream_id,))]


def rows_of(log_file: Path, query: str) -> list[Row]:
    """Return the rows of a query on a database file, read beside whoever has it open."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(log_file)) as connection:
        return connection.execute(query).fetchall()


@contextlib.contextmanager
def write_lock(log_file: Path) -> Iterator[None]:
    """Hold a database file's write lock from a connection of its own."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(log_file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
