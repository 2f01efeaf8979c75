from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from replay import verify
from sessions import Session, open_store
from tests.sessions.processes import finish, start

PROGRAM = Path(__file__).with_name("block_writers.py")


@pytest.mark.parametrize("repeat", range(3))
async def test_processes_append_to_a_block_and_freeze(tmp_path: Path, repeat: int) -> None:
    """Two processes append to one block at once: every line is there once, and both get one prompt (CTX-1, CTX-3)."""
    url = f"sqlite:///{tmp_path / f'{repeat}.db'}"
    told = [tmp_path / name for name in ("a", "b")]
    writers = [{"name": path.name, "count": 20, "told": str(path)} for path in told]
    finish(await asyncio.to_thread(start, url, writers, script=PROGRAM))
    prompts = {path.read_text(encoding="utf-8") for path in told}
    assert len(prompts) == 1
    async with open_store(url) as store:
        session = Session.create(store).for_session("chat").with_context("memory").with_cached_prompt()
        assert {await session.freeze_system_prompt()} == prompts
        block = await session.get_context_block("memory")
        assert block is not None
        lines = block.content.split()
        assert sorted(lines) == sorted(f"{name}-{n}" for name in "ab" for n in range(20))
        assert (await verify(store)).ok
