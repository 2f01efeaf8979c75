"""The numbered steps that bring a database's tables to this version of the code, and the check that they did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import Table, func, insert, select, text
from sqlalchemy.schema import CreateIndex, CreateTable

from eventstore.errors import SchemaVersionError
from eventstore.ports import Projection, Tx
from eventstore.statements import Statement
from eventstore.tables import events, projections, schema_versions, streams

_VERSION = Statement(select(func.max(schema_versions.c.version)))
_STAMP_VERSION = Statement(insert(schema_versions), "version", "applied_at")
_PROJECTIONS = Statement(select(projections.c.name, projections.c.revision))
_STAMP_PROJECTION = Statement(insert(projections), "name", "revision")


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


def missing(tx: Tx, wanted: Sequence[Projection]) -> bool:
    """Whether a step or a projection's tables are missing; raises SchemaVersionError for what cannot be brought up."""
    version = schema_version(tx)
    if version > len(MIGRATIONS):
        raise SchemaVersionError(version, len(MIGRATIONS), "a newer version of this package wrote this database")
    if version < len(MIGRATIONS):
        return True
    stored: dict[str, int] = dict(tx.fetch(_PROJECTIONS))
    for projection in wanted:
        revision = stored.get(projection.name)
        if revision is not None and revision != projection.revision:
            advice = f"projection {projection.name} has revision {revision}, not {projection.revision}: rebuild it"
            raise SchemaVersionError(version, len(MIGRATIONS), advice)
    return any(projection.name not in stored for projection in wanted)


def migrate(tx: Tx, wanted: Sequence[Projection]) -> list[Projection]:
    """Take the missing steps and create the missing projections, which are returned: they have yet to be filled."""
    version = schema_version(tx)
    if version == 0:
        create_table(tx, schema_versions)
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        step(tx)
        tx.execute(_STAMP_VERSION, (number, time.time_ns() // 1000))
    stored = {name for name, _ in tx.fetch(_PROJECTIONS)}
    created = [projection for projection in wanted if projection.name not in stored]
    for projection in created:
        projection.create(tx)
        tx.execute(_STAMP_PROJECTION, (projection.name, projection.revision))
    return created


def check(tx: Tx, wanted: Sequence[Projection]) -> None:
    """Raise SchemaVersionError when tables are missing that this process may not create."""
    if missing(tx, wanted):
        found = schema_version(tx) or None
        raise SchemaVersionError(found, len(MIGRATIONS), "tables are missing and create_tables is off")


def schema_version(tx: Tx) -> int:
    """The schema version that the database is at; 0 when it has no tables."""
    if not tx.dialect.has_table(tx, schema_versions.name):
        return 0
    return int(tx.fetch(_VERSION)[0][0] or 0)
