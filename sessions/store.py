"""The composition root: a store is the log with the session projections, opened whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from eventstore.dialect import Synchronous, dialect_of
from eventstore.errors import InvalidArgumentError
from eventstore.limits import Limits
from eventstore.log import EventLog, open_log
from eventstore.ports import Clock, Projection, Publisher
from eventstore.publisher import InProcessPublisher
from eventstore.redis_publisher import RedisPublisher
from projections import ContextBlocks, ContextEntries, Directory, Imports, MessageTree, SearchIndex, Skills
from projections.tokens import estimate_string_tokens
from sessions.compaction_state import CompactionStates


class Store:
    """An open store: `log` is the EventLog, `publisher` the publisher, `engine` the SQLAlchemy engine.

    `estimate_tokens` gives a text's tokens for every stored estimate; `compactions` is what this process remembers of
    the compactions of its sessions.
    """

    def __init__(self, log: EventLog, estimate_tokens: Callable[[str], int]) -> None:
        self.log = log
        self.estimate_tokens = estimate_tokens
        self.compactions = CompactionStates()

    @property
    def publisher(self) -> Publisher:
        """Carries hints and live status."""
        return self.log.publisher

    @property
    def engine(self) -> AsyncEngine:
        """The SQLAlchemy engine that owns every connection."""
        return self.log.database.engine

    @property
    def limits(self) -> Limits:
        """How large things may be."""
        return self.log.limits

    async def close(self) -> None:
        """Commit what is waiting, end every iterator, close every connection; a second call does nothing."""
        try:
            await self.log.close()
        finally:
            if isinstance(self.publisher, InProcessPublisher | RedisPublisher):
                await self.publisher.close()

    async def __aenter__(self) -> Store:
        """The store itself, which is closed at the end of the block."""
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Close the store."""
        await self.close()


class Opening:
    """A store that opens when it is awaited, or entered with `async with`, which closes it again."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._open = opened
        self._store: Store | None = None

    def __await__(self) -> Generator[Any, None, Store]:
        """Open the store."""
        store: Generator[Any, None, Store] = self._open().__await__()
        return store

    async def __aenter__(self) -> Store:
        """Open the store."""
        self._store = await self
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        if self._store is not None:
            await self._store.close()


def open_store(
    url: str,
    *,
    redis_url: str | None = None,
    publisher: Publisher | None = None,
    create_tables: bool = True,
    synchronous: Synchronous = "full",
    projections: Sequence[Projection] = (),
    limits: Limits | None = None,
    clock: Clock | None = None,
    estimate_tokens: Callable[[str], int] | None = None,
) -> Opening:
    """Open a store, by `await` or for the length of an `async with` block.

    `url` is `sqlite:///file.db`, or `sqlite://` for a private one in memory. Tables are made when they are missing;
    with `create_tables=False` no DDL is issued. `synchronous="normal"` trades the last commits before a power cut for
    speed. `projections` are inline ones beside the store's own. `clock` gives an aware UTC time, asked for every
    recorded time; `estimate_tokens` is a plain `str -> int` for stored estimates.

    `redis_url` has a RedisPublisher carry hints and live status to other processes and machines; a `publisher` given
    instead is closed with the store when it is one of this package.

    Raises InvalidArgumentError for an option that is not what it should be, and NotSupportedError for another engine.
    Opening raises SchemaVersionError for tables of another version and StoreUnavailableError when the database cannot
    be opened.
    """
    dialect = dialect_of(url, synchronous=synchronous)
    if redis_url is not None:
        _check("redis_url", publisher, lambda _: False, "goes without a publisher")
        RedisPublisher(redis_url)
    _check("publisher", publisher, lambda it: callable(getattr(it, "publish", None)), "must have publish()")
    _check("limits", limits, lambda it: isinstance(it, Limits), "must be Limits")
    _check("clock", clock, callable, "must be callable")
    _check("estimate_tokens", estimate_tokens, callable, "must be callable")
    _check("projections", projections, _are_projections, "must be a list of projections")

    estimate = estimate_tokens or estimate_string_tokens

    async def opened() -> Store:
        # The index works out what an edit takes out of it from the rows, before the tree changes them.
        own = (SearchIndex(), MessageTree(estimate), Skills(estimate), ContextBlocks(), ContextEntries(), Directory())
        log = await open_log(
            dialect,
            (*own, Imports(), *projections),
            publisher=publisher or (RedisPublisher(redis_url) if redis_url is not None else InProcessPublisher()),
            clock=clock,
            limits=limits or Limits(),
            create_tables=create_tables,
        )
        return Store(log, estimate)

    return Opening(opened)


def _check(name: str, value: object, holds: Callable[[Any], bool], otherwise: str) -> None:
    if value is not None and not holds(value):
        raise InvalidArgumentError(name, otherwise)


def _are_projections(value: object) -> bool:
    return isinstance(value, Iterable) and all(callable(getattr(one, "apply", None)) for one in value)
