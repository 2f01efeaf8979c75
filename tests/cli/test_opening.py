from __future__ import annotations

import hashlib
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.cli.running import eventstore

READING = [
    ["ls"],
    ["show", "walk"],
    ["graph", "walk"],
    ["log", "walk"],
    ["log", "--all", "-p"],
    ["event", "6"],
    ["tail", "--all", "--from", "start", "--exit"],
    ["search", "walk"],
    ["export", "walk"],
    ["verify"],
    ["status"],
    ["stats"],
    ["doctor"],
    ["migrate"],
    ["path"],
]


def shown(*arguments: str) -> str:
    """Return the id of the session that a command shows."""
    ran = eventstore("show", *arguments)
    assert ran.code == 0, ran.err
    return ran.lines[2].split("`")[1]


@pytest.mark.parametrize("command", [command for command in READING if command != ["path"]], ids=" ".join)
def test_missing_store(tmp_path: Path, command: list[str]) -> None:
    """Without a store a reading command says so, says what makes one, and makes none itself."""
    url = f"sqlite:///{tmp_path / 'no such.db'}"
    ran = eventstore(*command, "--store", url)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        f"error: there is no store at {tmp_path / 'no such.db'}\n"
        f"hint: `eventstore import auto PATH --store '{url}'` makes one, `eventstore demo` shows one\n"
    )
    assert list(tmp_path.glob("no such*")) == []
    assert eventstore("rebuild", "--store", url).code == 3


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_writes_nothing(tmp_path: Path, url: str, command: list[str]) -> None:
    """A reading command leaves every byte of the store as it was, and no file beside it."""

    def state() -> dict[str, str]:
        files = tmp_path.glob("store.db*")
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    before = state()
    assert eventstore(*command, "--store", url).code == 0
    assert state() == before


