"""Tables are made once, by whoever comes first, never half, and never for a database of another version."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path
from typing import ClassVar

import pytest

from eventstore.errors import EventStoreError, ProjectionError, SchemaVersionError
from eventstore.migrations import MIGRATIONS
from tests.eventstore.support import (
    MEMORY,
    Tally,
    everything,
    file_at,
    notes,
    opened,
    rows_of,
    tallied,
    texts_of,
    threads_left,
)

NAMES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


class NewTally(Tally):
    """The same projection after its meaning has changed."""

    revision: ClassVar[int] = 2


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path at which `file_at` puts a database."""
    return tmp_path / "log.db"


def change(file: Path, *statements: str) -> None:
    """Run statements on a database file, from outside."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def test_fresh_database_gets_its_tables(tmp_path: Path, file: Path) -> None:
    """Opening an empty database makes the tables, and records the schema's version with the time."""
    before = time.time_ns() // 1000
    async with opened(file_at(tmp_path), Tally()):
        pass
    tables = ["events", "eventstore_schema", "projections", "streams", "tallies"]
    assert [name for (name,) in rows_of(file, NAMES)] == tables
    [(version, applied_at)] = rows_of(file, "SELECT version, applied_at FROM eventstore_schema")
    assert version == len(MIGRATIONS)
    assert before <= applied_at <= time.time_ns() // 1000
    assert rows_of(file, "SELECT name, revision FROM projections") == [("tally", 1)]


async def test_known_database_is_left_as_it_is(tmp_path: Path, file: Path) -> None:
    """Opening a database that has its tables changes nothing of them."""
    async with opened(file_at(tmp_path), Tally()):
        pass
    before = rows_of(file, "PRAGMA schema_version"), rows_of(file, "SELECT * FROM eventstore_schema")
    for _ in range(3):
        async with opened(file_at(tmp_path), Tally()):
            pass
    assert (rows_of(file, "PRAGMA schema_version"), rows_of(file, "SELECT * FROM eventstore_schema")) == before


