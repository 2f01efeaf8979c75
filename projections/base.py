"""The base of projections: tables of one's own, filled from events, emptied and compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from sqlalchemy import Table, delete, literal, select
from sqlalchemy.schema import DropTable

from eventstore.envelope import Envelope
from eventstore.events import Event
from eventstore.migrations import create_table
from eventstore.ports import Tx
from eventstore.statements import Row, Statement


class Projection:
    """Folds events into tables that it alone owns.

    A subclass declares `name`, `revision` (raised whenever the same events give other rows), `handles` (event types)
    and `tables`, and writes `apply`. Columns named in `caches` hold estimates: they are no part of the truth.
    """

    name: ClassVar[str]
    revision: ClassVar[int] = 1
    handles: ClassVar[Collection[str | type[Event]]] = ()
    tables: ClassVar[Sequence[Table]] = ()
    caches: ClassVar[Collection[str]] = ()

    def __init_subclass__(cls) -> None:
        """Let event types be named by their tag or by their class."""
        super().__init_subclass__()
        cls.handles = frozenset(
            kind if isinstance(kind, str) else str(kind.__struct_config__.tag) for kind in cls.handles
        )

    def create(self, tx: Tx) -> None:
        """Create its tables."""
        for table in self.tables:
            create_table(tx, table)

    def drop(self, tx: Tx) -> None:
        """Drop its tables, whatever revision they have."""
        for table in self.tables:
            tx.execute(Statement(DropTable(table, if_exists=True)))

    def reset(self, tx: Tx) -> None:
        """Empty its tables."""
        for table in self.tables:
            tx.execute(Statement(delete(table)))

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Fold a group's events, in position order, into its tables."""
        raise NotImplementedError

    def dump(self, tx: Tx, stream_no: int | None = None) -> Iterator[Row]:
        """Every row but its caches, each behind its table's name, in the order of the keys: equal when the state is.

        With a stream, only the rows that name it; what cannot be told by stream is left out.
        """
        for table in self.tables:
            query = select(*(column for column in table.columns if column.name not in self.caches))
            if stream_no is not None:
                if "stream_no" not in table.columns:
                    continue
                query = query.where(table.c.stream_no == literal(stream_no, literal_execute=True))
            for row in tx.iterate(Statement(query.order_by(*table.primary_key.columns))):
                yield (str(table.name), *row)
