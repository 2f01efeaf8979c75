from __future__ import annotations

import errno
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from eventstore.errors import InvalidArgumentError
from sessions.importers.conversation import Conversation, Problem
from sessions.importers.formats import choose_formats, conversations


def export(*names: str) -> bytes:
    """Return an export with a conversation of each name."""
    return json.dumps(
        [{"id": name, "mapping": {"n": {"message": {"author": {"role": "user"}}}}} for name in names]
    ).encode()


def found(path: Path) -> tuple[list[tuple[str, str]], list[Problem]]:
    """Return file and id of every conversation at a path, and the problems."""
    items = list(conversations(str(path), choose_formats("auto")))
    read = [(item.file, item.source_id) for item in items if isinstance(item, Conversation)]
    return read, [item for item in items if isinstance(item, Problem)]


OTHERS = {
    "chat.html": b"<html>[{}]</html>",
    "config.toml": b"[section]\na = 1\n",
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(40),
    "user.json": b'{"id": "user-1", "email": ""}',
    "message_feedback.json": b"[]",
    "empty": b"",
}


def test_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    """Every export in a folder and the folders in it is read, by what it holds, and other files are passed over."""
    for name, data in OTHERS.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "conversations-001.json").write_bytes(export("c", "d"))
    (tmp_path / "conversations-000.json").write_bytes(export("a", "b"))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes.txt").write_bytes(b"\xef\xbb\xbf" + export("e"))
    assert found(tmp_path) == (
        [
            ("conversations-000.json", "a"),
            ("conversations-000.json", "b"),
            ("conversations-001.json", "c"),
            ("conversations-001.json", "d"),
            ("old/notes.txt", "e"),
        ],
        [],
    )


@pytest.mark.parametrize("inside", [False, True], ids=["itself", "in a folder"])
def test_zip_is_read(tmp_path: Path, *, inside: bool) -> None:
    """The exports in a zip are read, whatever its name, and the other files in it are passed over."""
    path = tmp_path / "download"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in OTHERS.items():
            archive.writestr(name, data)
        archive.writestr("out/", b"")
        archive.writestr("out/conversations-001.json", export("b"))
        archive.writestr("out/conversations-000.json", export("a"))
    name = "download" if inside else str(path)
    assert found(tmp_path if inside else path) == (
        [(f"{name}/out/conversations-000.json", "a"), (f"{name}/out/conversations-001.json", "b")],
        [],
    )


def test_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    """A file is read by what it holds, whatever it is called."""
    path = tmp_path / "picture.png"
    path.write_bytes(export("a"))
    assert found(path) == ([(str(path), "a")], [])


def test_single_object_is_read(tmp_path: Path) -> None:
    """One conversation without an array around it is read."""
    path = tmp_path / "conversation.json"
    path.write_bytes(export("a")[1:-1])
    assert found(path) == ([(str(path), "a")], [])


def test_lines_are_read(tmp_path: Path) -> None:
    """One conversation a line is read, and a line that is torn is reported by its number."""
    path = tmp_path / "c.jsonl"
    path.write_bytes(export("a")[1:-1] + b"\r\n\r\n" + export("b")[1:-1] + b"\n" + export("c")[1:60])
    read, (problem,) = found(path)
    assert read == [(str(path), "a"), (str(path), "b")]
    assert (problem.line, problem.skipped) == (4, False)


def test_torn_file_in_a_folder_is_reported(tmp_path: Path) -> None:
    """A torn export is reported by its name, and what stands before the tear and in other files is read."""
    (tmp_path / "a.json").write_bytes(export("a", "b")[:-20])
    (tmp_path / "b.json").write_bytes(export("c")[:30])
    (tmp_path / "c.json").write_bytes(export("d"))
    read, problems = found(tmp_path)
    assert read == [("a.json", "a"), ("c.json", "d")]
    assert [problem.file for problem in problems] == ["a.json", "b.json"]


@pytest.mark.parametrize("data", list(OTHERS.values()), ids=list(OTHERS))
def test_nothing_to_import_is_reported(tmp_path: Path, data: bytes) -> None:
    """A file or folder without a conversation is one problem, not silence."""
    path = tmp_path / "f"
    path.write_bytes(data)
    for given in (path, tmp_path):
        read, problems = found(given)
        assert (read, len(problems)) == ([], 1)


def test_broken_member_of_a_zip_is_reported(tmp_path: Path) -> None:
    """A member that cannot be unpacked is a problem, and the others are read."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", export("a"))
        archive.writestr("b.json", export("b"))
    path.write_bytes(path.read_bytes().replace(export("a"), export("x")))
    read, (problem,) = found(path)
    assert read == [(f"{path}/b.json", "b")]
    assert problem.file == f"{path}/a.json"


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    """A pipe or a dangling link in a folder neither blocks nor breaks the import."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "a.json").write_bytes(export("a"))
    assert found(tmp_path) == ([("a.json", "a")], [])


