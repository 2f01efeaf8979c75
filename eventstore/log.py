"""The event log: append with a decision, read back page by page, follow live."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from eventstore import migrations, rows
from eventstore.arguments import LAST, check_number, check_types, checked_events, checked_ids
from eventstore.database import Database
from eventstore.decoding import decode_json
from eventstore.dialect import Dialect
from eventstore.envelope import Envelope
from eventstore.errors import InvalidArgumentError, StoreClosedError
from eventstore.events import Event
from eventstore.expected import ANY, ExpectedVersion, check_argument
from eventstore.group import apply
from eventstore.heads import Committed, Decide, Head, Proposal
from eventstore.hints import CHANNEL, Hints, Now
from eventstore.limits import Limits, check_id, encode_json
from eventstore.ports import Clock, Derived, Projection, Publisher, Tx
from eventstore.publisher import InProcessPublisher
from eventstore.redis_publisher import RedisPublisher
from eventstore.short_reads import Steps
from eventstore.upcasters import UPCASTERS
from eventstore.writer import Writer

T = TypeVar("T")

BESIDE = 1_024
"""Bytes that are written with an event beside its content, about; for the `size` of `transact`."""

logger = logging.getLogger(__name__)


class EventLog:
    """An append-only log of events in streams, with inline projections; made by `open_log`.

    Versions count a stream's events from 1 without holes; positions rise over the whole log.
    """

    def __init__(
        self,
        database: Database,
        projections: Sequence[Projection],
        publisher: Publisher,
        *,
        clock: Clock | None,
        limits: Limits,
    ) -> None:
        self.database = database
        self.projections = tuple(projections)
        self.publisher = publisher
        self.limits = limits
        self._hints = Hints(database, publisher)
        self._writer = Writer(database, self.projections, clock, self._committed)
        self._publishing: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None

    async def transact(
        self,
        stream_id: str,
        decide: Decide,
        *,
        expected: ExpectedVersion = ANY,
        metadata: dict[str, Any] | None = None,
        size: float = math.inf,
    ) -> Committed:
        """Append what `decide(tx, head)` returns, in the transaction that it read in.

        `decide` is a plain function that only reads, may run again, and returns (events, result); an event may come
        with its id as a pair, and a dict gives events for several streams. Nothing but a typed error of its own comes
        out of it. `size` says about how many bytes it will append when that is a matter of microseconds: then it may be
        done without going to another thread. Raises VersionConflictError when the stream is not at the expected
        version, and DuplicateEventError when an event id stands for another event already; then nothing was written.
        """
        check_argument(expected)
        if metadata is not None and not isinstance(metadata, dict):
            raise InvalidArgumentError("metadata", f"must be a dict, not {type(metadata).__name__}")
        stream_id = check_id(stream_id, "stream_id", self.limits)
        encoded = encode_json(metadata, self.limits, "metadata") if metadata else b""
        clean = decode_json(encoded) if encoded else {}
        return await self._writer.submit(stream_id, decide, expected, clean, size + len(encoded))

    async def append(
        self,
        stream_id: str,
        events: Sequence[Event],
        *,
        expected: ExpectedVersion = ANY,
        metadata: dict[str, Any] | None = None,
        event_ids: Sequence[str] | None = None,
    ) -> Committed:
        """Append events, all or none; with `event_ids` a repeat returns what the first append wrote.

        Raises VersionConflictError and DuplicateEventError as `transact` does, and InvalidArgumentError for an event
        that could not be read back.
        """
        proposal: Proposal = checked_events(events)
        if event_ids is not None:
            proposal = list(zip(events, checked_ids(event_ids, events, self.limits), strict=True))

        def as_given(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
            return proposal, None

        return await self.transact(stream_id, as_given, expected=expected, metadata=metadata)

    def written(self, stream_id: str) -> int | None:
        """The version that this process knows a stream to be at: another one once it has written to it."""
        return self._writer.known_version(stream_id)

    async def read(self, query: Callable[[Tx], T]) -> T:
        """Run a plain function on one consistent state of the database; it only reads, and may be run again."""
        return await self.database.read(query)

    async def read_in_steps(self, query: Callable[[Tx], Steps[T]]) -> T:
        """Run a query that may read much, as `read` does.

        So that others can run, it yields None about every millisecond; and its result in the end.
        """
        return await self.database.read_in_steps(query)

    async def read_stream(
        self, stream_id: str, *, from_version: int = 1, to_version: int | None = None, backwards: bool = False
    ) -> AsyncGenerator[Envelope, None]:
        """The events of a stream between two versions, both included, oldest first or newest first; page by page."""
        stream_id = check_id(stream_id, "stream_id", self.limits)
        check_number(from_version, "from_version")
        if to_version is not None:
            check_number(to_version, "to_version")
        stream_no, version = await self.read(lambda tx: rows.find_stream(tx, stream_id))
        low, high = max(from_version, 1), version if to_version is None else min(to_version, version)
        while low <= high:
            query = partial(rows.page_of_stream, stream_no=stream_no, low=low, high=high, backwards=backwards)
            page, last = await self.read(query)
            for envelope in page:
                yield envelope
            if last is None:
                return
            low, high = (low, last - 1) if backwards else (last + 1, high)

    async def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncGenerator[Envelope, None]:
        """The events of all streams after a position, in position order, page by page; `types` keeps some types."""
        check_number(after, "after")
        check_types(types)
        if limit is not None:
            check_number(limit, "limit")
        left = limit
        while left is None or left > 0:
            page, last = await self.read(partial(rows.page_of_all, after=after, types=types))
            for envelope in page[:left]:
                yield envelope
            if last == after:
                return
            after, left = last, None if left is None else left - len(page)

    def subscribe(
        self, *, after: int | None = None, stream_id: str | None = None, types: Collection[str] | None = None
    ) -> AsyncGenerator[Envelope, None]:
        """Every event after a position, history first, then live: each once, in order, until the store is closed.

        `after=0` is from the start, `None` from the moment of this call; a position beyond the end waits for it.
        Raises StoreClosedError for a store that is closed already.
        """
        check_types(types)
        if stream_id is None:
            return self._follow(
                self._start(after), lambda at: self.read(partial(rows.page_of_all, after=at, types=types))
            )
        stream_id = check_id(stream_id, "stream_id", self.limits)
        return self._follow(self._start(after), self._stream_pages(stream_id, types, None))

    def subscribe_stream(self, stream_id: str, *, after_version: int) -> AsyncGenerator[Envelope, None]:
        """Every event of a stream after a version, as `subscribe` gives them after a position."""
        check_number(after_version, "after_version")
        return self._follow(self._start(0), self._stream_pages(stream_id, None, after_version))

    def _start(self, after: int | None) -> Now | int:
        if self.database.closed:
            raise StoreClosedError
        if after is not None:
            check_number(after, "after")
            return after
        return self._hints.add(Now(asyncio.ensure_future(self.high_water())))

    async def stream_version(self, stream_id: str) -> int:
        """The version that a stream is at; 0 when it is empty."""
        wanted = check_id(stream_id, "stream_id", self.limits)
        _, version = await self.read(lambda tx: rows.find_stream(tx, wanted))
        return version

    async def high_water(self) -> int:
        """The highest position at or below which nothing new can become visible; 0 for an empty log."""
        return await self.read(rows.high_water)

    async def close(self) -> None:
        """Commit what is waiting, end every iterator, close the connections; a second call waits for the first.

        It goes on to its end when the caller is cancelled, so that nobody is left waiting and nothing open.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._writer.close()
            await self._hints.close()
            await asyncio.gather(*self._publishing)
        finally:
            await self.database.close()

    def _stream_pages(
        self, stream_id: str, types: Collection[str] | None, reached: int | None
    ) -> Callable[[int], Awaitable[tuple[list[Envelope], int]]]:

        def query(tx: Tx, position: int) -> tuple[list[Envelope], int, int | None]:
            stream_no, version = rows.find_stream(tx, stream_id)
            begin = reached
            if begin is None:
                if rows.high_water(tx) < position:
                    return [], position, None
                begin = rows.version_at(tx, stream_no, version, position)
            page, last = rows.page_of_stream(tx, stream_no, begin + 1, LAST)
            if last is None:
                return [], position, begin
            wanted = [envelope for envelope in page if types is None or envelope.type in types]
            return wanted, page[-1].position, last

        async def next_page(position: int) -> tuple[list[Envelope], int]:
            # Outside the query, which may be run again.
            nonlocal reached
            page, last, reached = await self.read(lambda tx: query(tx, position))
            return page, last

        return next_page

    async def _follow(
        self, start: Now | int, next_page: Callable[[int], Awaitable[tuple[list[Envelope], int]]]
    ) -> AsyncGenerator[Envelope, None]:
        # A store that is closed during a read is the end, as it is for those who wait.
        with self._hints.listening() as bell, contextlib.suppress(StoreClosedError):
            position = start if isinstance(start, int) else await start.position()
            while not self._hints.closed:
                # Cleared before reading, so that a write during the read rings again.
                bell.clear()
                page, last = await next_page(position)
                for envelope in page:
                    yield envelope
                if last == position:
                    await bell.wait()
                position = last

    def _committed(self, first: int, last: int) -> None:
        self._hints.notify(first, last)
        hint = {"position": last}
        if isinstance(self.publisher, InProcessPublisher | RedisPublisher):
            # Ours take it without a task, which is one turn of the event loop sooner.
            if self.publisher.listening(CHANNEL):
                self.publisher.hand(CHANNEL, hint)
            return
        task = asyncio.ensure_future(self._publish(hint))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self, hint: dict[str, Any]) -> None:
        try:
            await self.publisher.publish(CHANNEL, hint)
        except Exception as error:  # noqa: BLE001 - a publisher's trouble is not the append's
            logger.warning("a hint was not published: %s", type(error).__name__)


