from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.cli.running import Ran, eventstore


def tables(path: Path) -> set[tuple[str, str, str]]:
    """Return what a database is made of, line breaks aside."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    connection.close()
    return {(kind, name, " ".join(sql.split())) for kind, name, sql in rows}


def change(url: str, *statements: str) -> None:
    """Change a store behind its back."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_schema_makes_a_store(url: str, tmp_path: Path) -> None:
    """The script of `schema` makes an empty store, of the same tables, indexes and triggers as one that is opened."""
    ran = eventstore("schema")
    assert (ran.code, ran.err) == (0, "")
    with sqlite3.connect(tmp_path / "made.db") as connection:
        connection.executescript(ran.out)
    connection.close()
    assert tables(tmp_path / "made.db") == tables(Path(url.removeprefix("sqlite:///")))
    made = f"sqlite:///{tmp_path / 'made.db'}"
    assert eventstore("ls", "--json", "--store", made).value == []
    assert eventstore("doctor", "--store", made).value["findings"] == []
    assert eventstore("append", "new", "--expect", "0", "--role", "user", "--text", "Hi", "--store", made).code == 0
    assert eventstore("verify", "--store", made).code == 0


def test_schema_needs_no_store(tmp_path: Path) -> None:
    """The script is the same each time, and neither needs nor makes a store."""
    url = f"sqlite:///{tmp_path / 'none.db'}"
    assert eventstore("schema", "--store", url) == eventstore("schema")
    assert list(tmp_path.glob("none*")) == []


def brought_up(ran: Ran) -> dict[str, bool]:
    """Return the projections that were filled, and whether each was stale."""
    assert (ran.code, ran.err) == (0, "")
    return {one["name"]: one["stale"] for one in ran.value["projections"]}


def test_nothing_to_migrate(url: str) -> None:
    """A store of this version is left as it is, and that is said."""
    ran = eventstore("migrate", "--store", url)
    assert (ran.value["from_version"], ran.value["to_version"], brought_up(ran)) == (1, 1, {})
    assert eventstore("migrate", "--table", "--store", url).lines == [
        "nothing to do: the tables are those of schema version 1"
    ]


def test_migrate_fills_projections(url: str) -> None:
    """Projections that are stale, older or missing are filled again, the others are left, and the store is whole."""
    change(
        url,
        "UPDATE projections SET stale = 1 WHERE name = 'directory'",
        "UPDATE projections SET revision = 0 WHERE name = 'message_tree'",
        "UPDATE assistant_messages SET role = 'nobody'",
    )
    assert eventstore("ls", "--store", url).code == 8
    ran = eventstore("migrate", "--store", url)
    assert brought_up(ran) == {"directory": True, "message_tree": False}
    assert ran.value["events"] == 11
    tree = next(one for one in ran.value["projections"] if one["name"] == "message_tree")
    assert (tree["from_revision"], tree["to_revision"]) == (0, 3)
    assert eventstore("verify", "--store", url).code == 0


def test_migrate_for_people(url: str) -> None:
    """For a person what was done is a line for each projection."""
    change(
        url,
        "UPDATE projections SET stale = 1 WHERE name = 'directory'",
        "UPDATE projections SET revision = 0 WHERE name = 'message_tree'",
        "DELETE FROM projections WHERE name = 'search_index'",
        "DROP TABLE assistant_fts_vocabulary",
        "DROP TABLE assistant_fts",
        "DROP TABLE search_checkpoint",
    )
    *lines, last = eventstore("migrate", "--table", "--store", url).lines
    assert lines == [
        "directory was stale: filled again",
        "message_tree was of revision 0, is of 3: filled again",
        "search_index was missing: filled again",
    ]
    assert last.startswith("read 11 events in ")


def test_migrate_all_or_nothing(url: str) -> None:
    """A migration that fails leaves the store as it was."""
    change(
        url,
        "UPDATE projections SET stale = 1 WHERE name = 'directory'",
        # There is a table already where one of a new projection has to be.
        "DELETE FROM projections WHERE name = 'message_tree'",
    )
    before = tables(Path(url.removeprefix("sqlite:///")))
    assert eventstore("migrate", "--store", url).code != 0
    assert tables(Path(url.removeprefix("sqlite:///"))) == before
    assert eventstore("ls", "--store", url).code == 8


def test_newer_store_is_refused(url: str) -> None:
    """A store that a newer version wrote is not migrated, and the exit code is 8."""
    change(url, "INSERT INTO eventstore_schema VALUES (999, 0)")
    ran = eventstore("migrate", "--store", url)
    assert (ran.code, ran.out) == (8, "")
    assert "999" in ran.err


def test_older_store_names_the_command(url: str) -> None:
    """A store whose tables are of an older version is refused with the command that brings it up to date."""
    change(url, "UPDATE eventstore_schema SET version = -1")
    ran = eventstore("ls", "--store", url)
    assert (ran.code, ran.out) == (8, "")
    assert f"hint: `eventstore migrate --store {url}` brings it up to date\n" in ran.err
