"""A process that appends to a block of context and freezes a prompt beside others on one file; run as a program.

It says "ready" when the store is open, waits for a line, then appends its lines all at once and freezes the prompt; it
writes down the prompt that it was given.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from sessions import Session, StaticContext, open_store


async def main(url: str, name: str, count: int, told: str) -> None:
    """Append and freeze."""
    async with open_store(url, synchronous="normal") as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        session = (
            Session.create(store)
            .for_session("chat")
            .with_context("memory", description="Facts")
            .with_context("soul", provider=StaticContext(f"You were begun by {name}."))
            .with_cached_prompt()
        )
        prompt = asyncio.ensure_future(session.freeze_system_prompt())
        await asyncio.gather(*(session.append_context_block("memory", f"{name}-{n}\n") for n in range(count)))
        await asyncio.to_thread(Path(told).write_text, await prompt, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
