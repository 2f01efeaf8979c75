"""A pipe that nobody reads any more, as with `| head -1`, is no failure."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
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


@contextlib.asynccontextmanager
async def ending_with_reader() -> AsyncIterator[None]:
    """Raise BrokenPipeError in this context as soon as nobody reads stdout any more, not only at the next write."""
    import asyncio

    descriptor = _pipe()
    task = asyncio.current_task()
    if descriptor is None or task is None:
        yield
        return
    loop = asyncio.get_running_loop()
    gone = False

    def call_off() -> None:
        nonlocal gone
        gone = True
        loop.remove_reader(descriptor)
        task.cancel()

    # There is nothing to be read at this end of a pipe: it is ready when the other end is closed.
    loop.add_reader(descriptor, call_off)
    try:
        yield
    except asyncio.CancelledError:
        if not gone:
            raise
        task.uncancel()
        raise BrokenPipeError from None
    finally:
        loop.remove_reader(descriptor)


def _pipe() -> int | None:
    """The descriptor of stdout when it is a pipe."""
    try:
        descriptor = sys.stdout.fileno()
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):
        return None
