from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.cli.running import eventstore


def test_status(url: str, tmp_path: Path) -> None:
    """The status has engine, schema version, events, sessions, high water, and what this process keeps waiting."""
    assert eventstore("status", "--store", url).value == {
        "path": str(tmp_path / "store.db"),
        "engine": "sqlite",
        "engine_version": sqlite3.sqlite_version,
        "schema_version": 1,
        "events": 11,
        "sessions": 3,
        "high_water": 11,
        "held_back_by": None,
        "writer_queue": 0,
        "subscribers": 0,
        "publisher": "in process",
        "database_bytes": (tmp_path / "store.db").stat().st_size,
        "wal_bytes": 0,
    }


def test_size_of_the_write_ahead_log(url: str, tmp_path: Path) -> None:
    """While another process writes, the size of the write-ahead log is told."""
    other = sqlite3.connect(tmp_path / "store.db")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    told = eventstore("status", "--store", url).value
    assert told["wal_bytes"] == (tmp_path / "store.db-wal").stat().st_size > 0
    other.close()


def test_for_people(url: str) -> None:
    """For a person each fact is a line, and nothing holds back high water."""
    lines = dict(line.split("  ", 1) for line in eventstore("status", "--table", "--store", url).lines)
    facts = {name: fact.strip() for name, fact in lines.items()}
    assert (facts["events"], facts["high water"], facts["held back by"]) == ("11", "11", "nothing")
