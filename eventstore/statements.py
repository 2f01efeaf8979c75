"""SQLAlchemy Core statements, compiled once per dialect and run with plain tuples of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.schema import DDLElement
from sqlalchemy.sql.elements import ClauseElement

Row = tuple[Any, ...]
Arrange = Callable[[Row], Row] | None


class Statement:
    """A statement and the order in which its callers give the parameters; an insert names its columns.

    Compiling costs a hundred times what running does, so a Statement is made once, at module level.
    """

    __slots__ = ("_clause", "_compiled", "_names", "_of_many")

    def __init__(self, clause: ClauseElement, *names: str) -> None:
        self._clause = clause
        self._names = names
        self._compiled: dict[str, tuple[str, Arrange]] = {}
        self._of_many: dict[tuple[str, int], str | None] = {}

    def compiled(self, dialect: Dialect) -> tuple[str, Arrange]:
        """The SQL text, and how to bring a caller's parameters into its order (None: they are in order)."""
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = self._compile(dialect)
        return found

    def compiled_for(self, dialect: Dialect, rows: int) -> str | None:
        """The SQL text that inserts so many rows in one step, given the parameters of all of them one after the other.

        None for what cannot be run for many rows at once. Each text is kept: callers keep to a few numbers of rows.
        """
        key = dialect.name, rows
        if key not in self._of_many:
            sql, arrange = self.compiled(dialect)
            start, values, row = sql.rpartition(" VALUES ")
            can_be = arrange is None and start.startswith("INSERT INTO ") and row.endswith("?)")
            self._of_many[key] = f"{start}{values}{', '.join([row] * rows)}" if can_be else None
        return self._of_many[key]

    def _compile(self, dialect: Dialect) -> tuple[str, Arrange]:
        if isinstance(self._clause, DDLElement):
            return str(self._clause.compile(dialect=dialect)), None
        is_insert = self._clause.__visit_name__ == "insert"
        compiled = self._clause.compile(
            dialect=dialect,
            column_keys=list(self._names) if is_insert else None,
            compile_kwargs={"render_postcompile": True},
        )
        order: Sequence[str] = getattr(compiled, "positiontup", None) or ()
        if tuple(order) == self._names:
            return str(compiled), None
        # Constants of the clause (a LIMIT's offset, say) are parameters too: they go behind the caller's.
        constants = tuple(compiled.params[name] for name in order if name not in self._names)
        places = iter(range(len(self._names), len(self._names) + len(constants)))
        indices = [self._names.index(name) if name in self._names else next(places) for name in order]
        if not constants and len(indices) > 1:
            return str(compiled), itemgetter(*indices)
        return str(compiled), lambda row: tuple([(row + constants)[index] for index in indices])
