from __future__ import annotations

import asyncio
import os
import random
import signal
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from replay import verify
from sessions import import_file, open_store
from tests.sessions.importers.long_file import write_long
from tests.sessions.processes import spawn

WORKER = Path(__file__).with_name("importing.py")
ROUNDS = int(os.environ.get("SOAK_ROUNDS", "60"))


async def told(url: str) -> list[tuple[str, Any, Any]]:
    """Return all that a store has been told, but for what is made anew each time."""
    async with open_store(url) as store:
        assert (await verify(store)).problems == []
        return [(one.type, one.event, one.metadata) async for one in store.log.read_all()]


def killed(arguments: dict[str, Any], delay: float) -> bool:
    """Run an import, kill it when it has run for so long, and tell whether it was done before."""
    process = spawn(WORKER, arguments)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    output, errors = process.communicate(timeout=60)
    assert errors == ""
    return output.startswith("done")


async def kill_often(folder: Path, *, size: int, rounds: int, seed: int) -> None:
    """Import one file again and again, killed at random moments, until it was done once; then compare."""
    chance = random.Random(seed)
    path = folder / "s.jsonl"
    write_long(path, size=size)
    url, whole = f"sqlite:///{folder / 'killed.db'}", f"sqlite:///{folder / 'whole.db'}"
    started = time.monotonic()
    async with open_store(whole, synchronous="normal") as store:
        await import_file(store, path)
    took = time.monotonic() - started
    for _ in range(rounds):
        arguments = {"url": url, "path": str(path), "piece_bytes": 20_000}
        if await asyncio.to_thread(killed, arguments, chance.uniform(0, took)):
            break
    async with open_store(url) as store:
        await import_file(store, path)
        head = await store.log.high_water()
        await import_file(store, path)
        assert await store.log.high_water() == head
    assert await told(url) == await told(whole)


async def test_killed_import_ends_with_the_same_store(tmp_path: Path) -> None:
    """An import that is killed, and run again, ends with the store that one without a break has made."""
    await kill_often(tmp_path, size=1_500_000, rounds=3, seed=1)


@pytest.mark.soak
async def test_often_killed_import_ends_with_the_same_store(tmp_path: Path) -> None:
    """The same holds for a larger file, more kills and other moments in each run."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    await kill_often(tmp_path, size=20_000_000, rounds=ROUNDS, seed=seed)


async def peak_of_import(folder: Path, size: int) -> int:
    """Import a file of a size, and return how much memory Python took for it at most."""
    path = folder / f"{size}.jsonl"
    messages = write_long(path, size=size, words=2_000)
    async with open_store(f"sqlite:///{folder / f'{size}.db'}", synchronous="normal") as store:
        await import_file(store, path, dry_run=True)
        tracemalloc.start()
        try:
            report = await import_file(store, path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (report.messages, report.problems) == (messages, [])
    return peak


async def test_long_file_is_not_held_in_memory(tmp_path: Path) -> None:
    """A file takes no more memory for being longer, but for a little per record."""
    short, long = [await peak_of_import(tmp_path, size << 20) for size in (12, 36)]
    assert long < short + (4 << 20)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
async def test_gigabyte_is_imported_with_little_memory(tmp_path: Path) -> None:
    """A gigabyte of one session is imported by a process with 200 MB."""
    path = tmp_path / "s.jsonl"
    messages = write_long(path, size=1 << 30, words=200)
    process = spawn(WORKER, {"url": f"sqlite:///{tmp_path / 'store.db'}", "path": str(path)})
    output, errors = await asyncio.to_thread(process.communicate, timeout=7_000)
    assert errors == ""
    done, count, peak = output.splitlines()[-1].split()
    assert (done, int(count)) == ("done", messages)
    assert int(peak) < 200
