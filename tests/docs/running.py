"""Running the examples of a page: Python in one namespace and one event loop, commands in processes of their own."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.cli.running import environment, terminal
from tests.docs.pages import Block, blocks, name

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TIME = re.compile(r"\bnow\b|\b\d+(s|m|h|d|w|mo|y) ago\b|\b\d\d:\d\d:\d\d\b")
"""An age or a time of day, which is another one every time."""
_RUN_ALL = """
import json, sys
from replay.cli.app import run
sys.exit(next(filter(None, map(run, json.loads(sys.argv[1]))), 0))
"""
"""One process for all commands of a block, up to the first that fails."""
_EXPORT = re.compile(r"export (EVENTSTORE_[A-Z]+)=(\S+)")
_ANYTHING = "…"
"""In what a page says is printed: any text of a line or, alone in a line, any lines."""


def run_examples(page: Path) -> None:
    """Run what a page shows, from the top down, in the current folder; raises AssertionError where it says otherwise.

    A block of `python` may await; a block of `text output` behind it is what it prints. A block of `console` holds
    commands and what they print on a terminal of 80 columns; `exit=5` says with which code the last one ends, else
    all end with 0. In a block of `sh` the lines that start with `eventstore` are run, and what an `export` sets holds
    from then on.
    """
    namespace: dict[str, Any] = {"__name__": "page"}
    with asyncio.Runner() as runner:
        for block, following in pairwise([*blocks(page), None]):
            assert block is not None
            where = f"{name(page)}:{block.line}"
            if block.language == "python":
                printed = _run_python(runner, namespace, block, where)
                if following is not None and following.language == "text" and "output" in following.words:
                    check_output(following.text, printed, where)
            elif block.language == "console":
                _run_console(block, where)
            elif block.language == "sh":
                _run_shell(block, where)


def commands(block: Block) -> Iterator[list[str]]:
    """Yield the command lines of a block of `sh` that are ours to run, as words."""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["eventstore"]:
            yield words


def check_output(expected: str, printed: str, where: str) -> None:
    """Raise AssertionError unless what was printed is what a page says, whatever its space and its times."""
    wanted, found = _lines(expected), _lines(_ESCAPE.sub("", printed))
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line == _ANYTHING else re.escape(line).replace(_ANYTHING, r"[^\n]*") + r"\n"
        for line in wanted
    )
    said = "\n".join((f"{where}: printed", *found, "instead of", *wanted))
    assert re.fullmatch(pattern, "".join(line + "\n" for line in found)), said


def _lines(text: str) -> list[str]:
    return [_TIME.sub("<time>", " ".join(line.split())) for line in text.strip().splitlines()]


def _run_python(runner: asyncio.Runner, namespace: dict[str, Any], block: Block, where: str) -> str:
    # Behind as many lines as stand above it on the page, so that a traceback names the page's line.
    text = "\n" * (block.line - 1) + block.text
    code = compile(text, where.partition(":")[0], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = types.FunctionType(code, namespace)()
        if inspect.iscoroutine(result):
            runner.run(result)
    return printed.getvalue()


def _run_shell(block: Block, where: str) -> None:
    os.environ.update({found[1]: found[2] for line in block.text.splitlines() if (found := _EXPORT.fullmatch(line))})
    ours = [command[1:] for command in commands(block)]
    ran = subprocess.run(
        [sys.executable, "-c", _RUN_ALL, json.dumps(ours)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{where}: {ran.stderr}"


def _run_console(block: Block, where: str) -> None:
    lines = block.text.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"{where}: a block of console begins with a command"
    exit_code = next((int(word.removeprefix("exit=")) for word in block.words if word.startswith("exit=")), 0)
    for start, end in pairwise([*starts, len(lines)]):
        words = shlex.split(lines[start].removeprefix("$ "), comments=True)
        assert words[0] == "eventstore", f"{where}: only `eventstore` is run in a block of console"
        _run_command(words[1:], "\n".join(lines[start + 1 : end]), exit_code if end == len(lines) else 0, where)


def _run_command(arguments: Sequence[str], expected: str, exit_code: int, where: str) -> None:
    ran = terminal(*arguments)
    assert ran.code == exit_code, f"{where}: {arguments} ended with {ran.code}\n{ran.out}{ran.err}"
    if expected.strip():
        check_output(expected, ran.out + ran.err, where)
