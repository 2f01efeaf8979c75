from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from replay import verify
from sessions import open_store
from tests.sessions.processes import spawn

PROGRAM = Path(__file__).with_name("small_memory.py")
LAST_STEPS = ("rebuild", "append again")

# A limit of private memory is kept by Linux alone.
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limit of private memory")


async def check(url: str, count: int) -> list[str]:
    """Use a store of so many large messages in a process with little memory, and return what it said."""
    process = spawn(PROGRAM, {"url": url, "count": count, "megabytes": 256})
    output, errors = await asyncio.to_thread(process.communicate, timeout=3_000)
    lines = output.splitlines()
    assert (process.returncode, errors) == (0, ""), lines[-1:]
    assert lines[-4:-2] == list(LAST_STEPS)
    assert f"counts {[count + 1 - 9 - 10, count + 1 - 9 - 10, count + 2 - 10, count + 6, count + 1 - 9 - 10]}" in lines
    assert lines[-1].startswith("open again at ")
    async with open_store(url) as store:
        assert (await verify(store)).problems == []
    return lines


async def test_large_session_needs_little_memory(url: str) -> None:
    """A session of 80 MB is filled, used and rebuilt in 256 MB, except perhaps for a full read of it (MEM-1)."""
    await check(url, 400)


@pytest.mark.soak
async def test_very_large_session_needs_little_memory(url: str) -> None:
    """Of 2,000 messages of 200 KB everything but a full read works in 256 MB, and a full read fails alone (MEM-1)."""
    lines = await check(url, 2_000)
    assert lines[-2] == "full read is too large"
