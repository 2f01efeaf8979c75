"""The one writer of a process: it drains what is waiting and commits it as a group, in one crossing."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from eventstore.checkpoints import Checkpoints
from eventstore.crossing import RawConnection, RawTx
from eventstore.database import Database
from eventstore.errors import EventStoreError, StoreClosedError, StoreUnavailableError
from eventstore.expected import ExpectedVersion
from eventstore.group import Failure, Group, GroupFailedError, catch_up
from eventstore.heads import MARK_STALE, Committed, Decide, Heads
from eventstore.pace import NotHereError
from eventstore.ports import Clock, Deferred, Projection

MAX_GROUP = 512
MOST_HERE = 256 << 10
"""Bytes that may be written on the event loop's own thread at once: some milliseconds."""
RETRY_AFTER = 256
"""Events after which a deferred projection that could not catch up tries again."""

logger = logging.getLogger(__name__)


class Request(msgspec.Struct, frozen=True, eq=False):
    """One caller's wish to append, waiting for its turn."""

    stream_id: str
    decide: Decide
    expected: ExpectedVersion
    metadata: dict[str, Any]
    size: float
    answer: asyncio.Future[Committed]


class Writer:
    """Queues requests and commits them in groups; each caller gets its own result or its own error.

    `on_commit` is called on the event loop after a group with the first and the last position that it wrote.
    """

    def __init__(
        self,
        database: Database,
        projections: Sequence[Projection],
        clock: Clock | None,
        on_commit: Callable[[int, int], None],
    ) -> None:
        self._database = database
        self._projections = projections
        self._deferred = [projection for projection in projections if isinstance(projection, Deferred)]
        self._clock = clock
        self._on_commit = on_commit
        self._checkpoints = Checkpoints(database)
        self._heads = Heads([projection.name for projection in projections])
        self._waiting: collections.deque[Request] = collections.deque()
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._written: list[tuple[int, int]] = []
        self._due = 0
        self._catch_up_from = 0

    async def submit(
        self, stream_id: str, decide: Decide, expected: ExpectedVersion, metadata: dict[str, Any], size: float
    ) -> Committed:
        """Wait until the request was committed, or raise what became of it.

        A caller that is cancelled leaves its append either whole or not there. `size` are the bytes that deciding and
        appending are about, infinite for what may take long.
        """
        if self._closing:
            raise StoreClosedError
        self._database.check_usable()
        answer: asyncio.Future[Committed] = self._loop.create_future()
        self._waiting.append(Request(stream_id, decide, expected, metadata, size, answer))
        if self._idle.is_set():
            self._idle.clear()
            # Not at once: others that are ready to run may want to be in the same group.
            self._loop.call_soon(self._start)
        return await answer

    def known_version(self, stream_id: str) -> int | None:
        """The version that a stream was at when this process last wrote to it; None when that is not known."""
        head = self._heads.known.get(stream_id)
        return None if head is None else head.version

    async def close(self) -> None:
        """Commit what is waiting, then stop."""
        self._closing = True
        await self._idle.wait()
        await self._checkpoints.close()

    # Callbacks, not a task: at the end of a program all its tasks are cancelled, and some append on their way out.

    def _start(self) -> None:
        requests: list[Request] = []
        while self._waiting and len(requests) < MAX_GROUP:
            request = self._waiting.popleft()
            if not request.answer.done():
                requests.append(request)
        if not requests:
            self._idle.set()
            return
        self._written.clear()
        outcomes = self._run_here(requests)
        if outcomes is not None:
            self._finish(requests, outcomes)
            return
        try:
            self._database.start_on_writer(partial(self._run, requests), partial(self._finish, requests))
        except EventStoreError as error:
            self._end(requests, [Failure(error)] * len(requests))

    def _run_here(self, requests: Sequence[Request]) -> list[Committed | Failure] | None:
        """Commit a group without a crossing; None when it is not short, or anything comes up that takes patience."""
        size = sum([request.size for request in requests])
        if size > MOST_HERE:
            return None
        try:
            return self._database.write_here(partial(self._attempt, requests=requests, here=True), size)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - on its thread it comes up again, with whose it is
            return None
        except BaseException:
            # A signal, between any two steps: the group may be committed, and then this process does not know it.
            self._heads.forget()
            self._end(requests, [Failure(StoreUnavailableError("interrupted"))] * len(requests))
            raise

    def _run(self, requests: Sequence[Request], connection: RawConnection) -> list[Committed | Failure]:
        try:
            return self._commit(connection, requests)
        except BaseException as error:  # noqa: BLE001 - the callers are waiting, whatever it is
            return [Failure(_holdable(error))] * len(requests)

    def _finish(self, requests: Sequence[Request], outcomes: Sequence[Committed | Failure]) -> None:
        due, self._due = self._due, 0
        self._end(requests, outcomes, due)
        if self._written:
            first, last = self._written[0][0], self._written[-1][1]
            self._on_commit(first, last)
            self._checkpoints.committed(last - first + 1)

    def _end(self, requests: Sequence[Request], outcomes: Sequence[Committed | Failure], due: int = 0) -> None:
        """Answer a group; then comes what deferred projections are due to catch up in, then the next group."""
        for request, outcome in zip(requests, outcomes, strict=True):
            if request.answer.done():
                continue
            if isinstance(outcome, Failure):
                request.answer.set_exception(outcome.error)
            else:
                request.answer.set_result(outcome)
        # After those who are woken by their answers: they may have more for the next group.
        if due:
            self._loop.call_soon(self._start_catching_up, due)
        self._loop.call_soon(self._start)

    def _commit(self, connection: RawConnection, requests: Sequence[Request]) -> list[Committed | Failure]:
        """Commit a group; when something unexpected breaks it, try its halves, so that only the cause fails."""
        try:
            return self._attempt(connection, requests)
        except (StoreUnavailableError, StoreClosedError) as error:
            return [Failure(error)] * len(requests)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a caller's `decide` may raise anything
            if len(requests) == 1:
                return [Failure(_holdable(error.cause if isinstance(error, GroupFailedError) else error))]
            middle = len(requests) // 2
            return self._commit(connection, requests[:middle]) + self._commit(connection, requests[middle:])

    def _attempt(
        self, connection: RawConnection, requests: Sequence[Request], *, here: bool = False
    ) -> list[Committed | Failure]:
        with self._database.transaction(connection, has_begun=here) as tx:
            tx.hurried = here
            self._take_state(connection, tx)
            group = Group(tx, self._heads, self._projections, self._clock)
            tx.flush = group.flush
            outcomes = [group.decide(r.stream_id, r.decide, r.expected, r.metadata) for r in requests]
            group.flush()
            if group.position > self._heads.position:
                tx.executemany(MARK_STALE, [(name,) for name in self._heads.unknown_projections])
                if group.position >= self._catch_up_from:
                    self._due = sum(projection.due(tx) for projection in self._deferred)
        if group.position > self._heads.position:
            self._written.append((self._heads.position + 1, group.position))
        self._heads.adopt(group.position, group.last_stream, group.heads, tx.memo)
        return outcomes

    def _start_catching_up(self, due: int) -> None:
        if due <= MOST_HERE:
            with contextlib.suppress(NotHereError):
                return self._caught_up(self._database.write_here(partial(self._catch_up, here=True), due))
        with contextlib.suppress(EventStoreError):
            return self._database.start_on_writer(self._catch_up, self._caught_up)

    def _catch_up(self, connection: RawConnection, *, here: bool = False) -> Exception | None:
        """Have deferred projections catch up; what goes wrong is no append's affair."""
        try:
            with self._database.transaction(connection, has_begun=here) as tx:
                self._take_state(connection, tx)
                catch_up(tx, self._deferred)
        except Exception as error:  # noqa: BLE001 - told to the log
            return error
        self._heads.adopt(self._heads.position, self._heads.last_stream, {}, tx.memo)
        return None

    def _caught_up(self, error: Exception | None) -> None:
        if error is not None:
            told = error.code if isinstance(error, EventStoreError) else type(error).__name__
            logger.warning("a projection could not catch up, which will be tried again later: %s", told)
            self._catch_up_from = self._heads.position + RETRY_AFTER

    def _take_state(self, connection: RawConnection, tx: RawTx) -> None:
        self._heads.refresh(tx, (self._database.dialect.data_version(connection), self._database.writes))
        tx.memo = self._heads.take_memo()


def _holdable(error: BaseException) -> Exception:
    """The error as a future can hold it without looking like the end of an iterator or a cancelled caller."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"the decision raised {error!r}")
