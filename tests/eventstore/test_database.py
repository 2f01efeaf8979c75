"""The oddities of the embedded engine: settings of every connection, locks, a full disk, memory, opening."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from eventstore.crossing import run_on_thread
from eventstore.dialect import BUSY_SECONDS, READERS, WRITER_SETTINGS, dialect_of
from eventstore.errors import InvalidArgumentError, NotSupportedError, StoreUnavailableError
from eventstore.heads import Head, Proposal
from eventstore.limits import Limits
from eventstore.log import EventLog, open_log
from eventstore.ports import Tx
from eventstore.publisher import InProcessPublisher
from tests.eventstore.support import (
    MEMORY,
    Tally,
    everything,
    file_at,
    message,
    note,
    notes,
    opened,
    rows_of,
    sql,
    stream,
    tallied,
    texts_of,
    write_lock,
)

SETTINGS = {
    "journal_mode": "wal",
    "busy_timeout": BUSY_SECONDS * 1000,
    "foreign_keys": 1,
    "synchronous": 2,
    "temp_store": 2,
    "secure_delete": 2,
}


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EventLog]:
    """Return an empty log in a file."""
    async with opened(file_at(tmp_path), Tally()) as log:
        yield log


def settings_of(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return what a connection is set to."""
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS}


async def all_connections(log: EventLog) -> list[dict[str, Any]]:
    """Return the settings of the writer and of every connection that the pool has left for others."""
    found = [await log.database.on_writer(settings_of)]
    taken = []
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(0.2):
                connection: Any = await log.database.engine.raw_connection()
            taken.append(connection)
            found.append(await run_on_thread(connection.driver_connection, settings_of))
    for connection in taken:
        connection.close()
    return found


async def test_every_connection_is_set_alike(log: EventLog) -> None:
    """Writer and pooled connections have the intended settings, WAL and full synchronisation among them (SQL-2)."""
    await log.append("s", notes("a"))
    found = await all_connections(log)
    assert len(found) > READERS
    assert found == [SETTINGS] * len(found)


async def test_readers_are_set_alike(log: EventLog) -> None:
    """The connections that read at the same time have the intended settings too."""
    reads = [
        log.database.read(lambda tx: {name: tx.fetch(sql(f"PRAGMA {name}"))[0][0] for name in SETTINGS})
        for _ in "12345"
    ]
    assert await asyncio.gather(*reads) == [SETTINGS] * 5


async def test_connections_of_the_engine_are_set_alike(log: EventLog) -> None:
    """Who uses the store's engine directly gets the same settings."""
    async with log.database.engine.connect() as connection:
        for name, value in SETTINGS.items():
            assert (await connection.execute(text(f"PRAGMA {name}"))).scalar() == value


async def test_writer_has_a_cache_of_its_own(log: EventLog) -> None:
    """The writing connection alone has the large page cache."""
    size = await log.database.on_writer(lambda connection: connection.execute("PRAGMA cache_size").fetchone()[0])
    assert size == WRITER_SETTINGS["cache_size"]
    assert await log.database.read(lambda tx: tx.fetch(sql("PRAGMA cache_size"))[0][0]) != size


async def test_normal_synchronisation_is_an_option(tmp_path: Path) -> None:
    """With `synchronous="normal"` every connection has that setting."""
    dialect = dialect_of(file_at(tmp_path), synchronous="normal")
    log = await open_log(dialect, [], publisher=InProcessPublisher(), limits=Limits())
    found = await all_connections(log)
    await log.close()
    assert found == [{**SETTINGS, "synchronous": 1}] * len(found)


async def test_write_lock_is_taken_at_the_beginning(log: EventLog, tmp_path: Path) -> None:
    """A decision runs with the write lock held, so that what it reads cannot be outdated when it writes (SQL-2)."""
    tries: list[str] = []

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        with contextlib.closing(sqlite3.connect(tmp_path / "log.db", timeout=0, isolation_level=None)) as intruder:
            try:
                intruder.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                tries.append(error.sqlite_errorname)
        return notes("a"), None

    await log.transact("s", decide)
    assert tries == ["SQLITE_BUSY"]


