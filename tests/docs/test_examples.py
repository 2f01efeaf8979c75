from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks, name, pages
from tests.docs.running import check_output, commands, run_examples

RUN = ("python", "console", "sh")
EXPORT = Path(__file__).with_name("conversations.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder to run examples in, which is the current one: it holds an export and becomes the home."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TZ", "UTC")
    for variable in ("EVENTSTORE_URL", "FORCE_COLOR"):
        # Set first, so that what an example sets is gone afterwards.
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    shutil.copy(EXPORT, home)
    with zipfile.ZipFile(home / "chatgpt-export.zip", "w") as archive:
        archive.write(EXPORT, EXPORT.name)
        archive.writestr("chat.html", "<html></html>")
    return home


@pytest.mark.parametrize(
    "page", [page for page in pages() if any(block.language in RUN for block in blocks(page))], ids=name
)
@pytest.mark.usefixtures("folder")
def test_examples(page: Path) -> None:
    """Every example of a page runs as it stands, one after the other, and prints what the page says."""
    run_examples(page)


@pytest.mark.parametrize("page", pages(), ids=name)
def test_blocks_have_a_language(page: Path) -> None:
    """Every block names a language, so that none is left out of the tests by an oversight."""
    languages = {*RUN, "text", "json", "sql"}
    assert [block for block in blocks(page) if block.language not in languages] == []


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a b", "a   b  \n\n"),
        ("a … d", "a b c d"),
        ("a\n…\nd", "a\nb\nc\nd"),
        ("a\n…\nd", "a\nd"),
        ("a", "\x1b[1ma\x1b[0m"),
        ("a now", "a 3s ago"),
        ("10:41:07 a", "09:00:00 a"),
    ],
    ids=["space", "in a line", "lines", "no lines", "colours", "ages", "times"],
)
def test_output_is_as_said(expected: str, printed: str) -> None:
    """What is printed may differ from a page in space, colour and time, and where the page leaves something out."""
    check_output(expected, printed, "here")


@pytest.mark.parametrize(("expected", "printed"), [("a b", "ab"), ("a", "a\nb"), ("a … d", "a b\nc d"), ("a.b", "a-b")])
def test_output_is_not_as_said(expected: str, printed: str) -> None:
    """Other output than a page says is found."""
    with pytest.raises(AssertionError):
        check_output(expected, printed, "here")


def test_commands_of_a_shell() -> None:
    """Of the lines of a shell only ours are run, without what is said about them."""
    block = Block("sh", (), "make demo\neventstore ls  # the sessions\necho eventstore\n", 1)
    assert list(commands(block)) == [["eventstore", "ls"]]
