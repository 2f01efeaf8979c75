from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Table, UniqueConstraint
from sqlalchemy.dialects import sqlite

from eventstore.tables import metadata
from sessions import open_store
from tests.docs.pages import REFERENCE, codes, rows, sections

PAGE = REFERENCE / "tables.md"


def keys(table: Table) -> str:
    """Return the line that names a table's keys, as the page has it."""
    unique = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    said = [f"Primary key: {_names(table.primary_key.columns.keys())}."]
    if unique:
        said.append(f"Unique: {'; '.join(sorted(_names(one.columns.keys()) for one in unique))}.")
    said += [f"Index: {_names(one.columns.keys())}." for one in table.indexes]
    return " ".join(said)


def _names(columns: list[str]) -> str:
    return ", ".join(f"`{column}`" for column in columns)


def _columns(table: Table) -> Iterator[list[str]]:
    for column in table.columns:
        yield [f"`{column.name}`", column.type.compile(dialect=sqlite.dialect()), "yes" if column.nullable else "no"]


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_columns_are_described(table: Table) -> None:
    """The page has every column of a table in its order, with its type and whether it may be NULL."""
    described = rows(sections(PAGE, 3)[f"`{table.name}`"])
    assert [cells[:3] for cells in described] == list(_columns(table))
    assert all(cells[3] for cells in described)


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_keys_are_described(table: Table) -> None:
    """The page names the keys and indexes of a table."""
    assert keys(table) in sections(PAGE, 3)[f"`{table.name}`"]


def test_everything_in_a_file_is_described(tmp_path: Path) -> None:
    """Every table and trigger that a new store has stands in the page, and no other table does."""

    async def made() -> None:
        async with open_store(f"sqlite:///{tmp_path / 'store.db'}"):
            pass

    asyncio.run(made())
    with sqlite3.connect(tmp_path / "store.db") as database:
        found = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger')").fetchall()
    database.close()
    text = PAGE.read_text(encoding="utf-8")
    assert [name for (name,) in found if f"`{name}`" not in text] == []
    assert {codes(heading)[0] for heading in sections(PAGE, 3)} <= {name for (name,) in found}