async def test_append_waits_for_another_s_write_lock(log: EventLog, tmp_path: Path) -> None:
    """While another connection holds the write lock an append waits, reads go on, and then it is written (SQL-2)."""
    await log.append("s", notes("a"))
    with write_lock(tmp_path / "log.db"):
        appending = asyncio.ensure_future(log.append("s", notes("b"), expected=1))
        await asyncio.sleep(1)
        assert not appending.done()
        assert texts_of(await stream(log)) == ["a"]
    async with asyncio.timeout(2):
        assert (await appending).envelopes[0].version == 2


async def test_waiting_appends_become_one_group(log: EventLog, tmp_path: Path) -> None:
    """What came while the write lock was held by another is committed together."""
    tally: Any = log.projections[0]
    await log.append("s", notes("a"))
    with write_lock(tmp_path / "log.db"):
        appending = [asyncio.ensure_future(log.append("s", notes(n))) for n in range(20)]
        await asyncio.sleep(0.1)
    await asyncio.gather(*appending)
    assert tally.groups[0] == 1
    assert max(tally.groups) >= 19


async def test_lock_held_too_long_is_a_typed_error(log: EventLog, tmp_path: Path) -> None:
    """A lock that outlasts the stated limit is a StoreUnavailableError for all who wait, and the next append works."""
    await log.database.on_writer(lambda connection: connection.execute("PRAGMA busy_timeout=50"))
    with write_lock(tmp_path / "log.db"):
        outcomes = await asyncio.gather(*(log.append("s", notes(n)) for n in range(5)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailableError}
    assert (await log.append("s", notes("a"))).envelopes[0].position == 1


async def test_open_reader_does_not_hold_up_a_writer(log: EventLog, tmp_path: Path) -> None:
    """A program that reads in a long transaction sees its own state, and appends go on beside it (SQL-2)."""
    await log.append("s", notes("a"))
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM events").fetchone() == (1,)
        async with asyncio.timeout(1):
            await log.append("s", notes("b"))
        assert reader.execute("SELECT COUNT(*) FROM events").fetchone() == (1,)


@pytest.mark.parametrize("flush", [False, True], ids=["at the end", "in between"])
async def test_full_disk_loses_nothing_acknowledged(log: EventLog, tmp_path: Path, flush: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """On a full disk whoever is told of a success finds it stored, and the others get an error and leave nothing."""
    await log.append("s", [message("m", "x" * 10_000)])
    await log.append("s", notes("warm"))
    pages = await log.database.on_writer(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    await log.database.on_writer(lambda c: c.execute(f"PRAGMA max_page_count={pages + 40}"))

    def decide(tx: Tx, head: Head) -> tuple[Proposal, None]:
        if flush:
            tx.flush()
        return [note(head.version), message(f"m{head.version}", "x" * 30_000)], None

    outcomes = await asyncio.gather(*(log.transact("s", decide) for _ in range(20)), return_exceptions=True)
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert {type(outcome) for outcome in failed} == {StoreUnavailableError}
    written = [e for outcome in outcomes if not isinstance(outcome, BaseException) for e in outcome.envelopes]
    assert [e.hash for e in await stream(log)][2:] == [e.hash for e in written]
    await log.database.on_writer(lambda c: c.execute("PRAGMA max_page_count=1000000"))
    await log.transact("s", decide)
    events = await stream(log)
    assert [e.version for e in events] == list(range(1, len(events) + 1))
    assert len(await log.read(tallied)) == (len(events)) // 2
    assert rows_of(tmp_path / "log.db", "PRAGMA integrity_check") == [("ok",)]


async def test_memory_is_private_to_its_store() -> None:
    """Stores in memory share nothing, and all tasks of one see the same (SQL-2)."""
    async with opened(MEMORY) as first, opened(MEMORY) as second, opened("sqlite:///:memory:") as third:
        await asyncio.gather(*(first.append("s", notes(n)) for n in range(20)))
        assert len(set(await asyncio.gather(*(first.stream_version("s") for _ in range(10))))) == 1
        assert await second.stream_version("s") == await third.stream_version("s") == 0
        async with first.database.engine.connect() as connection:
            assert (await connection.execute(text("SELECT COUNT(*) FROM events"))).scalar() == 20


async def test_reopened_file_has_everything(tmp_path: Path) -> None:
    """A file that is opened again has every event, and versions and positions go on."""
    for number in range(1, 4):
        async with opened(file_at(tmp_path), Tally()) as log:
            committed = await log.append("s", notes(number), expected=number - 1)
            assert (committed.envelopes[0].version, committed.envelopes[0].position) == (number, number)
            assert texts_of(await everything(log)) == await log.read(tallied) == [str(n + 1) for n in range(number)]


async def test_repeats_are_recognised_after_a_restart(tmp_path: Path) -> None:
    """Event ids are remembered for as long as their events are, across restarts and by every process (CON-4)."""
    async with opened(file_at(tmp_path)) as log:
        first = await log.append("s", notes("a", "b"), event_ids=["k1", "k2"], metadata={"n": 1})
    async with opened(file_at(tmp_path)) as log:
        for expected in (0, 2, 5):
            assert await log.append("s", notes("a", "b"), event_ids=["k1", "k2"], expected=expected) == first
        assert len(await everything(log)) == 2


def test_closed_file_is_whole_without_its_log(tmp_path: Path) -> None:
    """After closing, the file alone holds everything: the write-ahead log is gone."""

    async def write_and_read() -> None:
        async with opened(file_at(tmp_path)) as log:
            await log.append("s", notes("a"))
            await stream(log)

    asyncio.run(write_and_read())
    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


@pytest.mark.parametrize("url", ["mysql://localhost/x", "postgresql://localhost/x"])
def test_unknown_engine_is_refused(url: str) -> None:
    """An engine that is not built is a NotSupportedError."""
    with pytest.raises(NotSupportedError):
        dialect_of(url)


MALFORMED = ["log.db", "", "sqlite:log.db", "sqlite://host/log.db", "sqlite:///log.db?mode=ro", "sqlite:///a\0b"]


@pytest.mark.parametrize("url", MALFORMED, ids=ascii)
def test_malformed_url_is_refused(url: str) -> None:
    """What is no database URL is an InvalidArgumentError."""
    with pytest.raises(InvalidArgumentError, match="url"):
        dialect_of(url)


def test_malformed_synchronous_is_refused() -> None:
    """Synchronisation is full or normal, and nothing else."""
    with pytest.raises(InvalidArgumentError, match="synchronous"):
        dialect_of(MEMORY, synchronous="off")  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite+aiosqlite:///{}"])
async def test_driver_in_the_url_is_optional(url: str, tmp_path: Path) -> None:
    """The driver's suffix may be given or left out."""
    async with opened(url.format(tmp_path / "log.db")) as log:
        await log.append("s", notes("a"))
    assert rows_of(tmp_path / "log.db", "SELECT COUNT(*) FROM events") == [(1,)]


async def test_file_that_cannot_be_opened_is_a_typed_error(tmp_path: Path) -> None:
    """A folder that does not exist, and a file that is no database, are StoreUnavailableErrors at once."""
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 100)
    for name in ("nowhere/log.db", "text.db", "."):
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError):
            async with opened(file_at(tmp_path, name)):
                pass
        assert time.monotonic() - began < 2


async def test_file_that_is_gone_is_told(tmp_path: Path) -> None:
    """A reader that cannot be given a connection, since the file is gone, is told so by a StoreUnavailableError."""
    folder = tmp_path / "folder"
    folder.mkdir()
    async with opened(file_at(folder)) as log:
        await log.append("s", notes("a"))
        shutil.rmtree(folder)
        with pytest.raises(StoreUnavailableError):
            await stream(log)
