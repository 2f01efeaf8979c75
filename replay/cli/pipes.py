"""A pipe that nobody reads any more, as with `| head -1`, is no failure."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

import typer


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
