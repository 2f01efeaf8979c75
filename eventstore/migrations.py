"""The numbered steps that bring a database's tables to this version of the code, and the check that they did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import Table, bindparam, delete, func, insert, select, text
from sqlalchemy.schema import CreateIndex, CreateTable

from eventstore.errors import SchemaVersionError
from eventstore.ports import Projection, Tx
from eventstore.statements import Statement
from eventstore.tables import events, projections, schema_versions, streams

_VERSION = Statement(select(func.max(schema_versions.c.version)))
_STAMP_VERSION = Statement(insert(schema_versions), "version", "applied_at")
_PROJECTIONS = Statement(select(projections.c.name, projections.c.revision, projections.c.stale))
_FORGET_PROJECTION = Statement(delete(projections).where(projections.c.name == bindparam("name")), "name")
_STAMP_PROJECTION = Statement(insert(projections), "name", "revision", "stale")


def create_table(tx: Tx, table: Table) -> None:
    """Create a table and its indexes."""
    tx.execute(Statement(CreateTable(table)))
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        tx.execute(Statement(CreateIndex(index)))


def _create_log(tx: Tx) -> None:
    for table in (streams, events, projections):
        create_table(tx, table)
    for ddl in tx.dialect.immutability("events", (("position",), ("stream_no", "version"), ("event_id", "stream_no"))):
        # A colon in plain DDL is no parameter.
        tx.execute(Statement(text(ddl.replace(":", "\\:"))))


MIGRATIONS: Sequence[Callable[[Tx], None]] = (_create_log,)
"""The n-th step leads to schema version n."""


def missing(tx: Tx, wanted: Sequence[Projection], *, may_create: bool) -> bool:
    """Whether a step or a projection's tables are missing.

    Raises SchemaVersionError for what cannot be brought up, or may not be.
    """
    found = _is_missing(tx, wanted)
    if found and not may_create:
        advice = "tables are missing or have to be filled again, and create_tables is off"
        raise SchemaVersionError(schema_version(tx) or None, len(MIGRATIONS), advice)
    return found


def _is_missing(tx: Tx, wanted: Sequence[Projection]) -> bool:
    version = schema_version(tx)
    if version > len(MIGRATIONS):
        raise SchemaVersionError(version, len(MIGRATIONS), "a newer version of this package wrote this database")
    if version == 0 and tx.dialect.has_table(tx, events.name):
        raise SchemaVersionError(None, len(MIGRATIONS), f"the database has a table {events.name} that is not ours")
    if version < len(MIGRATIONS):
        return True
    stored = _stored(tx)
    for projection in wanted:
        revision, _ = stored.get(projection.name, (0, 0))
        if revision > projection.revision:
            advice = f"a newer version of projection {projection.name} filled its tables"
            raise SchemaVersionError(version, len(MIGRATIONS), advice)
    return any(stored.get(projection.name) != (projection.revision, 0) for projection in wanted)


def migrate(tx: Tx, wanted: Sequence[Projection]) -> list[Projection]:
    """Take the missing steps and make the tables of new and changed projections.

    Returned are the projections that have to be filled from the log: those, and the ones that missed appends.
    """
    version = schema_version(tx)
    if version == 0:
        create_table(tx, schema_versions)
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        step(tx)
        tx.execute(_STAMP_VERSION, (number, time.time_ns() // 1000))
    stored = _stored(tx)
    empty = [projection for projection in wanted if stored.get(projection.name) != (projection.revision, 0)]
    for projection in empty:
        if projection.name in stored:
            projection.drop(tx)
        projection.create(tx)
        tx.execute(_FORGET_PROJECTION, (projection.name,))
        tx.execute(_STAMP_PROJECTION, (projection.name, projection.revision, 0))
    return empty


def schema_version(tx: Tx) -> int:
    """The schema version that the database is at; 0 when it has no tables."""
    if not tx.dialect.has_table(tx, schema_versions.name):
        return 0
    return int(tx.fetch(_VERSION)[0][0] or 0)


def _stored(tx: Tx) -> dict[str, tuple[int, int]]:
    return {name: (revision, stale) for name, revision, stale in tx.fetch(_PROJECTIONS)}
