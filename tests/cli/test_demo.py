from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.running import eventstore, terminal


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the demo makes its stores."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def commands(out: str) -> list[list[str]]:
    """Return the commands that the demo says to try next, without the program's name."""
    words = [shlex.split(line) for line in out.splitlines() if line.startswith("  eventstore ")]
    return [command[1:] for command in words if "--store" in command]


def test_walk(place: Path) -> None:
    """The demo shows sessions, a graph, a log, changes, two searches and a verification, and says what to try next."""
    ran = eventstore("demo")
    assert (ran.code, ran.err) == (0, "")
    for shown in (
        "$ eventstore ls\nID ",
        "$ eventstore graph lisbon\nA weekend in Lisbon (13 messages, 3 branches)\n● ",
        "◉ ",
        "← current leaf",
        "$ eventstore log lisbon\nPOS ",
        "leaf_selected",
        "$ eventstore log sourdough -p -n 3\nPOS ",
        "-About 91 degrees, and four hours.\n+About 19 degrees",
        "-See you at seven, Mum!",
        "$ eventstore show sourdough\n# Why does my sourdough stay flat?\n",
        "## assistant · summary of what was said before · ",
        "$ eventstore search '\"tram 28\"'\nSESSION ",
        "$ eventstore search '紅葉'\nSESSION ",
        "永観堂",
        "$ eventstore verify\nok: 36 events",
        "Try next:",
    ):
        assert shown in ran.out
    assert all(line == line.rstrip() for line in ran.out.splitlines())
    assert all(len(line) <= 80 for line in ran.out.splitlines() if str(place) not in line)


@pytest.mark.usefixtures("place")
def test_advice_works() -> None:
    """Every command that the demo says to try next works as it stands."""
    advised = commands(eventstore("demo").out)
    assert len(advised) == 12
    for command in advised:
        follows = command[0] == "tail"
        ran = eventstore(*command, *(["--exit"] if follows else []))
        assert ran.code == 0, command
        assert ran.out
        assert ran.err.startswith("resume from position") if follows else not ran.err


@pytest.mark.usefixtures("place")
def test_event_to_look_at() -> None:
    """The event that the demo says to look at is one that has effects of several kinds."""
    (command,) = [command for command in commands(eventstore("demo").out) if command[0] == "event"]
    assert [effect["relation"] for effect in eventstore(*command).value["effects"]] == ["child", "updated"]


def test_twice(place: Path) -> None:
    """Each run has a place of its own, and both stores are left there."""
    assert eventstore("demo").code == eventstore("demo").code == 0
    assert len(list(place.glob("*/demo.db"))) == 2


@pytest.mark.usefixtures("place")
def test_environment_is_left_alone(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store that the environment names is not the demo's."""
    monkeypatch.setenv("EVENTSTORE_URL", url)
    before = eventstore("log", "--all").out
    assert eventstore("demo").code == 0
    assert eventstore("log", "--all").out == before


def test_named_store(tmp_path: Path) -> None:
    """A store named with --store is made, and a second run finds all there and writes nothing."""
    url = f"sqlite:///{tmp_path / 'my demo.db'}"
    first, second = eventstore("demo", "--store", url), eventstore("demo", "--store", url)
    assert first.code == second.code == 0
    assert len(eventstore("log", "--all", "--store", url).records) == 36
    assert f"eventstore verify --store '{url}'" in second.out


def test_other_store_is_refused(url: str) -> None:
    """A store that no demo has made is refused, and nothing is written to it."""
    before = eventstore("log", "--all", "--store", url).out
    ran = eventstore("demo", "--store", url)
    assert (ran.code, ran.out) == (1, "")
    assert "which the demo leaves alone" in ran.err
    assert eventstore("log", "--all", "--store", url).out == before


def test_terminal(place: Path) -> None:
    """On a terminal of 80 columns the demo is in colour."""
    ran = terminal("demo", TMPDIR=str(place))
    assert ran.code == 0
    assert "\x1b[1mTry" not in ran.out
    assert "\x1b[1mThe store is left for you to explore. Try next:\x1b[0m" in ran.out
