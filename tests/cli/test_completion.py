from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sessions import SessionManager
from tests.cli.running import Fill, Ran, eventstore, process


def completed(*words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what bash is offered for the last of some words."""
    monkeypatch.setenv("_EVENTSTORE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["eventstore", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    ran = eventstore()
    monkeypatch.delenv("_EVENTSTORE_COMPLETE")
    assert (ran.code, ran.err) == (0, "")
    return ran.out.split()


def test_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands, options and the values of options are offered."""
    assert completed("st", monkeypatch=monkeypatch) == ["status", "stats"]
    assert completed("fork", "--a", monkeypatch=monkeypatch) == ["--at"]
    assert completed("export", "--format", "m", monkeypatch=monkeypatch) == ["md"]


@pytest.mark.parametrize("command", ["show", "graph", "log", "tail", "append", "fork", "export", "verify"])
def test_sessions(url: str, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Where a session is named, the ids that begin so are offered, of the store that the line names."""
    assert completed(command, "--store", url, "wa", monkeypatch=monkeypatch) == ["walk", "walk-2"]
    assert completed("--store", url, command, "e", monkeypatch=monkeypatch) == ["empty"]
    assert completed(command, "--store", url, "walk-", monkeypatch=monkeypatch) == ["walk-2"]


def test_store_of_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a store in the line it is that of the environment, and @ is offered once a session was used."""
    monkeypatch.setenv("EVENTSTORE_URL", url)
    every = ["empty", "walk", "walk-2"]
    assert completed("show", "''", monkeypatch=monkeypatch) == every
    assert completed("search", "x", "--session", "w", monkeypatch=monkeypatch) == every[1:]
    eventstore("show", "walk")
    assert completed("show", "''", monkeypatch=monkeypatch) == ["@", *every]


def test_ids_that_a_shell_would_not_take(make_store: Callable[[Fill], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids with spaces or control characters in them are not offered."""

    async def fill(manager: SessionManager) -> None:
        for name in ("a-plain", "a b", "a\x1b[2J", "a\nb", "a雨"):
            await manager.create("Named", id=name)

    assert completed("show", "--store", make_store(fill), "a", monkeypatch=monkeypatch) == ["a-plain", "a雨"]


def test_store_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store is missing, is none, or has a URL that is none, nothing is offered and nothing is said."""
    (tmp_path / "notes.txt").write_text("no database " * 100, encoding="utf-8")
    for url in (f"sqlite:///{tmp_path / 'none.db'}", f"sqlite:///{tmp_path / 'notes.txt'}", "mysql://nowhere"):
        assert completed("show", "--store", url, "w", monkeypatch=monkeypatch) == []
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".db"] == []


def test_script_for_a_shell() -> None:
    """The script for a shell can be shown, and the exit code is 0."""
    ran: Ran = process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert (ran.code, ran.err) == (0, "")
    assert "complete -o default -F" in ran.out
