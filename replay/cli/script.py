"""The tables of this version as a script of SQL, which makes an empty store where a program may not do that itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Dialect as CoreDialect
from sqlalchemy import Table, insert

from eventstore.dialect import Dialect
from eventstore.migrations import MIGRATIONS, create_table
from eventstore.ports import Projection
from eventstore.statements import Row, Statement
from eventstore.tables import projections as stamps
from eventstore.tables import schema_versions


class Script:
    """A transaction on an empty database that notes what it is told to run."""

    def __init__(self, dialect: Dialect, core: CoreDialect) -> None:
        self.dialect = dialect
        self.memo: dict[Any, Any] = {}
        self.hurried = self.is_here = False
        self.statements: list[str] = []
        self._core = core

    def execute(self, statement: Statement, params: Row = ()) -> None:
        """Note a statement, which must be whole as it is."""
        assert not params, "making tables takes no parameters"
        sql, _ = statement.compiled(self._core)
        self.note(sql)

    def executemany(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Note a statement for each row."""
        for row in rows:
            self.execute(statement, row)

    def fetch(self, statement: Statement, params: Row = ()) -> list[Row]:  # noqa: ARG002 - the protocol's
        """Nothing, since nothing is there."""
        return []

    def iterate(self, statement: Statement, params: Row = ()) -> Iterator[Row]:
        """Nothing, since nothing is there."""
        return iter(self.fetch(statement, params))

    def flush(self) -> None:
        """Nothing is pending."""

    def note(self, sql: str) -> None:
        """Note a statement's text."""
        self.statements.append("\n".join(line.rstrip() for line in sql.strip().splitlines()) + ";")


def script(dialect: Dialect, core: CoreDialect, projections: Sequence[Projection]) -> Iterator[str]:
    """The statements that make an empty store, each with its end, and a comment before those of each part."""

    def insertion(table: Table, **values: object) -> str:
        return str(insert(table).values(**values).compile(dialect=core, compile_kwargs={"literal_binds": True}))

    yield f"-- the log, schema version {len(MIGRATIONS)}"
    made = Script(dialect, core)
    create_table(made, schema_versions)
    for number, step in enumerate(MIGRATIONS, start=1):
        step(made)
        # When it is run is not known here.
        made.note(insertion(schema_versions, version=number, applied_at=0))
    yield from made.statements
    for projection in projections:
        yield f"-- projection {projection.name}, revision {projection.revision}"
        made = Script(dialect, core)
        projection.create(made)
        made.note(insertion(stamps, name=projection.name, revision=projection.revision, stale=0))
        yield from made.statements
