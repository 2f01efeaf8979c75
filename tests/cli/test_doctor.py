from __future__ import annotations

import asyncio
import datetime as dt
import json
import sqlite3
from pathlib import Path

import pytest

from sessions import SessionManager, open_store
from tests.cli.running import Ran, eventstore


def change(url: str, *statements: str) -> None:
    """Change a store behind its back."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def findings(ran: Ran) -> list[tuple[str, bool]]:
    """Return the kinds of what a doctor found, and whether stored data is wrong."""
    return [(finding["kind"], finding["integrity"]) for finding in ran.value["findings"]]


def test_healthy(url: str) -> None:
    """A store in order has no findings; versions, and the settings of both kinds of connections, are told."""
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, ran.err) == (0, "")
    told = ran.value
    assert (told["ok"], told["findings"]) == (True, [])
    assert {"python", "sqlite", "sqlalchemy", "aiosqlite", "msgspec"} <= told["versions"].keys()
    for settings in told["connections"].values():
        assert (settings["journal_mode"], settings["busy_timeout"], settings["fts5"]) == ("wal", 60_000, True)
        assert settings["synchronous"] == 2
    assert told["connections"]["writer"]["cache_size"] < told["connections"]["reader"]["cache_size"]
    assert all(one["revision"] == one["supported"] and not one["stale"] for one in told["projections"])
    assert told["clock"]["ahead_seconds"] == 0
    assert eventstore("doctor", "--store", url, "--table").lines[-1] == "all is well"


def test_no_content(url: str, tmp_path: Path) -> None:
    """However much is wrong, nothing that was said is printed, nor a session's name or id, nor where the store is."""
    change(
        url,
        "DROP TRIGGER events_no_delete",
        "DELETE FROM streams WHERE stream_id = 'walk-2'",
        "UPDATE projections SET stale = 1",
    )
    for form in ("--json", "--table"):
        out = eventstore("doctor", form, "--store", url).out
        assert [word for word in ("walk", "boots", "the sea", str(tmp_path)) if word in out] == []


def test_rows_of_no_session(url: str) -> None:
    """Rows whose session does not exist are counted by their table, and the exit code is 5."""
    change(url, "DELETE FROM streams WHERE stream_id = 'walk-2'")
    ran = eventstore("doctor", "--store", url)
    assert ran.code == 5
    said = [finding["what"] for finding in ran.value["findings"]]
    assert "3 rows of events belong to no session that exists" in said
    assert "2 rows of assistant_messages belong to no session that exists" in said
    assert f"hint: `eventstore verify --store {url}` looks at every event\n" in ran.err


@pytest.mark.parametrize("guard", ["events_no_update", "events_no_delete", "events_no_replace"])
def test_missing_trigger(url: str, guard: str) -> None:
    """A trigger that is gone is named, and the exit code is 5."""
    change(url, f"DROP TRIGGER {guard}")
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, findings(ran)) == (5, [("guard", True)])
    assert guard in ran.value["findings"][0]["what"]
    assert eventstore("doctor", "--store", url, "--table").code == 5


def test_missing_table(url: str) -> None:
    """A table that is gone is named, and the exit code is 5."""
    change(url, "DROP TABLE message_runs")
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, findings(ran)) == (5, [("table", True)])


def test_damaged_file(url: str) -> None:
    """What the engine finds wrong with its file is told, and the exit code is 5."""
    change(
        url,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET sql = replace(sql, 'role TEXT NOT NULL', 'role TEXT NOT NULL CHECK (role = 1)') "
        "WHERE name = 'assistant_messages'",
    )
    ran = eventstore("doctor", "--store", url)
    assert ran.code == 5
    assert set(findings(ran)) == {("file", True)}


def test_projection_out_of_date(url: str) -> None:
    """A projection that is stale or of another revision is no damage: what to do is said, and the exit code is 0."""
    change(
        url,
        "UPDATE projections SET stale = 1 WHERE name = 'directory'",
        "UPDATE projections SET revision = 99 WHERE name = 'search_index'",
        "DELETE FROM projections WHERE name = 'message_tree'",
        "INSERT INTO projections VALUES ('of_an_application', 1, 0)",
    )
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, findings(ran)) == (0, [("projection", False)] * 3)
    advice = {one["what"].split()[0]: one["advice"] for one in ran.value["findings"]}
    assert advice["directory"] == advice["message_tree"] == "run `eventstore migrate`"
    assert "newest version" in advice["a"]


def test_newer_store(url: str) -> None:
    """A store that a newer version wrote can be looked at, and that is what is found."""
    change(url, "INSERT INTO eventstore_schema VALUES (999, 0)")
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, findings(ran)) == (0, [("version", False)])
    assert ran.value["schema_version"] == 999


def test_journal_and_free_pages(url: str) -> None:
    """Another journal mode, and a file that is mostly free, are told with what helps."""
    change(
        url,
        "CREATE TABLE t (x)",
        "INSERT INTO t SELECT zeroblob(60000000)",
        "DROP TABLE t",
    )
    with sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, findings(ran)) == (0, [("setting", False)] * 2)
    assert "VACUUM" in ran.value["findings"][1]["advice"]


def test_clock(tmp_path: Path) -> None:
    """An event from the future, by more than a minute, is a finding about clocks."""
    url = f"sqlite:///{tmp_path / 'store.db'}"

    async def fill() -> None:
        later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
        async with open_store(url, clock=lambda: later) as store:
            await SessionManager(store).create("Later", id="later")

    asyncio.run(fill())
    ran = eventstore("doctor", "--store", url)
    assert (ran.code, findings(ran)) == (0, [("clock", False)])
    assert 3_500 < json.loads(ran.out)["clock"]["ahead_seconds"] <= 3_600
