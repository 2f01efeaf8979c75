"""Search blocks: entries by key, and the text index over them; an index row has the number of its entry's row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Column, Table, Text, UniqueConstraint, bindparam, delete, func, insert, select

from eventstore.dialect import BigKey
from eventstore.envelope import Envelope
from eventstore.events import ContextEntryRemoved, ContextEntrySet
from eventstore.ports import TextIndex, Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata
from projections.analysis import REVISION, parse_query, with_tokens
from projections.base import Projection
from projections.versions import Versions

INDEX = "cf_agents_search_fts"
PREFIX = "search:"
"""What the id of a search block's stream starts with; its label follows."""

entries = Table(
    "cf_agents_search_entries",
    metadata,
    # The position of the event that wrote the entry last, so that the newest have the highest.
    Column("row_id", BigKey, primary_key=True, autoincrement=False),
    Column("stream_no", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("content", Text, nullable=False),
    UniqueConstraint("stream_no", "key"),
)
versions = Versions("context_entry_versions")

_of_stream = entries.c.stream_no == bindparam("stream_no")
_FIND = Statement(
    select(entries.c.row_id, entries.c.created_at, entries.c.content).where(
        _of_stream, entries.c.key == bindparam("key")
    ),
    "stream_no",
    "key",
)
_COUNT = Statement(select(func.count()).select_from(entries).where(_of_stream), "stream_no")
_INSERT = Statement(insert(entries), *entries.columns.keys())
_DELETE = Statement(delete(entries).where(entries.c.row_id == bindparam("the_row")), "the_row")


class ContextEntries(Projection):
    """The entries of search blocks, each under its key, and their tokens."""

    name = "context_entries"
    revision = REVISION
    handles = (ContextEntrySet, ContextEntryRemoved)
    tables = (entries, versions.table)

    def create(self, tx: Tx) -> None:
        """Create the tables and the text index."""
        super().create(tx)
        tx.dialect.text_index(INDEX).create(tx)

    def drop(self, tx: Tx) -> None:
        """Drop the text index and the tables."""
        tx.dialect.text_index(INDEX).drop(tx)
        super().drop(tx)

    def reset(self, tx: Tx) -> None:
        """Empty the text index and the tables."""
        tx.dialect.text_index(INDEX).clear(tx)
        super().reset(tx)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Write what each entry is after these events, and take out of the index what it was before."""
        changes = _Changes(tx)
        for envelope in versions.news(tx, envelopes):
            changes.apply(envelope)
        changes.write()
        tx.dialect.text_index(INDEX).maintain(tx, envelopes[0].position, envelopes[-1].position)

    def dump(self, tx: Tx, stream_no: int | None = None) -> Iterator[Row]:
        """Every row of the tables, and of all streams every token of the index with its place."""
        yield from super().dump(tx, stream_no)
        if stream_no is None:
            for token, row_id, column, place in tx.dialect.text_index(INDEX).terms(tx):
                yield (INDEX, row_id, column, place, token)


class _Entry(msgspec.Struct):
    """An entry as its row was before a group, and as it is after it; None for none."""

    before: tuple[int, str] | None
    created_at: Any
    after: Row | None = None


class _Changes:
    """What a group of events changes: only what is left of it in the end is written."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._entries: dict[tuple[int, str], _Entry] = {}

    def apply(self, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        if isinstance(event, ContextEntrySet):
            entry = self._entry(stream_no, event.key)
            time = self._tx.dialect.time(envelope.recorded_at)
            entry.created_at = entry.created_at or time
            label = envelope.stream_id.removeprefix(PREFIX)
            about = (envelope.position, stream_no, label, event.key)
            entry.after = (*about, entry.created_at, time, event.content)
        elif isinstance(event, ContextEntryRemoved):
            entry = self._entry(stream_no, event.key)
            entry.after = entry.created_at = None

    def write(self) -> None:
        changed = list(self._entries.items())
        before = sorted((*entry.before, no) for (no, _), entry in changed if entry.before)
        after = sorted((entry.after for _, entry in changed if entry.after), key=lambda row: row[0])
        index = self._tx.dialect.text_index(INDEX)
        index.remove(self._tx, with_tokens(before))
        self._tx.executemany(_DELETE, [(row_id,) for row_id, *_ in before])
        self._tx.executemany(_INSERT, after)
        index.add(self._tx, with_tokens((row[0], row[-1], row[1]) for row in after))

    def _entry(self, stream_no: int, key: str) -> _Entry:
        entry = self._entries.get((stream_no, key))
        if entry is None:
            rows = self._tx.fetch(_FIND, (stream_no, key))
            entry = _Entry((rows[0][0], rows[0][2]), rows[0][1]) if rows else _Entry(None, None)
            self._entries[stream_no, key] = entry
        return entry


def find_entry(tx: Tx, stream_no: int, key: str) -> str | None:
    """The content of an entry."""
    rows = tx.fetch(_FIND, (stream_no, key))
    return str(rows[0][2]) if rows else None


def count_entries(tx: Tx, stream_no: int) -> int:
    """How many entries a search block has."""
    return int(tx.fetch(_COUNT, (stream_no,))[0][0])


def search_entries(tx: Tx, stream_no: int, text: str, *, most: int) -> list[tuple[str, str]]:
    """Key and content of the entries that hold all words of a text as a person typed it, best first."""
    query = parse_query(text)
    if not query.phrases:
        return []
    index = tx.dialect.text_index(INDEX)
    return [(key, content) for key, content in tx.fetch(_hits(index), (index.query(query.phrases, stream_no), most))]


@cache
def _hits(index: TextIndex) -> Statement:
    """The query for the entries that match, best first, equal ranks newest first."""
    hits = index.hits()
    found = select(entries.c.key, entries.c.content).join_from(hits, entries, entries.c.row_id == hits.c.row_no)
    return Statement(found.order_by(hits.c.rank, hits.c.row_no.desc()).limit(bindparam("most")), "query", "most")