def test_file_without_a_store(tmp_path: Path) -> None:
    """A database that holds no store, or an empty file, is no store."""
    (tmp_path / "empty.db").touch()
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    ran = eventstore("ls", "--store", f"sqlite:///{tmp_path / 'empty.db'}")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: {tmp_path / 'empty.db'} holds no store\nhint: `eventstore import")
    ran = eventstore("ls", "--store", f"sqlite:///{tmp_path / 'other.db'}")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: {tmp_path / 'other.db'} is another program's database and holds no store\n")
    assert "import" not in ran.err


def test_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """What would write refuses a database of another program, and changes no byte of it."""
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = (tmp_path / "other.db").read_bytes()
    source = Path(__file__).parents[1] / "fixtures" / "shared" / "chatgpt" / "tree-branches"
    ran = eventstore("import", "auto", str(source), "--store", f"sqlite:///{tmp_path / 'other.db'}")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {tmp_path / 'other.db'} is another program's database\n")
    assert (tmp_path / "other.db").read_bytes() == before
    assert [file.name for file in tmp_path.glob("other*")] == ["other.db"]


def test_projection_that_must_be_filled_again(tmp_path: Path, url: str) -> None:
    """A store of which a projection is out of date says what fills it again."""
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE projections SET stale = 1")
    connection.close()
    ran = eventstore("ls", "--store", url)
    assert (ran.code, ran.out) == (8, "")
    assert ran.err == (
        f"error: {tmp_path / 'store.db'} has to be filled again from its log\n"
        f"hint: `eventstore migrate --store {url}` brings it up to date\n"
    )
    assert eventstore("migrate", "--store", url).code == 0
    assert eventstore("ls", "--store", url).code == 0


def test_data_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder that cannot be made is a store that cannot be reached."""
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null/data")
    ran = eventstore("import", "auto", __file__)
    assert (ran.code, ran.out) == (6, "")
    assert ran.err.startswith("error: /dev/null/data/eventstore: ")


def test_file_that_is_no_database(tmp_path: Path) -> None:
    """A file that is no database is a store that cannot be reached."""
    (tmp_path / "notes.txt").write_text("no database " * 100, encoding="utf-8")
    ran = eventstore("ls", "--store", f"sqlite:///{tmp_path / 'notes.txt'}")
    assert (ran.code, ran.out) == (6, "")


def test_store_of_another_schema(tmp_path: Path, url: str) -> None:
    """A store that a newer version wrote is refused with the exit code of its own."""
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("INSERT INTO eventstore_schema VALUES (999, 0)")
    connection.close()
    ran = eventstore("ls", "--store", url)
    assert (ran.code, ran.out) == (8, "")
    error, hint = ran.err.splitlines()
    assert "999" in error
    assert "newer" in hint


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("chats.db", "sqlite:///chats.db"),
        ("sqlite://", "a store in memory ends with the command that made it"),
        ("mysql://localhost/chats", "mysql"),
    ],
)
def test_url_that_is_none(url: str, said: str) -> None:
    """What is no URL of a store is a usage error, with the right URL for the name of a file."""
    ran = eventstore("ls", "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_folder_of_a_new_store_must_be_there(tmp_path: Path) -> None:
    """A new store is not made in a folder that is not there."""
    ran = eventstore("demo", "--store", f"sqlite:///{tmp_path / 'no' / 'new.db'}")
    assert (ran.code, ran.out) == (3, "")
    assert not (tmp_path / "no").exists()


def test_store_before_or_after_the_command(url: str) -> None:
    """--store may stand before the command or after it, and the one after it counts."""
    assert eventstore("--store", url, "ls").records
    assert eventstore("--store", "sqlite:////no/such.db", "ls", "--store", url).records


def test_environment_names_the_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the store when the command line does not, and hints then need not repeat it."""
    monkeypatch.setenv("EVENTSTORE_URL", url)
    assert eventstore("ls").records
    assert (
        eventstore("show", "no such").err == "error: there is no session 'no such'\nhint: `eventstore ls` lists them\n"
    )
    assert eventstore("ls", "--store", "sqlite:////no/such.db").code == 3


def test_beginning_of_an_id(url: str) -> None:
    """A session may be named by a beginning that no other id has; an id that is another's beginning is itself."""
    assert shown("em", "--store", url) == "empty"
    assert shown("walk-", "--store", url) == "walk-2"
    assert shown("walk", "--store", url) == "walk"
    ran = eventstore("show", "wal", "--store", url)
    assert (ran.code, ran.out) == (2, "")
    error, hint = ran.err.splitlines()
    assert error == "error: 'wal' is the beginning of more than one id: walk, walk-2"
    assert hint.startswith("hint: give more of the id: `eventstore ls -q wal ")
    assert [one["id"] for one in eventstore(*shlex.split(hint.split("`")[1])[1:]).records] == ["walk", "walk-2"]


@pytest.mark.parametrize("arguments", [["show", ""], ["log", ""], ["search", "x", "--session", ""]], ids=" ".join)
def test_empty_name(url: str, arguments: list[str]) -> None:
    """An empty name, which is the beginning of every id, is a usage error, however many sessions there are."""
    ran = eventstore(*arguments, "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: the name of a SESSION is empty\nhint: `eventstore ls --store {url}` lists them\n"


def test_unknown_session(url: str) -> None:
    """A session that is not there is not found, and the letters of a beginning count as they are."""
    for name in ("nobody", "WALK", "wa%", "w_lk"):
        ran = eventstore("show", name, "--store", url)
        assert (ran.code, ran.out) == (3, "")
        assert ran.err == (f"error: there is no session {name!r}\nhint: `eventstore ls --store {url}` lists them\n")


def test_last_used_session(url: str) -> None:
    """@ is the session that was used last, and nothing before one was used."""
    assert eventstore("show", "@", "--store", url).code == 3
    eventstore("graph", "walk-2", "--store", url)
    assert shown("@", "--store", url) == "walk-2"
    eventstore("log", "emp", "--store", url)
    eventstore("ls", "--store", url)
    assert shown("@", "--store", url) == "empty"


def test_unreadable_store(tmp_path: Path, url: str) -> None:
    """A store that cannot be opened is a store that cannot be reached."""
    (tmp_path / "store.db-wal").unlink(missing_ok=True)
    (tmp_path / "store.db-wal").mkdir()
    assert eventstore("ls", "--store", url).code == 6
