"""A pipe that nobody reads any more, as with `| head -1`, is no failure."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import typer


def open_closed_streams() -> None:
    """Put nothing in place of the standard streams that the process was started without, as with `>&-`."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It takes the lowest free number, so that no other file gets that of a standard stream.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """End with typer.Exit, and exit code 0, when stdout is a pipe that was closed."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer must not fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
