"""Checkpoints beside the writer: the write-ahead log stays small, and nobody notices them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from eventstore import checkpoints
from tests.eventstore.support import MEMORY, eventually, file_at, note, opened

SEQUENCE = slice(12, 16)
"""Where the header of a write-ahead log counts how often it was written from its start again."""


def restarts(folder: Path) -> int:
    """Return how often the write-ahead log was written from its start again."""
    with (folder / "log.db-wal").open("rb") as file:
        return int.from_bytes(file.read(32)[SEQUENCE], "big")


def files(folder: Path) -> list[str]:
    """Return the names of the files in a folder."""
    return [path.name for path in folder.iterdir()]


async def test_write_ahead_log_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write-ahead log is brought to its end and used again while appends go on, long before it is at its limit."""
    monkeypatch.setattr(checkpoints, "EVERY", 50)
    monkeypatch.setattr(checkpoints, "MOST", 100)
    async with opened(file_at(tmp_path)) as log:
        for number in range(1_000):
            await log.append("a", [note(number)])
        assert restarts(tmp_path) > 0
        assert await log.stream_version("a") == 1_000


async def test_reader_that_stays_holds_up_no_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a reader keeps an old state a checkpoint does what it can; what was appended meanwhile is all there."""
    monkeypatch.setattr(checkpoints, "EVERY", 20)
    monkeypatch.setattr(checkpoints, "MOST", 40)
    async with opened(file_at(tmp_path)) as log:
        await log.append("a", [note(0)])
        with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
            for number in range(100):
                await log.append("a", [note(number)])
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
        assert [envelope.version async for envelope in log.read_stream("a")] == list(range(1, 102))


async def test_closing_waits_for_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that is closed right after an append leaves one file behind, with everything in it."""
    monkeypatch.setattr(checkpoints, "EVERY", 1)
    monkeypatch.setattr(checkpoints, "MOST", 1)
    async with opened(file_at(tmp_path)) as log:
        await asyncio.gather(*(log.append(f"stream {number}", [note(number)]) for number in range(20)))
    assert files(tmp_path) == ["log.db"]
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (20,)


async def test_checkpoint_that_fails_fails_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A checkpoint that the database refuses costs a warning, without its words, and a later one does its work."""
    monkeypatch.setattr(checkpoints, "EVERY", 10)
    refused: list[int] = []

    def refuse(_connection: sqlite3.Connection) -> int:
        refused.append(1)
        error = sqlite3.OperationalError("secret path")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    async with opened(file_at(tmp_path)) as log:
        with monkeypatch.context() as patch:
            patch.setattr(log.database.dialect, "checkpoint", refuse)
            for number in range(20):
                await log.append("a", [note(number)])
            await eventually(lambda: len(caplog.records) == len(refused) > 0)
        assert {record.levelname for record in caplog.records} == {"WARNING"}
        assert "store_unavailable" in caplog.text
        assert "secret" not in caplog.text
        for number in range(200):
            await log.append("a", [note(number)])
        assert await log.stream_version("a") == 220
        assert len(caplog.records) == len(refused)
    assert files(tmp_path) == ["log.db"]


async def test_memory_has_no_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log in memory has no write-ahead log, and so opens no second connection, which would be another database."""
    monkeypatch.setattr(checkpoints, "EVERY", 1)
    async with opened(MEMORY) as log:
        for number in range(10):
            await log.append("a", [note(number)])
        assert await log.stream_version("a") == 10
