"""The version of each stream that a projection's tables show, so that an event that comes again changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Column, Table, bindparam, insert, select, update

from eventstore.dialect import BigKey
from eventstore.envelope import Envelope, UnreadableEvent
from eventstore.ports import Tx
from eventstore.statements import Statement
from eventstore.tables import metadata


class Versions:
    """A table with a row per stream of which a projection shows something."""

    def __init__(self, name: str) -> None:
        self.table = Table(
            name,
            metadata,
            Column("stream_no", BigKey, primary_key=True, autoincrement=False),
            Column("version", BigInteger, nullable=False),
        )
        of_stream = self.table.c.stream_no == bindparam("the_stream")
        self._find = Statement(select(self.table.c.version).where(of_stream), "the_stream")
        self._insert = Statement(insert(self.table), "stream_no", "version")
        self._update = Statement(
            update(self.table).where(of_stream).values(version=bindparam("to_version")), "to_version", "the_stream"
        )

    def find(self, tx: Tx, stream_no: int) -> int:
        """The version that is shown of a stream; 0 when nothing is."""
        rows = tx.fetch(self._find, (stream_no,))
        return int(rows[0][0]) if rows else 0

    def news(self, tx: Tx, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """The events that are not shown yet, which count as shown from now on; what cannot be read never does."""
        shown = {stream_no: self.find(tx, stream_no) for stream_no in {one.stream_no for one in envelopes}}
        reached = dict(shown)
        news: list[Envelope] = []
        for envelope in envelopes:
            if envelope.version > reached[envelope.stream_no] and not isinstance(envelope.event, UnreadableEvent):
                reached[envelope.stream_no] = envelope.version
                news.append(envelope)
        moved = [(no, version) for no, version in sorted(reached.items()) if version > shown[no]]
        tx.executemany(self._insert, [(no, version) for no, version in moved if not shown[no]])
        tx.executemany(self._update, [(version, no) for no, version in moved if shown[no]])
        return news
