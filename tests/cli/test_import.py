from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import COMMAND, environment, eventstore

FIXTURES = Path(__file__).parents[1] / "fixtures" / "shared" / "chatgpt"
BRANCHES = str(FIXTURES / "tree-branches")
CORRUPT = str(FIXTURES / "modern-with-corrupt-entry")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a store that is not there yet."""
    return f"sqlite:///{tmp_path / 'new.db'}"


def promised(folder: str) -> dict[str, Any]:
    """Return the numbers that a fixture promises of its import."""
    numbers: dict[str, Any] = json.loads((Path(folder) / "expected.json").read_text(encoding="utf-8"))["import"]
    return numbers


def test_numbers(url: str) -> None:
    """The summary counts conversations, messages, branches, repaired links and skipped entries of the source."""
    for folder in (BRANCHES, CORRUPT, str(FIXTURES / "nasty-a")):
        value, expected = eventstore("import", "auto", folder, "--store", url).value, promised(folder)
        conversations = expected["per_conversation"]
        assert value["conversations"] == expected["conversations"]
        assert value["skipped"] == expected["skipped"]
        assert value["messages"] == value["new_messages"] == sum(one["messages"] for one in conversations)
        assert value["branches"] == sum(one["leaves"] for one in conversations)
        assert value["repaired_links"] == sum(one["repaired_links"] for one in conversations)


def test_again_is_nothing_new(url: str) -> None:
    """Importing again writes nothing, and says so."""
    first = eventstore("import", "chatgpt", BRANCHES, "--store", url, "--table")
    again = eventstore("import", "chatgpt", BRANCHES, "--store", url, "--table")
    assert first.lines == ["read: 1 conversation, 12 messages, 3 branches", "written: 12 new messages"]
    assert again.lines == [first.lines[0], "written: nothing new, the store holds all of it"]
    assert eventstore("import", "auto", BRANCHES, "--store", url).value["new_messages"] == 0


def test_what_is_left_out_is_named(url: str) -> None:
    """What cannot be read is named with its file, its place and the reason, and is no failure."""
    ran = eventstore("import", "auto", CORRUPT, "--store", url, "--table")
    assert ran.code == 0
    assert ran.lines[2:] == [
        "1 problem, 1 conversation left out:",
        "  conversations.json, entry 1: no conversation: it has no `mapping` of nodes",
    ]
    (problem,) = eventstore("import", "auto", CORRUPT, "--store", url).value["problems"]
    assert (problem["file"], problem["index"], problem["skipped"]) == ("conversations.json", 1, True)


def test_strict(url: str) -> None:
    """With --strict the first thing that cannot be read is the error, and nothing is written."""
    ran = eventstore("import", "auto", CORRUPT, "--strict", "--store", url)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: conversations.json, entry 1: ")
    assert eventstore("ls", "--store", url).records == []


def test_dry_run_makes_no_store(url: str, tmp_path: Path) -> None:
    """A dry run gives the numbers of the import, and leaves no file behind."""
    value = eventstore("import", "auto", BRANCHES, "--dry-run", "--store", url).value
    assert (value["dry_run"], value["messages"], value["new_messages"]) == (True, 12, 12)
    assert not (tmp_path / "new.db").exists()


def test_dry_run_knows_what_is_there(url: str) -> None:
    """A dry run over a store counts only what the store does not hold, and writes nothing."""
    eventstore("import", "auto", BRANCHES, "--store", url)
    ran = eventstore("import", "auto", BRANCHES, str(FIXTURES / "regenerated-answer"), "--dry-run", "--store", url)
    assert ran.value["new_messages"] == ran.value["messages"] - 12
    assert len(eventstore("ls", "--store", url).records) == 1


def test_several_paths(url: str) -> None:
    """Several paths are one import with one summary."""
    value = eventstore("import", "auto", BRANCHES, CORRUPT, "--store", url).value
    assert value["conversations"] == 1 + promised(CORRUPT)["conversations"]
    assert len(value["sessions"]) == value["conversations"]


def test_stdin(url: str) -> None:
    """The path - is stdin, and problems of it are said to be in a file named stdin."""
    command = [*COMMAND, "import", "auto", "-", "--store", url]
    with (Path(CORRUPT) / "conversations.json").open("rb") as source:
        done = subprocess.run(command, env=environment(), stdin=source, capture_output=True, check=True, timeout=60)
    value = json.loads(done.stdout)
    assert value["conversations"] == promised(CORRUPT)["conversations"]
    assert value["problems"][0]["file"] == "stdin"


def test_nothing_to_import(url: str, tmp_path: Path) -> None:
    """When nothing at all can be imported, that is a failure that says why."""
    notes = tmp_path / "notes.txt"
    notes.write_text("no conversation", encoding="utf-8")
    ran = eventstore("import", "auto", str(notes), "--store", url, "--table")
    assert ran.code == 1
    assert ran.lines[:2] == ["read: 0 conversations, 0 messages, 0 branches", "written: nothing"]
    assert ran.lines[3].startswith(f"  {notes}")
    piped = eventstore("import", "auto", str(notes), "--store", url)
    assert piped.value["problems"]
    assert ran.err == piped.err
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(f"error: nothing could be imported: {notes}")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["auto", "no-such-file.json"], 3), (["auto", BRANCHES, "no-such-file.json"], 3), (["telegram", BRANCHES], 2)],
    ids=["missing", "one of two missing", "unknown format"],
)
def test_impossible_import_makes_no_store(url: str, tmp_path: Path, arguments: list[str], code: int) -> None:
    """A path that is not there, or a format that nobody knows, is an error before a store is made."""
    ran = eventstore("import", *arguments, "--store", url)
    assert (ran.code, ran.out) == (code, "")
    assert not (tmp_path / "new.db").exists()


def test_last_import_is_the_last_used_session(url: str) -> None:
    """After an import, @ is the session that was imported last."""
    value = eventstore("import", "auto", BRANCHES, "--store", url).value
    assert f"`{value['sessions'][-1]['session_id']}`" in eventstore("show", "@", "--store", url).out


def test_default_store_is_made(tmp_path: Path) -> None:
    """Without --store the default store is made, folders and all."""
    assert eventstore("import", "auto", BRANCHES).code == 0
    (path,) = eventstore("path").lines
    assert path == str(tmp_path / "data" / "eventstore" / "store.db")
    assert Path(path).is_file()
