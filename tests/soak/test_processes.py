from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.sessions.processes import check_written, write_at_once


@pytest.mark.soak
@pytest.mark.parametrize("number", range(5))
async def test_eight_processes_share_a_file(tmp_path: Path, number: int) -> None:
    """Eight processes that append 50 messages each to one session and to one each all succeed (CON-1)."""
    url = f"sqlite:///{tmp_path / f'{number}.db'}"
    await asyncio.to_thread(write_at_once, url, processes=8, count=50)
    await check_written(url, processes=8, count=50)
