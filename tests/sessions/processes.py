"""Starting processes that write to one file at once, and waiting for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replay import verify
from sessions import Session, Store, open_store
from tests.sessions.talk import ids

ROOT = Path(__file__).parents[2]
WRITER = Path(__file__).with_name("writers.py")


def spawn(program: Path, arguments: dict[str, Any]) -> subprocess.Popen[str]:
    """Start a program of the tests, which gets its arguments as JSON and talks through pipes."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(program), json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start(
    url: str, arguments: Sequence[dict[str, Any]], *, script: Path = WRITER, wait_until_open: bool = True
) -> list[subprocess.Popen[str]]:
    """Start a process, which writes, for each set of arguments, and let all of them begin at once."""
    started = [spawn(script, {"url": url, **one}) for one in arguments]
    for process in started:
        if wait_until_open:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate(timeout=60)[1]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return started


def finish(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Wait for processes, none of which may have failed."""
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert (process.returncode, errors) == (0, "")


def write_at_once(url: str, *, processes: int, count: int) -> None:
    """Let processes append so many messages each to one session and to one of their own, all at once."""
    writers = [
        {"name": f"p{n}", "sessions": ["shared", f"own-{n}"], "count": count, "together": True}
        for n in range(processes)
    ]
    finish(start(url, writers))


async def check_written(url: str, *, processes: int, count: int) -> None:
    """Check that all of it is there: unique positions, whole versions, one chain per session in each writer's order."""
    async with open_store(url) as store:
        log = [envelope async for envelope in store.log.read_all()]
        assert len(log) == len({envelope.position for envelope in log}) == processes * count * 2
        await _check_session(store, "shared", range(processes), count)
        for n in range(processes):
            await _check_session(store, f"own-{n}", [n], count)
        assert (await verify(store)).ok


async def _check_session(store: Store, session_id: str, writers: Sequence[int], count: int) -> None:
    session = Session.create(store).for_session(session_id)
    versions = [envelope.version async for envelope in session.events()]
    assert versions == list(range(1, count * len(writers) + 1))
    # Without a parent every append goes under the one before it, whichever process that came from.
    history = ids(await session.get_history())
    assert len(history) == len(versions) == await session.get_path_length()
    for n in writers:
        assert [name for name in history if name.startswith(f"p{n}-")] == [f"p{n}-{number}" for number in range(count)]
