"""The ledger of imports: which record of which format is in which session, so that none comes in twice.

Records are named in the metadata of the events that brought them. What is cleared is forgotten, so that it can be
imported anew; what was deleted message by message stays known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import BigInteger, Column, Index, Table, Text, bindparam, delete, insert, select

from eventstore.envelope import Envelope
from eventstore.events import CompactionAdded, MessageAppended, MessagesCleared, MessageUpdated, SessionDeleted
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata, streams
from projections.base import Projection

KEY: Final = "import"
"""Where it stands in the metadata of an event."""
AT_A_TIME: Final = 64
"""How many records one statement looks for."""

import_records = Table(
    "import_records",
    metadata,
    Column("format", Text, primary_key=True),
    Column("record_id", Text, primary_key=True),
    Column("stream_no", BigInteger, nullable=False),
    Index("ix_import_records_stream", "stream_no"),
)

_names = [f"record_{number}" for number in range(AT_A_TIME)]
_wanted = (
    import_records.c.format == bindparam("format"),
    import_records.c.record_id.in_([bindparam(name) for name in _names]),
)
_FIND = Statement(
    select(import_records.c.record_id, import_records.c.stream_no, streams.c.stream_id)
    .join_from(import_records, streams, streams.c.stream_no == import_records.c.stream_no)
    .where(*_wanted),
    "format",
    *_names,
)
_INSERT = Statement(insert(import_records), "format", "record_id", "stream_no")
_FORGET = Statement(delete(import_records).where(import_records.c.stream_no == bindparam("stream_no")), "stream_no")


class Holder(msgspec.Struct, frozen=True):
    """The stream that holds a record: its number in this database, and its id, which is the session's."""

    stream_no: int
    session_id: str


class Imports(Projection):
    """A row per record that was imported."""

    name = "imports"
    handles = (MessageAppended, MessageUpdated, CompactionAdded, MessagesCleared, SessionDeleted)
    tables = (import_records,)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Enter what the events brought, and forget what was cleared."""
        new: dict[tuple[str, str], int] = {}
        for envelope in envelopes:
            if isinstance(envelope.event, MessagesCleared | SessionDeleted):
                _enter(tx, new)
                new.clear()
                tx.execute(_FORGET, (envelope.stream_no,))
            elif KEY in envelope.metadata:
                for key in _records(envelope.metadata[KEY]):
                    new.setdefault(key, envelope.stream_no)
        _enter(tx, new)


def imported(format_name: str, records: Sequence[str]) -> dict[str, Any]:
    """The metadata of an event that brings records of a format."""
    return {KEY: {"format": format_name, "records": list(records)}}


def find_records(tx: Tx, format_name: str, records: Collection[str]) -> dict[str, Holder]:
    """Which of these records are known, and where each is."""
    found: dict[str, Holder] = {}
    holders: dict[int, Holder] = {}
    wanted = list(records)
    for start in range(0, len(wanted), AT_A_TIME):
        page = wanted[start : start + AT_A_TIME]
        page += page[:1] * (AT_A_TIME - len(page))
        for record_id, stream_no, stream_id in tx.fetch(_FIND, (format_name, *page)):
            found[record_id] = holders.setdefault(stream_no, Holder(stream_no, stream_id))
    return found


def _enter(tx: Tx, new: Mapping[tuple[str, str], int]) -> None:
    by_format: dict[str, list[str]] = {}
    for format_name, record_id in new:
        by_format.setdefault(format_name, []).append(record_id)
    known = {(name, record_id) for name, ids in by_format.items() for record_id in find_records(tx, name, ids)}
    rows: list[Row] = [(*key, stream_no) for key, stream_no in new.items() if key not in known]
    tx.executemany(_INSERT, rows)


def _records(told: object) -> Iterator[tuple[str, str]]:
    """The records that an event's metadata names; callers may have put anything there, which is then no record."""
    if not isinstance(told, dict):
        return
    format_name, records = told.get("format"), told.get("records")
    if isinstance(format_name, str) and isinstance(records, list):
        yield from ((format_name, record_id) for record_id in records if isinstance(record_id, str))
