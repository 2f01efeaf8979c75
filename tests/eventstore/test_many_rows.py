"""Inserting many rows: the same rows as one by one, in few steps."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, bindparam, insert, text, update
from sqlalchemy.dialects.sqlite import dialect as core_dialect

from eventstore.crossing import RawTx
from eventstore.dialect import dialect_of
from eventstore.statements import Statement

_numbers = Table("numbers", MetaData(), Column("n", Integer, primary_key=True), Column("name", Text))
INSERT = Statement(insert(_numbers), "n", "name")
RENAME = Statement(
    update(_numbers).where(_numbers.c.n == bindparam("the_n")).values(name=bindparam("to_name")), "the_n", "to_name"
)


@pytest.fixture
def steps() -> list[str]:
    """Return a list that the statements which are run are noted in."""
    return []


@pytest.fixture
def tx(steps: list[str]) -> Iterator[RawTx]:
    """Return a transaction on a database with an empty table."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY, name TEXT)")
        connection.set_trace_callback(steps.append)
        yield RawTx(connection, dialect_of("sqlite://"), core_dialect(paramstyle="qmark"))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 65, 127, 200, 1_000, 2_077])
def test_any_number_of_rows_is_inserted(tx: RawTx, steps: list[str], count: int) -> None:
    """Any number of rows is inserted, each once and in order, in far fewer steps than there are rows."""
    rows = [(number, f"number {number}") for number in range(count)]
    tx.executemany(INSERT, rows)
    taken = len(steps)
    assert tx.fetch(Statement(text("SELECT n, name FROM numbers ORDER BY rowid"))) == rows
    assert taken <= count // 64 + 6


def test_other_statements_run_row_by_row(tx: RawTx) -> None:
    """A statement that is no insert runs once for each row, its parameters in the order of their names."""
    tx.executemany(INSERT, [(number, "") for number in range(70)])
    tx.executemany(RENAME, [(number, f"number {number}") for number in range(70)])
    found = tx.fetch(Statement(text("SELECT n, name FROM numbers ORDER BY n")))
    assert found == [(number, f"number {number}") for number in range(70)]


def test_refused_row_refuses_its_step(tx: RawTx) -> None:
    """A row that a constraint refuses raises, as it does alone."""
    tx.executemany(INSERT, [(5, "five")])
    with pytest.raises(sqlite3.IntegrityError):
        tx.executemany(INSERT, [(number, "") for number in range(10)])
