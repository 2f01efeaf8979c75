from __future__ import annotations

import pytest

from eventstore import errors
from replay.cli.failures import Failure, explain
from tests.cli.running import eventstore, process


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.VersionConflictError("s", 3, 4), 4),
        (errors.SessionNotFoundError("s"), 3),
        (errors.MessageNotFoundError("s", "m"), 3),
        (errors.ParentNotFoundError("s", "m"), 3),
        (errors.IntegrityError("a hole"), 5),
        (errors.StoreUnavailableError("database is locked"), 6),
        (errors.SchemaVersionError(1, 2, "migrate it"), 8),
        (errors.InvalidArgumentError("limit", "must not be negative"), 2),
        (errors.NotSupportedError("this"), 2),
        (errors.ProjectionError("directory", "broke"), 1),
        (errors.ImportProblemError("a.json", "torn"), 1),
        (FileNotFoundError(2, "No such file or directory", "a.json"), 3),
        (PermissionError(13, "Permission denied", "a.json"), 1),
        (ZeroDivisionError("division by zero"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_exit_code_of_an_error(error: Exception, code: int) -> None:
    """Each kind of error has its exit code, and a line that says what happened."""
    failure = explain(error)
    assert failure.exit_code == code
    assert str(failure)


def test_every_error_is_told_apart() -> None:
    """Every exit code of a typed error belongs to an error that exists."""
    from replay.cli.failures import EXIT_CODES, HINTS

    known = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")}
    assert {*EXIT_CODES, *HINTS} <= known


def test_system_error_names_the_file() -> None:
    """An error of the system names the file and the reason, without numbers."""
    assert (
        str(explain(FileNotFoundError(2, "No such file or directory", "a.json"))) == "a.json: No such file or directory"
    )


def test_error_is_one_line_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """However many lines a reason has, it is told in one, and the hint in another."""
    import sys

    Failure("one\ntwo", "try this").tell(sys.stderr)
    assert capsys.readouterr().err == "error: one two\nhint: try this\n"


ZERO = [[*line, "-n", "0"] for line in (["ls"], ["log", "--all"], ["search", "x"], ["stats"])]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nothing"], "No such option: --nothing"),
        (["demo", "--json"], "demo prints for people only, and takes no --json"),
        (["--json", "ls"], "--json stands after the command's name"),
        (["import", "auto", ""], "a PATH is empty"),
        (["lst"], "No such command 'lst'"),
        (["show"], "Missing argument 'SESSION'"),
        (["ls", "-n", "many"], "for '-n' / '--number': 'many' is no whole number."),
        (["ls", "-n", "9" * 5_000], "for '-n' / '--number': it is too large a number."),
        *((command, "'--number': it must be 1 or more, not 0.") for command in ZERO),
        (["tail", "--all", "--count", "0"], "'--count': it must be 1 or more, not 0."),
        (["append", "s", "--expect", "-1"], "'--expect': it must be 0 or more, not -1."),
        (["append", "s", "--expect", "1.5"], "'--expect': '1.5' is no whole number."),
        (["ls", "--sort", "colour"], "error: Invalid value for '--sort': 'colour' is not one of 'updated', "),
        (["export", "s", "--format", "pdf"], "error: Invalid value for '--format': 'pdf' is not one of 'md', "),
        (["search", ""], "a QUERY needs a word at least"),
        (["search", " ", " "], "a QUERY needs a word at least"),
        (["ls", "--json", "--table"], "Only one of --json, --table can be had."),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_usage_error(arguments: list[str], said: str) -> None:
    """A command line that cannot be understood is one line and a hint, and the exit code 2."""
    ran = eventstore(*arguments)
    assert (ran.code, ran.out) == (2, "")
    error, hint = ran.err.splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hint.endswith("--help` says more")


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("database is locked", "keeps it locked"),
        ("database or disk is full", "make room"),
        ("attempt to write a readonly database", "may write"),
        ("file is not a database", "of another kind"),
        ("unable to open database file", "are there"),
        ("database disk image is malformed", "damaged"),
    ],
)
def test_advice_for_each_reason(reason: str, advice: str) -> None:
    """A store that cannot be reached comes with the advice for why that is so."""
    assert advice in str(explain(errors.StoreUnavailableError(reason)).hint)


def test_traceback_on_request(url: str) -> None:
    """With -v, before the command or after it, an error comes with its traceback; without, never."""
    arguments = ("show", "nobody", "--store", url)
    assert "Traceback" not in eventstore(*arguments).err
    for verbose in (("-v", *arguments), (*arguments, "--verbose")):
        ran = eventstore(*verbose)
        assert ran.code == 3
        assert "Traceback" in ran.err
        assert ran.err.splitlines()[-2].startswith("error: there is no session 'nobody'")


def test_unforeseen_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is one line with its type, and a hint how to see more."""

    def broken(_run: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("replay.cli.opening.locate", broken)
    ran = eventstore("path")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: KeyError: 'x'\nhint: run it again with -v to see where this happened\n"


def test_process_ends_with_the_code(url: str) -> None:
    """The process itself ends with the exit code, and says nothing beside the error."""
    ran = process("show", "nobody", "--store", url)
    assert ran.code == 3
    assert ran.err.splitlines()[0] == "error: there is no session 'nobody'"
    assert len(ran.err.splitlines()) == 2
