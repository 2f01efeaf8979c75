"""What the log asks of its surroundings: a transaction, projections, a publisher, a clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from eventstore.envelope import Envelope
from eventstore.statements import Row, Statement

if TYPE_CHECKING:
    from eventstore.dialect import Dialect

Clock = Callable[[], dt.datetime]
"""A plain callable that gives an aware UTC time."""


class Tx(Protocol):
    """An open transaction: what `decide`, projections and queries see of the database."""

    @property
    def dialect(self) -> Dialect:
        """What differs between the engines."""

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
    def handles(self) -> frozenset[str]:
        """The event types it folds."""

    def create(self, tx: Tx) -> None:
        """Create its tables."""

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Fold events into its tables."""

    def reset(self, tx: Tx) -> None:
        """Empty its tables."""


class Publisher(Protocol):
    """Carries hints and signals to whoever listens; may lose them."""

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Take a message, in order, and return at once."""
