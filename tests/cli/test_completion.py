from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions import SessionManager
from tests.cli.running import COMMAND, Fill, environment, eventstore, process


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
    assert completed("--show-completion", "p", monkeypatch=monkeypatch) == ["powershell", "pwsh"]


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


SCRIPTS = {
    "bash": "complete -o default -F",
    "zsh": "#compdef eventstore",
    "fish": "complete --command eventstore",
    "powershell": "Register-ArgumentCompleter -Native -CommandName eventstore",
    "pwsh": "Register-ArgumentCompleter -Native -CommandName eventstore",
}


@pytest.mark.parametrize(("shell", "line"), SCRIPTS.items())
def test_script_for_a_shell(shell: str, line: str) -> None:
    """The script for the shell that is named is shown, however the name stands behind the option."""
    for arguments in (["--show-completion", shell], [f"--show-completion={shell}"], ["-v", "--show-completion", shell]):
        ran = eventstore(*arguments)
        assert (ran.code, ran.err) == (0, "")
        assert line in ran.out


@pytest.mark.parametrize("before", [[], ["--no-color"], ["--store", "sqlite:///none.db"]], ids=" ".join)
def test_script_for_the_shell_that_runs_it(before: list[str]) -> None:
    """Without a name it is the script for the shell that the command is started from."""
    line = shlex.join([*COMMAND, *before, "--show-completion"])
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit $?"], env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert SCRIPTS["bash"] in done.stdout


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
@pytest.mark.parametrize("name", ["nonsense", "Zsh", "", "ls"])
def test_shell_that_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, name: str) -> None:
    """A shell that is none is a usage error that names those there are, and nothing is installed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for arguments in ([option, name], [f"{option}={name}"]):
        ran = eventstore(*arguments)
        assert (ran.code, ran.out) == (2, "")
        known = ", ".join(map(repr, ["auto", *SCRIPTS]))
        assert ran.err.startswith(f"error: Invalid value for '{option}': {name!r} is not one of {known}.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_shell_that_cannot_be_told(option: str, tmp_path: Path) -> None:
    """Where the shell cannot be told and is not named, that is a usage error that says which there are."""
    ran = process(option, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1", HOME=str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"\nhint: name it behind {option}: bash, zsh, fish, powershell or pwsh\n")
    assert list(tmp_path.iterdir()) == []


def test_install_for_a_shell(tmp_path: Path) -> None:
    """What is installed is the script for the shell that is named, in that shell's place, which is said."""
    ran = process("--install-completion=fish", HOME=str(tmp_path))
    file = tmp_path / ".config" / "fish" / "completions" / "eventstore.fish"
    assert (ran.code, ran.err) == (0, "")
    assert str(file) in ran.out
    assert SCRIPTS["fish"] in file.read_text(encoding="utf-8")


def test_option_behind_a_command_is_a_text(url: str) -> None:
    """Behind a command the same word is whatever the command makes of it."""
    said = "--show-completion"
    assert eventstore("append", "walk", "--role", "user", "--text", said, "--store", url).code == 0
    assert said in eventstore("show", "walk", "--store", url).lines