def zipped(*names: str) -> bytes:
    """Return a zip with an export for each name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(f"{name}.json", export(name))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (zipped("a", "b")[:-30], "not a whole zip file"),
        (zipped("a", "b")[:100] + zipped("a", "b")[-60:], "not a whole zip file"),
        (export("a").decode().encode("utf-16"), "UTF-16, not UTF-8"),
        (export("a").decode().encode("utf-16-le"), "UTF-16, not UTF-8"),
        (export("a").decode().encode("utf-32-be"), "UTF-32, not UTF-8"),
    ],
    ids=["cut", "hole", "UTF-16", "UTF-16 without mark", "UTF-32"],
)
def test_other_kind_of_file_is_named(tmp_path: Path, data: bytes, reason: str) -> None:
    """A zip that is not whole and JSON in another encoding are reported as what they are, in a folder too."""
    path = tmp_path / "f"
    path.write_bytes(data)
    assert found(path) == ([], [Problem(str(path), reason)])
    assert found(tmp_path) == ([], [Problem("f", reason)])


def test_database_is_named(tmp_path: Path) -> None:
    """A database that is given for an export is reported as one, and passed over in a folder."""
    path = tmp_path / "f"
    path.write_bytes(b"SQLite format 3\0" + bytes(200))
    assert found(path) == ([], [Problem(str(path), "a database, not an export")])
    (tmp_path / "a.json").write_bytes(export("a"))
    conversations, problems = found(tmp_path)
    assert (len(conversations), problems) == (1, [])


@pytest.mark.parametrize("data", [b"", b" \r\n", b"\xef\xbb\xbf"], ids=["nothing", "blank", "byte order mark"])
def test_empty_file_is_said_to_be_empty(tmp_path: Path, data: bytes) -> None:
    """A file in which nothing stands is reported as empty."""
    path = tmp_path / "f"
    path.write_bytes(data)
    assert found(path) == ([], [Problem(str(path), "empty")])


def test_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of one name are told apart by the paths that were given, relative ones as they are."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(name, "c.json").write_bytes(b"nothing")
    given = ["one/c.json", "./two/c.json", "../" + tmp_path.name + "/one/c.json"]
    assert [item.file for path in given for item in conversations(path, choose_formats("auto"))] == given


def test_damaged_text_of_other_json_is_passed_over(tmp_path: Path) -> None:
    """Damaged text in JSON that is no conversation is no problem of the import."""
    (tmp_path / "a.json").write_bytes(export("a"))
    (tmp_path / "settings.json").write_bytes(b'{"city": "K\xf6ln"}')
    assert found(tmp_path) == ([("a.json", "a")], [])


def denied(*_: object) -> NoReturn:
    """Refuse, as the system does."""
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with exports and a folder in it."""
    (tmp_path / "b").mkdir()
    for name in ("a", "b/b", "c"):
        (tmp_path / f"{name}.json").write_bytes(export(name))
    return tmp_path


def test_folder_that_cannot_be_listed_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in a folder that cannot be listed is a problem, and the others are read."""
    listed = os.scandir

    def scandir(path: str) -> Any:
        if os.fspath(path) == str(folder / "b"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert found(folder) == (
        [("a.json", "a"), ("c.json", "c")],
        [Problem("b", "cannot be opened: Permission denied")],
    )


@pytest.mark.parametrize("call", ["stat", "open"])
def test_file_that_cannot_be_opened_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A file in a folder that cannot be reached or opened is a problem, and the others are read."""
    allowed = getattr(Path, call)

    def refuse(path: Path, *args: object, **more: object) -> Any:
        return denied() if path == folder / "b" / "b.json" else allowed(path, *args, **more)

    monkeypatch.setattr(Path, call, refuse)
    assert found(folder) == (
        [("a.json", "a"), ("c.json", "c")],
        [Problem("b/b.json", "cannot be opened: Permission denied")],
    )


def test_file_that_vanishes_is_reported(folder: Path) -> None:
    """A file that is gone by the time it is its turn is a problem, and the others are read."""
    items = conversations(str(folder), choose_formats("auto"))
    next(items)
    (folder / "b" / "b.json").unlink()
    problem, conversation = items
    assert problem == Problem("b/b.json", "cannot be opened: No such file or directory")
    assert conversation.file == "c.json"


def test_path_that_cannot_be_listed_raises(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was asked for and cannot be listed raises the system's own error."""
    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(PermissionError):
        found(folder)


def test_missing_path_raises(tmp_path: Path) -> None:
    """A path at which there is nothing raises the system's own error."""
    with pytest.raises(FileNotFoundError):
        found(tmp_path / "gone")


def test_unknown_format_is_refused() -> None:
    """A format that nobody knows is refused, and the error names those that are known."""
    with pytest.raises(InvalidArgumentError, match="auto or one of chatgpt"):
        choose_formats("telegram")
