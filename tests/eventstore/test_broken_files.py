"""Databases that something is wrong with: what fails is told by a typed error, and the rest works."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from eventstore.dialect import dialect_of
from eventstore.errors import EventStoreError, IntegrityError, NotSupportedError, StoreClosedError
from tests.eventstore.support import MEMORY, Tally, everything, file_at, message, notes, opened, stream, texts_of

PAGE = 4096


def overwrite(file: Path, start: int, length: int) -> None:
    """Write nonsense over a part of a file."""
    with file.open("r+b") as opened_file:
        opened_file.seek(start)
        opened_file.write(b"\xa5" * length)


async def test_damaged_page_is_an_integrity_error(tmp_path: Path) -> None:
    """Reading over a damaged page is an IntegrityError, at the call that comes upon it."""
    url, file = file_at(tmp_path), tmp_path / "log.db"
    async with opened(url) as log:
        for number in range(40):
            await log.append("s", [message(f"m{number}", "x" * 2_000)])
    overwrite(file, PAGE * 20, PAGE * 15)
    with pytest.raises(IntegrityError, match="damaged"):
        async with opened(url) as log:
            await everything(log)


@pytest.mark.parametrize("what", ["connection", "database"])
async def test_writer_that_was_closed_is_told(tmp_path: Path, what: str) -> None:
    """When somebody closes the writing connection appends are refused at once, and the log can still be closed."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", notes("a"))
        if what == "connection":
            await log.database._writer.driver_connection.close()
        else:
            await log.database.on_writer(lambda connection: connection.close())
        async with asyncio.timeout(2):
            outcomes = await asyncio.gather(*(log.append("s", notes(n)) for n in range(3)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreClosedError}
        assert texts_of(await stream(log)) == ["a"]


@pytest.mark.parametrize("action", ["ROLLBACK", "ABORT", "FAIL"])
async def test_statement_that_the_database_refuses(tmp_path: Path, action: str) -> None:
    """A trigger of somebody else's that refuses an event, even by ending the transaction, costs that append alone."""
    async with opened(file_at(tmp_path), Tally()) as log:
        await log.append("s", notes("a"))
        with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
            condition = "WHEN NEW.payload LIKE '%poison%'"
            refuse = f"SELECT RAISE({action}, 'not this one')"
            connection.execute(f"CREATE TRIGGER guard BEFORE INSERT ON events {condition} BEGIN {refuse}; END")
            connection.commit()
        with pytest.raises(EventStoreError, match="not this one"):
            await log.append("s", notes("b", "poison"))
        await log.append("s", notes("c"), expected=1)
        assert texts_of(await stream(log)) == ["a", "c"]


def test_old_sqlite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An SQLite that is older than the oldest that will do is refused when the store is opened, with its version."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 39, 4))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.39.4")
    with pytest.raises(NotSupportedError, match=r"3\.39\.4"):
        dialect_of(MEMORY)


def test_flaws_come_with_advice() -> None:
    """What is not as it should be in a database's state is told with what can be done about it."""
    good = {"journal_mode": "wal", "fts5": True, "freelist_count": 0, "page_count": 1_000_000}
    flaws = dialect_of(MEMORY).flaws
    assert flaws(good) == []
    for changed, about in (
        ({"journal_mode": "delete"}, "WAL"),
        ({"fts5": False}, "FTS5"),
        ({"freelist_count": 300_000}, "free pages"),
    ):
        ((flaw, advice),) = flaws({**good, **changed})
        assert about in flaw
        assert advice
