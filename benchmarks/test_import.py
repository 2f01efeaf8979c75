"""Importing a ChatGPT export, beside the same messages by plain inserts (F2).

`BENCH_FIXTURES` may name a folder with a `conversations.json`; otherwise one is made up.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_least, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import JsonMessage
from benchmarks.exports import write_export
from benchmarks.floors import Floor
from benchmarks.ours import Ours
from benchmarks.rounds import Contestant, race, rates
from sessions.importers import import_file
from sessions.importers.formats import choose_formats, conversations

GROUP = 1_000

Append = tuple[str, JsonMessage]


def test_import(benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path) -> None:
    """A whole file into a new store: what inserting takes, and beside it what reading the file takes."""
    source = export(folder)
    numbers = itertools.count(1)

    def open_ours() -> Ours:
        return Ours(runner, folder / f"ours-{next(numbers)}.db")

    def write(ours: Ours) -> None:
        ours.run(import_file(ours.store, source))

    def read(_: None) -> None:
        for _found in conversations(str(source), choose_formats("auto")):
            pass

    appends = stored(open_ours, source)
    groups = [appends[start : start + GROUP] for start in range(0, len(appends), GROUP)]

    def insert(floor: Floor) -> None:
        for group in groups:
            floor.append_group(group)

    us, reading, f2 = race(
        benchmark,
        Contestant(open_ours, write, Ours.close),
        Contestant(lambda: None, read),
        Contestant(lambda: Floor(folder / f"floor-{next(numbers)}.db"), insert, Floor.close),
    )
    count = len(appends)
    whole = rates(us, count)
    inserts = [count / (lap.seconds - read.seconds) for lap, read in zip(us, reading, strict=True)]
    floor_rates = rates(f2, count)
    label, size = f"F2({GROUP:,})", f"{count:,} messages, {source.stat().st_size / 1e6:.1f} MB"
    read_time = f"reading {median(lap.seconds for lap in reading) * 1000:.0f} ms"
    post(
        ratio(
            "import, inserts alone ÷ F2",
            size=size,
            ours=inserts,
            beside=floor_rates,
            unit="/s",
            label=label,
            goal=at_least(0.5),
        )
    )
    post(ratio("import, whole ÷ F2", size=read_time, ours=whole, beside=floor_rates, unit="/s", label=label))


def export(folder: Path) -> Path:
    """The file to import."""
    if fixtures := os.environ.get("BENCH_FIXTURES"):
        return Path(fixtures) / "conversations.json"
    source = folder / "conversations.json"
    write_export(source, seed=15)
    return source


def stored(open_ours: Callable[[], Ours], source: Path) -> list[Append]:
    """What an import of the file stores: every message of every branch, with its session."""
    with closing(open_ours()) as ours:

        async def collect() -> list[Append]:
            report = await import_file(ours.store, source)
            return [
                (imported.session_id, node.message.to_dict())
                for imported in report.sessions
                async for node in ours.session(imported.session_id).tree()
            ]

        return ours.run(collect())
