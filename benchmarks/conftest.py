"""One event loop per module, and the table of ratios at the end of a run.

`BENCH_FULL=1` runs the full sizes; `BENCH_JSON=file` also writes the figures to that file.
A figure that misses its goal makes the run fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import Figure, table
from benchmarks.ours import Ours
from benchmarks.rounds import ROUNDS

FIGURES = pytest.StashKey[list[Figure]]()

Post = Callable[[Figure], None]


def pytest_configure(config: pytest.Config) -> None:
    """Start with an empty table."""
    config.stash[FIGURES] = []


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of a module."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is gone after the test, whatever becomes of it: databases of full size are large."""
    with TemporaryDirectory(prefix="bench-") as name:
        yield Path(name)


@pytest.fixture
def ours(runner: asyncio.Runner, folder: Path) -> Iterator[Ours]:
    """A new store of ours."""
    with closing(Ours(runner, folder / "ours.db")) as ours:
        yield ours


@pytest.fixture
def post(pytestconfig: pytest.Config, benchmark: BenchmarkFixture) -> Post:
    """Put a figure on the table, and beside pytest-benchmark's own numbers."""

    def put(figure: Figure) -> None:
        pytestconfig.stash[FIGURES].append(figure)
        benchmark.extra_info[figure.name] = figure.to_dict()

    return put


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when a figure misses its goal; write the figures down when asked."""
    figures = session.config.stash[FIGURES]
    if session.exitstatus == pytest.ExitCode.OK and any(figure.verdict == "FAIL" for figure in figures):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if path := os.environ.get("BENCH_JSON"):
        report = {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "cpus": os.cpu_count(),
            "rounds": ROUNDS,
            "figures": [figure.to_dict() for figure in figures],
        }
        Path(path).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if figures := config.stash[FIGURES]:
        terminalreporter.section(f"ours beside the floors, medians of {ROUNDS} rounds")
        for line in table(figures):
            terminalreporter.write_line(line)
