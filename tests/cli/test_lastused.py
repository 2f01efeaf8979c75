from __future__ import annotations

from pathlib import Path

import pytest

from replay.cli.lastused import REMEMBERED, LastUsed
from tests.cli.running import eventstore


def state(tmp_path: Path) -> Path:
    """Return the file that remembers."""
    return tmp_path / "state" / "eventstore" / "last-used.json"


def test_each_store_has_its_own(tmp_path: Path) -> None:
    """Of each store its own last used session is remembered, whatever way its file is named."""
    one, two = LastUsed(tmp_path / "one.db"), LastUsed(tmp_path / "two.db")
    one.write("a")
    two.write("b")
    one.write("c")
    assert LastUsed(tmp_path / "folder" / ".." / "one.db").read() == "c"
    assert LastUsed(tmp_path / "two.db").read() == "b"
    assert LastUsed(tmp_path / "three.db").read() is None


def test_oldest_is_forgotten(tmp_path: Path) -> None:
    """So many stores are remembered, and the one not used for longest is forgotten first."""
    for number in range(REMEMBERED):
        LastUsed(tmp_path / f"{number}.db").write("a")
    LastUsed(tmp_path / "0.db").write("b")
    LastUsed(tmp_path / "new.db").write("a")
    assert LastUsed(tmp_path / "0.db").read() == "b"
    assert LastUsed(tmp_path / "1.db").read() is None
    assert LastUsed(tmp_path / "2.db").read() == "a"


def test_no_path_is_kept(tmp_path: Path) -> None:
    """The file names no store, since a path can be a secret."""
    LastUsed(tmp_path / "secret.db").write("a")
    assert "secret" not in state(tmp_path).read_text(encoding="utf-8")
    assert [file.name for file in state(tmp_path).parent.iterdir()] == ["last-used.json"]


@pytest.mark.parametrize("content", ["", "no json", "[1]", '{"a": '])
def test_torn_file_is_nothing_remembered(tmp_path: Path, content: str) -> None:
    """A file that cannot be read means that nothing is remembered, and is replaced by the next write."""
    state(tmp_path).parent.mkdir(parents=True)
    state(tmp_path).write_text(content, encoding="utf-8")
    last = LastUsed(tmp_path / "one.db")
    assert last.read() is None
    last.write("a")
    assert last.read() == "a"


def test_no_place_to_remember_is_no_failure(tmp_path: Path, url: str) -> None:
    """When the state folder cannot be made, commands work all the same."""
    (tmp_path / "state").write_text("a file, not a folder", encoding="utf-8")
    assert eventstore("show", "walk", "--store", url).code == 0
