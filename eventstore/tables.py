"""The tables of the log; projections declare their own."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, Table, Text, UniqueConstraint

from eventstore.dialect import BigKey

metadata = MetaData()

schema_versions = Table(
    "eventstore_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", BigInteger, nullable=False),
)

streams = Table(
    "streams",
    metadata,
    Column("stream_no", BigKey, primary_key=True, autoincrement=False),
    Column("stream_id", Text, nullable=False, unique=True),
    Column("version", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("position", BigKey, primary_key=True, autoincrement=False),
    Column("stream_no", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("schema", Integer, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("salt", LargeBinary),
    Column("payload", Text),
    Column("payload_digest", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    UniqueConstraint("stream_no", "version"),
    UniqueConstraint("event_id", "stream_no"),
)

projections = Table(
    "projections",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    # 1 once a process that did not know the projection has appended past it.
    Column("stale", Integer, nullable=False),
)
