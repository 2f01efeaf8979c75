"""The script that lets a shell complete the command: printed, or put where the shell reads it."""

from __future__ import annotations

import contextlib
import enum
import io
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer
from typer.completion import get_completion_inspect_parameters, install_callback, show_callback

from replay.cli.failures import USAGE, Failure

# It makes the shells known that are completed in; the options that it gives beside take no shell's name.
get_completion_inspect_parameters()


class Shell(enum.StrEnum):
    """The shells that there is a script for; `auto` is the one that the command is started from."""

    AUTO = "auto"
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


INSTALL: Final = "--install-completion"
SHOW: Final = "--show-completion"


def with_shell(arguments: Sequence[str]) -> list[str]:
    """A command line in which an option of these that names no shell names `auto`."""
    words = list(arguments)
    at = 0
    # Behind a command's name they are no options of ours, and can be what somebody says.
    while at < len(words) and words[at].startswith("-"):
        if words[at] in {INSTALL, SHOW}:
            if all(word.startswith("-") for word in words[at + 1 : at + 2]):
                words.insert(at + 1, Shell.AUTO.value)
            break
        at += 2 if words[at] == "--store" else 1
    return words


def _install(context: typer.Context, parameter: typer.CallbackParam, shell: Shell | None) -> None:
    _run(install_callback, context, parameter, shell)


def _show(context: typer.Context, parameter: typer.CallbackParam, shell: Shell | None) -> None:
    _run(show_callback, context, parameter, shell)


InstallOption = Annotated[
    Shell | None,
    typer.Option(
        INSTALL,
        metavar="[SHELL]",
        callback=_install,
        help="Let the shell complete commands, options and ids; then exit.",
    ),
]
ShowOption = Annotated[
    Shell | None,
    typer.Option(SHOW, metavar="[SHELL]", callback=_show, help="Print the script that does so, and exit."),
]


def _run(
    callback: Callable[[typer.Context, typer.CallbackParam, Any], Any],
    context: typer.Context,
    parameter: typer.CallbackParam,
    shell: Shell | None,
) -> None:
    """Let typer do it, which ends the process; raises Failure where it cannot tell which shell this is."""
    if shell is None or context.resilient_parsing:
        return
    if shell is not Shell.AUTO:
        callback(context, parameter, shell.value)
        return
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            callback(context, parameter, True)  # noqa: FBT003 - typer's sign for an option without a value
    except typer.Exit:
        *others, last = (known.value for known in Shell if known is not Shell.AUTO)
        raise Failure(
            "the shell that this is started from cannot be told, or is none that can complete",
            f"name it behind {parameter.opts[0]}: {', '.join(others)} or {last}",
            exit_code=USAGE,
        ) from None
    except SystemExit:
        print(said.getvalue(), end="")
        raise
