from __future__ import annotations

import contextlib
import sqlite3

import pytest
from sqlalchemy.dialects.sqlite import dialect as core_dialect

from eventstore.crossing import RawTx
from eventstore.dialect import FtsIndex, dialect_of
from tests.eventstore.support import sql


@pytest.mark.parametrize("is_here", [True, False], ids=["on this thread", "on another"])
def test_rows_added_together_are_one_segment(*, is_here: bool) -> None:
    """Rows that are added to a text index together are written together, and not a segment for each."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        tx = RawTx(connection, dialect_of("sqlite://"), core_dialect(paramstyle="qmark"))
        tx.is_here = is_here
        index = FtsIndex("words")
        index.create(tx)
        connection.execute("BEGIN")
        index.add(tx, [(number, [f"word{number}", "all"], 1) for number in range(1, 101)])
        connection.execute("COMMIT")
        # Beside the averages and the structure, whose rows are the first ten, each row is a page of a segment.
        assert tx.fetch(sql("SELECT count(*) FROM words_data WHERE id > 10")) == [(1,)]
        assert tx.fetch(sql("SELECT count(*) FROM words WHERE words MATCH 'all'")) == [(100,)]
