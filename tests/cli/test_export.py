from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from replay.cli.export import ExportFormat
from sessions.exporters import FORMATS
from tests.cli.running import COMMAND, environment, eventstore, terminal


def test_formats() -> None:
    """The command line offers the formats that there are."""
    assert {one.value for one in ExportFormat} == set(FORMATS)


@pytest.mark.parametrize("kind", list(ExportFormat))
def test_every_format(url: str, kind: ExportFormat) -> None:
    """Each format is printed as text, with what was said."""
    ran = eventstore("export", "walk", "--format", kind.value, "--store", url)
    assert (ran.code, ran.err) == (0, "")
    assert "Along the cliffs." in ran.out


def test_tree_or_branch(url: str) -> None:
    """A format for trees has every branch unless one is named, by a beginning of its leaf's id too."""
    lines = eventstore("export", "walk", "--format", "ndjson", "--store", url).records
    assert [line["message"]["id"] for line in lines] == ["m1", "m2", "m3", "m4", "m5"]
    lines = eventstore("export", "walk", "--format", "ndjson", "--branch", "m5", "--store", url).records
    assert [line["message"]["id"] for line in lines] == ["m1", "m2", "m5"]
    assert "By bus?" in eventstore("export", "walk", "--branch", "m5", "--store", url).out
    assert "By bus?" not in eventstore("export", "walk", "--store", url).out


def test_export_can_be_imported(url: str, tmp_path: Path) -> None:
    """A session exported as JSON into a file is a session again in another store."""
    file, other = tmp_path / "walk.json", f"sqlite:///{tmp_path / 'other.db'}"
    assert eventstore("export", "walk", "--format", "json", "-o", str(file), "--store", url) == (0, "", "")
    assert eventstore("import", "auto", str(file), "--store", other).value["messages"] == 5
    graph = eventstore("graph", "json:walk", "--store", other).records
    assert [node["id"] for node in graph if node["current"]] == ["m4"]


def test_file_is_written_whole(url: str, tmp_path: Path) -> None:
    """A file is replaced when all of the export is there; one that fails leaves it, and nothing beside it."""
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "walk.md"
    file.write_text("before", encoding="utf-8")
    assert eventstore("export", "walk", "--branch", "m9", "-o", str(file), "--store", url).code == 3
    assert file.read_text(encoding="utf-8") == "before"
    assert eventstore("export", "walk", "-o", str(file), "--store", url) == (0, "", "")
    assert file.read_text(encoding="utf-8") == eventstore("export", "walk", "-o", "-", "--store", url).out
    assert list(folder.iterdir()) == [file]


def test_link_and_device(url: str, tmp_path: Path) -> None:
    """What a link leads to is written, and a device is written into, and neither is replaced."""
    target, link, pipe = tmp_path / "target.md", tmp_path / "link.md", Path("/dev/null")
    link.symlink_to(target)
    assert eventstore("export", "walk", "-o", str(link), "--store", url).code == 0
    assert link.is_symlink()
    assert "Along the cliffs." in target.read_text(encoding="utf-8")
    assert eventstore("export", "walk", "-o", str(pipe), "--store", url).code == 0
    assert pipe.is_char_device()


def test_file_that_cannot_be_written(url: str, tmp_path: Path) -> None:
    """A folder that is not there, or a folder in place of a file, is an error that names it."""
    missing = tmp_path / "no" / "walk.md"
    ran = eventstore("export", "walk", "-o", str(missing), "--store", url)
    assert (ran.code, ran.err) == (3, f"error: {missing}: No such file or directory\n")
    ran = eventstore("export", "walk", "-o", str(tmp_path), "--store", url)
    assert (ran.code, ran.err) == (1, f"error: {tmp_path}: Is a directory\n")


def test_unknown(url: str) -> None:
    """An unknown session or leaf is not found, an unknown format is a usage error, and nothing is printed."""
    for arguments, code in [
        (["nobody"], 3),
        (["walk", "--branch", "m9"], 3),
        (["walk", "--format", "pdf"], 2),
        (["walk", "--json"], 2),
    ]:
        ran = eventstore("export", *arguments, "--store", url)
        assert (ran.code, ran.out) == (code, ""), arguments


def test_terminal_gets_no_commands(url: str) -> None:
    """On a terminal control characters are made visible, in a pipe they are left as they are."""
    message = json.dumps({"id": "e", "role": "user", "parts": [{"type": "text", "text": "\x1b[2J"}]})
    subprocess.run(
        [*COMMAND, "append", "walk", "--json", "-", "--store", url],
        env=environment(),
        input=message.encode(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert "\x1b" not in terminal("export", "walk", "--store", url).out
    assert "\x1b[2J" in eventstore("export", "walk", "--store", url).out