@pytest.mark.parametrize("create_tables", [True, False])
async def test_newer_database_is_refused(tmp_path: Path, file: Path, create_tables: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A database whose schema is newer than the code is a SchemaVersionError that tells both versions."""
    async with opened(file_at(tmp_path), Tally()) as log:
        await log.append("s", notes("a"))
    change(file, "INSERT INTO eventstore_schema VALUES (99, 0)")
    with pytest.raises(SchemaVersionError, match="newer") as caught:
        async with opened(file_at(tmp_path), NewTally(), create_tables=create_tables):
            pass
    assert (caught.value.found, caught.value.supported) == (99, len(MIGRATIONS))
    assert rows_of(file, "SELECT COUNT(*) FROM events") == [(1,)]


@pytest.mark.parametrize("url", ["file", "memory"])
async def test_tables_are_not_made_against_one_s_will(tmp_path: Path, file: Path, url: str) -> None:
    """With `create_tables=False` an empty database is a SchemaVersionError, and no table is made."""
    with pytest.raises(SchemaVersionError, match="create_tables") as caught:
        async with opened(file_at(tmp_path) if url == "file" else MEMORY, Tally(), create_tables=False):
            pass
    assert (caught.value.found, caught.value.supported) == (None, len(MIGRATIONS))
    if url == "file":
        assert rows_of(file, "SELECT * FROM sqlite_master") == []


async def test_refused_opening_leaves_nothing_open(tmp_path: Path) -> None:
    """An opening that is refused leaves no thread."""
    import threading

    before = threading.active_count()
    for _ in range(5):
        with pytest.raises(SchemaVersionError):
            async with opened(file_at(tmp_path), create_tables=False):
                pass
    assert await threads_left(before) == 0


async def test_existing_tables_can_be_used_without_making_any(tmp_path: Path, file: Path) -> None:
    """With `create_tables=False` a database that has all its tables is opened and written as always."""
    async with opened(file_at(tmp_path), Tally()):
        pass
    before = rows_of(file, "PRAGMA schema_version")
    async with opened(file_at(tmp_path), Tally(), create_tables=False) as log:
        await log.append("s", notes("a"))
        assert await log.read(tallied) == ["a"]
    assert rows_of(file, "PRAGMA schema_version") == before


async def test_projection_s_tables_are_not_made_against_one_s_will(tmp_path: Path, file: Path) -> None:
    """With `create_tables=False` a projection whose tables are missing is a SchemaVersionError too."""
    async with opened(file_at(tmp_path)):
        pass
    with pytest.raises(SchemaVersionError, match="create_tables"):
        async with opened(file_at(tmp_path), Tally(), create_tables=False):
            pass
    assert ("tallies",) not in rows_of(file, NAMES)


async def test_projection_of_an_older_revision_is_filled_again(tmp_path: Path, file: Path) -> None:
    """A projection whose revision has risen is made anew from the log when the store is opened for writing."""
    url = file_at(tmp_path)
    async with opened(url, Tally()) as log:
        await log.append("s", notes("a"))
    with pytest.raises(SchemaVersionError):
        async with opened(url, NewTally(), create_tables=False):
            pass
    async with opened(url, NewTally()) as log:
        await log.append("s", notes("b"))
        assert await log.read(tallied) == ["a", "b"]
    assert rows_of(file, "SELECT name, revision, stale FROM projections") == [("tally", 2, 0)]


async def test_projection_of_a_newer_revision_is_refused(tmp_path: Path) -> None:
    """Tables that a newer revision of a projection has filled are a SchemaVersionError that names it."""
    async with opened(file_at(tmp_path), NewTally()):
        pass
    with pytest.raises(SchemaVersionError) as caught:
        async with opened(file_at(tmp_path), Tally()):
            pass
    assert "tally" in caught.value.advice


async def test_projection_that_missed_appends_is_filled_again(tmp_path: Path, file: Path) -> None:
    """What a process appends without knowing a projection is in it when the store is opened with it again."""
    url = file_at(tmp_path)
    async with opened(url, Tally()) as log:
        await log.append("s", notes("a"))
        async with opened(url) as other:
            await other.append("s", notes("b"))
        await log.append("s", notes("c"))
    async with opened(url, Tally()) as log:
        assert await log.read(tallied) == ["a", "b", "c"]
    assert rows_of(file, "SELECT name, stale FROM projections") == [("tally", 0)]


async def test_new_projection_is_filled_from_the_log(tmp_path: Path) -> None:
    """A projection that a log did not have before is filled with all its events when the log is opened."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes(*range(2_500)))
    for _ in range(2):
        async with opened(file_at(tmp_path), Tally()) as log:
            assert await log.read(tallied) == texts_of(await everything(log))
    async with opened(file_at(tmp_path), Tally()) as log:
        await log.append("s", notes("new"))
        assert len(await log.read(tallied)) == 2_501


async def test_projection_that_cannot_be_filled_is_not_made(tmp_path: Path, file: Path) -> None:
    """When a new projection cannot be filled, opening fails and the database is as it was."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes("a", "poison"))
    before = rows_of(file, "SELECT * FROM sqlite_master")
    with pytest.raises(ProjectionError, match="poison"):
        async with opened(file_at(tmp_path), Tally("poison")):
            pass
    assert rows_of(file, "SELECT * FROM sqlite_master") == before
    assert rows_of(file, "SELECT * FROM projections") == []
    async with opened(file_at(tmp_path), Tally()) as log:
        assert await log.read(tallied) == ["a", "poison"]


async def test_openers_in_one_process_do_not_race(tmp_path: Path, file: Path) -> None:
    """Many tasks that open a fresh file at once all get a log, and the tables are made once."""

    async def open_and_append(task: int) -> None:
        async with opened(file_at(tmp_path), Tally()) as log:
            await log.append("s", notes(task))

    await asyncio.gather(*map(open_and_append, range(12)))
    assert rows_of(file, "SELECT COUNT(*) FROM eventstore_schema") == [(1,)]
    assert sorted(rows_of(file, "SELECT version FROM events")) == [(version,) for version in range(1, 13)]
    assert rows_of(file, "SELECT COUNT(*) FROM tallies") == [(12,)]


async def test_openers_fill_a_new_projection_once(tmp_path: Path, file: Path) -> None:
    """A projection that several openers find missing at the same time is filled once, beside a writer too."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes(*range(500)))

    async def open_it() -> list[str]:
        async with opened(file_at(tmp_path), Tally()) as log:
            return await log.read(tallied)

    found = await asyncio.gather(*(open_it() for _ in range(5)))
    assert all(one == [str(n) for n in range(500)] for one in found)
    assert rows_of(file, "SELECT COUNT(*) FROM tallies") == [(500,)]


async def test_database_of_somebody_else_is_left_alone(file: Path, tmp_path: Path) -> None:
    """A file in which another program has a table of our name is refused with a typed error and left as it is."""
    change(file, "CREATE TABLE events (theirs)", "INSERT INTO events VALUES (1)")
    with pytest.raises(EventStoreError):
        async with opened(file_at(tmp_path)):
            pass
    assert rows_of(file, NAMES) == [("events",)]
    assert rows_of(file, "SELECT * FROM events") == [(1,)]
