from __future__ import annotations

import re

import pytest
import typer

from replay.cli.app import app
from replay.cli.failures import EXIT_CODES, FAILURE, INTERRUPTED, PRINTS
from tests.docs.pages import REFERENCE, codes, rows, sections

PAGE = REFERENCE / "cli.md"
OPTION = re.compile(r"(?<!\S)--?[a-z][a-z-]*")
GROUP = typer.main.get_command(app)
COMMANDS = dict(getattr(GROUP, "commands", {}))
SHARED = {"--store", "--color", "--no-color", "-v", "--verbose", "-h", "--help"}
FORMATS = {"--json", "--ndjson", "--table"}
OWN_JSON = {"append"}
"""The commands whose --json is no format, but what they read."""


def options(command: str) -> set[str]:
    """Return the options that a command takes."""
    params = COMMANDS[command].params
    return {name for param in params for name in (*param.opts, *param.secondary_opts) if name.startswith("-")}


def arguments(command: str) -> list[str]:
    """Return the arguments of a command as its help writes them."""
    found: list[str] = []
    for param in COMMANDS[command].params:
        if not any(name.startswith("-") for name in param.opts):
            name = param.metavar.removesuffix("...") + ("..." if param.nargs < 0 else "")
            found.append(name if param.required else f"[{name}]")
    return found


def described(heading: str) -> set[str]:
    """Return the options that the table below a heading has."""
    level = 2 if heading in sections(PAGE, 2) else 3
    cells = [cells[0] for cells in rows(sections(PAGE, level)[heading])]
    return {option for cell in cells for code in codes(cell) for option in OPTION.findall(code)}


def test_commands_are_described() -> None:
    """Every command has a heading with its arguments, in the order of the help, and no other is described."""
    headings = [" ".join(["eventstore", name, *arguments(name)]) for name in COMMANDS]
    assert list(sections(PAGE, 3)) == [f"`{heading}`" for heading in headings]


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_described(command: str) -> None:
    """Every option of a command is described, and none that it has not."""
    heading = f"`{' '.join(['eventstore', command, *arguments(command)])}`"
    shared = SHARED | FORMATS - ({"--json"} if command in OWN_JSON else set())
    assert described(heading) == options(command) - shared


def test_shared_options_are_described() -> None:
    """The options of every command are described once, and the formats are those of every command but those named."""
    assert described("Options of every command") == SHARED | FORMATS
    assert all(options(command) >= SHARED - {"-h", "--help"} for command in COMMANDS)
    assert {command for command in COMMANDS if not options(command) >= FORMATS} == set(PRINTS)


def test_options_before_the_command() -> None:
    """What may stand before the command is described."""
    before = {name for param in GROUP.params for name in (*param.opts, *param.secondary_opts)}
    alone = {"--version", "--install-completion", "--show-completion"}
    assert before == {"--store", "--color", "--no-color", "-v", "--verbose"} | alone
    text = PAGE.read_text(encoding="utf-8")
    assert [option for option in alone if f"`eventstore {option}`" not in text] == []
    without_formats = "\n".join(sections(PAGE, 2)["Options of every command"])
    assert [command for command in PRINTS if f"`{command}`" not in without_formats] == []


def test_exit_codes_are_described() -> None:
    """The table of exit codes has every code, with the errors that lead to it."""
    table = {int(number): set(codes(errors)) for number, _, errors in rows(sections(PAGE, 2)["Exit codes"])}
    by_number: dict[int, set[str]] = {0: set(), FAILURE: set(), INTERRUPTED: set()}
    for code, number in EXIT_CODES.items():
        by_number.setdefault(number, set()).add(code)
    assert table == by_number
