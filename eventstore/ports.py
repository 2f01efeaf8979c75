"""What the log asks of its surroundings: a transaction, projections, a publisher, a clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from sqlalchemy import Subquery

from eventstore.envelope import Envelope
from eventstore.errors import EventStoreError
from eventstore.events import Event
from eventstore.statements import Row, Statement

Clock = Callable[[], dt.datetime]
"""A plain callable that gives an aware UTC time."""


Order = Literal["relevance", "newest"]


class Tx(Protocol):
    """An open transaction: what `decide`, projections and queries see of the database."""

    @property
    def dialect(self) -> Dialect:
        """What differs between the engines."""

    @property
    def memo(self) -> dict[Any, Any]:
        """What was read and may be asked for again, by keys of whoever read it.

        The writer keeps it from one committed group to the next, until somebody else has written; so whoever changes
        the rows behind an entry takes it out, or puts in what they hold now.
        """

    @property
    def hurried(self) -> bool:
        """Whether a decision may leave out looking for what the tables refuse: it is run again then, without hurry."""

    @property
    def is_here(self) -> bool:
        """Whether this is the event loop's own thread; on another one every step has to wait for the interpreter."""

    def execute(self, statement: Statement, params: Row = ()) -> None:
        """Run a statement once."""

    def executemany(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Run a statement once per row; no rows, no work."""

    def fetch(self, statement: Statement, params: Row = ()) -> list[Row]:
        """All rows of a query."""

    def iterate(self, statement: Statement, params: Row = ()) -> Iterator[Row]:
        """The rows of a query one by one, read as they are asked for, within the transaction."""

    def flush(self) -> None:
        """Apply the events that earlier decisions of this group left pending, so that the tables show them."""


class TextIndex(Protocol):
    """A full-text index of ready-made tokens, which knows row numbers and nothing of what they stand for."""

    def __hash__(self) -> int:
        """One object per index, so that what is made for it can be kept."""

    def create(self, tx: Tx) -> None:
        """Create the index."""

    def add(self, tx: Tx, rows: Sequence[tuple[int, Sequence[str], int]]) -> None:
        """Add the tokens of rows that are not in the index, each with the number of its scope; rows rise."""

    def remove(self, tx: Tx, rows: Sequence[tuple[int, Sequence[str], int]]) -> None:
        """Remove rows, given with the tokens and the scope that they were added with."""

    def maintain(self, tx: Tx, first: int, last: int) -> None:
        """Do the upkeep that falls due between two positions of the log, which every call continues."""

    def clear(self, tx: Tx) -> None:
        """Remove all rows."""

    def drop(self, tx: Tx) -> None:
        """Drop the index."""

    def query(self, phrases: Sequence[Sequence[str]], scope: int | None = None) -> str:
        """The parameter `query` of `hits` for rows that hold every phrase, of one scope or of all."""

    def hits(self) -> Subquery:
        """The rows that hold what the parameter `query` asks for, as columns `row_no` and `rank`: to be joined.

        A smaller rank is a better match; it is worked out only where it is asked for, and takes a look at every row
        that holds one of the phrases, the scope included. Ordered by falling `row_no` the rows come as they are read.
        """

    def terms(self, tx: Tx) -> Iterator[Row]:
        """Every (token, row number, column, place) of the index, in that order; for comparing it with its source."""

    def terms_of(self, rows: Sequence[tuple[int, Sequence[str], int]]) -> Iterator[Row]:
        """What `terms` would have of rows that are added, in any order."""

    def ranks_of(self, tx: Tx, phrases: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[float]:
        """What `hits` would have as the ranks of rows with these tokens, if they were added."""


class Dialect(Protocol):
    """What differs between the engines, as the log and the projections need it."""

    def has_table(self, tx: Tx, table: str) -> bool:
        """Whether the database has this table."""

    def immutability(self, table: str, keys: Sequence[Sequence[str]]) -> list[str]:
        """DDL that makes a table append-only, with the keys over which nothing may be inserted again."""

    def missing_guards(self, tx: Tx, table: str) -> list[str]:
        """The names of the triggers of `immutability` that the table has not."""

    def time(self, time: dt.datetime) -> Any:
        """A time as it stands in a projection's column."""

    def to_time(self, stored: Any) -> dt.datetime:
        """The time that stands in a projection's column."""

    def text_index(self, name: str) -> TextIndex:
        """The text index with this name."""

    def translate(self, error: Exception) -> EventStoreError | None:
        """The typed error that stands for a driver's, or None for an error that is not the driver's."""


class Projection(Protocol):
    """Code that folds events into tables it alone owns; inline, in the transaction of the append.

    `name` and `revision` are stamped in the database: a changed revision means that the tables must be rebuilt.
    `apply` gets the envelopes of a whole group in position order, of the types in `handles` only.
    """

    @property
    def name(self) -> str:
        """The name under which the database knows it."""

    @property
    def revision(self) -> int:
        """Counts the shapes and meanings its tables have had."""

    @property
    def handles(self) -> Collection[str | type[Event]]:
        """The event types it folds, by their tags."""

    def create(self, tx: Tx) -> None:
        """Create its tables."""

    def drop(self, tx: Tx) -> None:
        """Drop its tables, whatever revision they have."""

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Fold events into its tables; those that it has folded already change nothing."""

    def reset(self, tx: Tx) -> None:
        """Empty its tables."""


@runtime_checkable
class Derived(Projection, Protocol):
    """A projection whose tables follow from those of other projections, so that they are filled from them at once."""

    def fill(self, tx: Tx) -> None:
        """Fill its empty tables."""


@runtime_checkable
class Deferred(Projection, Protocol):
    """A projection that may lag a little behind the log, since it costs less written for many events at once.

    Its queries make up for that. The writer has it catch up between two groups, in a transaction of its own.
    """

    def due(self, tx: Tx) -> int:
        """The bytes in which it should catch up by now; 0 while it does not lag behind far enough."""

    def catch_up(self, tx: Tx) -> None:
        """Fold what it lags behind in."""


class Publisher(Protocol):
    """Carries hints and signals to whoever listens; may lose them."""

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Take a message, in order, and return at once."""