async def open_log(
    dialect: Dialect,
    projections: Sequence[Projection],
    *,
    publisher: Publisher,
    clock: Clock | None = None,
    limits: Limits,
    create_tables: bool = True,
) -> EventLog:
    """Connect, bring the tables up to this version, and start the writer.

    Raises SchemaVersionError for tables of another version, UpcasterError for steps that lead nowhere, and
    StoreUnavailableError when the database cannot be opened.
    """
    UPCASTERS.check()
    database = await Database.open(dialect)
    try:
        look = partial(migrations.missing, wanted=projections, may_create=create_tables)
        is_missing = await database.read_on_writer(look)
        await database.prepare_file()
        if is_missing:
            await database.write(lambda tx: _prepare(tx, projections))
    except BaseException:
        await database.close()
        raise
    return EventLog(database, projections, publisher, clock=clock, limits=limits)


def _prepare(tx: Tx, projections: Sequence[Projection]) -> None:
    fold(tx, migrations.migrate(tx, projections))


def fold(tx: Tx, projections: Sequence[Projection], progress: Callable[[int], object] | None = None) -> int:
    """Fill projections that are empty from the whole log, or from those that are filled by it.

    `progress` hears positions. Returns the number of events.
    """
    position = count = 0
    folded = [projection for projection in projections if not isinstance(projection, Derived)]
    while True:
        page, last = rows.page_of_all(tx, position, None)
        if last == position:
            break
        for projection in folded:
            apply(tx, projection, page)
        position, count = last, count + len(page)
        if progress:
            progress(position)
    for projection in projections:
        if isinstance(projection, Derived):
            projection.fill(tx)
    return count
