from __future__ import annotations

import json
import shlex
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sessions.importers.formats import FORMATS
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
    assert (ran.code, ran.out) == (1, "")
    piped = eventstore("import", "auto", str(notes), "--store", url)
    assert piped.value["problems"]
    assert ran.err == piped.err
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(f"error: nothing could be imported: {notes}")


def test_several_reasons_are_told_once(url: str, tmp_path: Path) -> None:
    """Of several things that cannot be imported a person reads each once, and a program's log the first."""
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for file in files:
        file.touch()
    arguments = ["import", "auto", *map(str, files), "--store", url]
    ran = eventstore(*arguments, "--table")
    assert ran.lines == ["2 problems:", f"  {files[0]}: empty", f"  {files[1]}: empty"]
    assert (ran.code, ran.err) == (1, "error: nothing could be imported: 2 problems\n")
    assert eventstore(*arguments).err == f"error: nothing could be imported: {files[0]}: empty; 1 more\n"


def test_what_a_folder_lacks(url: str, tmp_path: Path) -> None:
    """A folder or a zip without files is told from one that has none of the format."""
    (tmp_path / "bare" / "within").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.json").write_text("{}", encoding="utf-8")
    zipfile.ZipFile(tmp_path / "bare.zip", "w").close()
    for name, format_name, reason in [
        ("bare", "auto", "a folder without files"),
        ("bare.zip", "chatgpt", "a zip without files"),
        ("other", "auto", "holds no conversation in a known format (chatgpt, json, claude-code, ai-sdk)"),
        ("other", "ai-sdk", "holds no conversation in the format that was named (ai-sdk)"),
    ]:
        ran = eventstore("import", format_name, str(tmp_path / name), "--store", url)
        assert (ran.code, ran.err) == (1, f"error: nothing could be imported: {tmp_path / name}: {reason}\n")


@pytest.mark.parametrize("before", [True, False], ids=["store before", "store behind"])
def test_format_is_missing(tmp_path: Path, *, before: bool) -> None:
    """Where a path stands in the format's place, the error names the formats, and the hint is a line that works."""
    url, file = f"sqlite:///{tmp_path / 'new.db'}", str(Path(BRANCHES) / "conversations.json")
    line = ["--store", url, "import", file] if before else ["import", file, "--store", url]
    ran = eventstore(*line)
    assert (ran.code, ran.out) == (2, "")
    error, hint = ran.err.splitlines()
    assert error == f"error: the FORMAT is missing before {file!r}: auto, or one of chatgpt, json, claude-code, ai-sdk"
    assert not (tmp_path / "new.db").exists()
    assert eventstore(*shlex.split(hint.split("`")[1])[1:]).code == 0
    assert len(eventstore("ls", "--store", url).records) == 1


@pytest.mark.parametrize("arguments", [["-"], ["export.json", "other.json"], ["./export"], ["."]], ids=" ".join)
def test_paths_without_a_format(arguments: list[str]) -> None:
    """Whatever is a path in the format's place is told as one, be it there or not."""
    assert eventstore("import", *arguments).err.startswith(f"error: the FORMAT is missing before {arguments[0]!r}: ")


def test_help_names_the_formats() -> None:
    """The help of the command names every format there is."""
    said = " ".join(eventstore("import", "--help").out.split())
    assert [name for name in ("auto", *FORMATS) if name not in said] == []


def test_export_beside_the_session_it_is_of(url: str, tmp_path: Path) -> None:
    """An export that comes back to its store becomes a session of its own, each time the same, and that is said."""
    eventstore("import", "auto", BRANCHES, "--store", url)
    first = eventstore("ls", "--store", url).records[0]["id"]
    file = tmp_path / "tree.json"
    file.write_text(eventstore("export", "@", "--format", "json", "--store", url).out, encoding="utf-8")
    says = f"{first} is in this store and stays as it is: its export {{}} a session of its own, json:{first}\n"
    line = ["import", "auto", str(file), "--store", url]
    rehearsed = eventstore(*line, "--dry-run", "--table")
    assert (rehearsed.lines[1], rehearsed.err) == ("would write: 12 new messages", says.format("would be"))
    assert len(eventstore("ls", "--store", url).records) == 1
    written = eventstore(*line, "--table")
    assert (written.lines[1], written.err) == ("written: 12 new messages", says.format("is"))
    again = eventstore(*line)
    assert (again.value["new_messages"], again.err) == (0, says.format("is"))
    assert [record["id"] for record in eventstore("ls", "--store", url).records] == [f"json:{first}", first]


def test_exports_beside_the_sessions_they_are_of(url: str, tmp_path: Path) -> None:
    """Of several such exports it is said how many there are, and what lists the sessions that they became."""
    eventstore("import", "auto", BRANCHES, str(FIXTURES / "regenerated-answer"), "--store", url)
    for number, record in enumerate(eventstore("ls", "--store", url).records):
        export = eventstore("export", record["id"], "--format", "json", "--store", url).out
        (tmp_path / f"{number}.json").write_text(export, encoding="utf-8")
    ran = eventstore("import", "json", str(tmp_path / "0.json"), str(tmp_path / "1.json"), "--store", url)
    assert ran.err.startswith("2 of these sessions are in this store and stay as they are: ")
    listed = eventstore(*shlex.split(ran.err.split("`")[1])[1:]).records
    assert {one["id"] for one in listed} == {one["session_id"] for one in ran.value["sessions"]}


def test_export_in_another_store(url: str, tmp_path: Path) -> None:
    """In a store that does not have the session, an export is imported without a word more."""
    eventstore("import", "auto", BRANCHES, "--store", url)
    file = tmp_path / "tree.json"
    file.write_text(eventstore("export", "@", "--format", "json", "--store", url).out, encoding="utf-8")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    for new in (12, 0):
        ran = eventstore("import", "auto", str(file), "--store", other)
        assert (ran.value["new_messages"], ran.err) == (new, "")
    assert len(eventstore("ls", "--store", other).records) == 1


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
