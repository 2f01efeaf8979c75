"""A process that appends messages to a store, one of several on the same file; run as a program.

It says "ready" when the store is open, waits for a line, and appends; `together` appends to all its sessions at once.
"""

from __future__ import annotations

import asyncio
import json
import sys

from sessions import Session, open_store


async def main(url: str, name: str, sessions: list[str], count: int, *, together: bool) -> None:
    """Append `count` messages to each session, their ids beginning with this process's name."""
    async with open_store(url) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        for number in range(count):
            appends = [
                Session.create(store)
                .for_session(session_id)
                .append_message({"id": f"{name}-{number}", "role": "user", "parts": [{"type": "text", "text": name}]})
                for session_id in sessions
            ]
            if together:
                await asyncio.gather(*appends)
            else:
                for append in appends:
                    await append


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    asyncio.run(main(**arguments))
