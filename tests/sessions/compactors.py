"""A process that compacts one session, one of several on the same file; run as a program.

It says "ready" when its summary is written, waits for a line, and hands it in; then it says how many messages its
history has and what became of the summary.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from sessions import CompactResult, Session, open_store


async def main(url: str, name: str, first: str, last: str) -> None:
    """Compact the session "chat" between two messages, in the name of this process."""

    async def compact(_messages: Any, _context: Any) -> CompactResult:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        return CompactResult(first, last, f"by {name}")

    async with open_store(url) as store:
        result = await Session.create(store).for_session("chat").on_compaction(compact).compact()
        sys.stdout.write("recorded\n" if result else "discarded\n")


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
