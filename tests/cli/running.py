"""Running the command line as its users do: in this process where that is enough, else in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from replay.cli.app import run
from sessions import SessionManager

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from replay.cli import main; main()")

Fill = Callable[[SessionManager], Awaitable[None]]
"""What puts sessions into a new store."""


class Ran(NamedTuple):
    """What a command line printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """Return the JSON value on stdout."""
        return json.loads(self.out)

    @property
    def records(self) -> list[Any]:
        """Return the JSON values on stdout, one per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def lines(self) -> list[str]:
        """Return the lines on stdout, without spaces at their ends."""
        return [line.rstrip() for line in self.out.splitlines()]


def eventstore(*arguments: str) -> Ran:
    """Run a command line in this process, as in a pipe."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    texts = []
    for stream in (out, err):
        stream.flush()
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        texts.append(buffer.getvalue().decode())
    return Ran(code, *texts)


def environment(**more: str) -> Mapping[str, str]:
    """Return the environment for a process of its own."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", **more}


def process(*arguments: str, **more: str) -> Ran:
    """Run a command line in a process of its own, in a pipe."""
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment(**more), capture_output=True, text=True, check=False, timeout=60
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def terminal(*arguments: str, **more: str) -> Ran:
    """Run a command line in a process of its own, stdout being a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [*COMMAND, *arguments],
            env=environment(TERM="xterm-256color", **more),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            os.close(theirs)
            shown = _read_all(ours)
            assert child.stderr is not None
            err = child.stderr.read()
        return Ran(child.returncode, shown.replace("\r\n", "\n"), err)
    finally:
        os.close(ours)


def _read_all(terminal: int) -> str:
    pieces: list[bytes] = []
    # Linux says that the other side is closed by an error, other systems by an end of file.
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65_536):
            pieces.append(piece)
    return b"".join(pieces).decode()


def said(*texts: str) -> Sequence[dict[str, Any]]:
    """Return messages with these texts, from a user and an assistant in turn, with the ids m1, m2, …"""
    roles = ("user", "assistant")
    return [
        {"id": f"m{number}", "role": roles[(number + 1) % 2], "parts": [{"type": "text", "text": text}]}
        for number, text in enumerate(texts, start=1)
    ]
