"""A process that appends, updates and deletes under load until it is killed; run as a program.

It says "ready" when the store is open. Of every change it says a line before it and one after it was acknowledged:
what, the session, the message and, of an update, its number. Each task changes messages of its own only.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from typing import Any

from sessions import Session, Store, open_store

TASKS = 16
SESSIONS = 3


def say(*words: object) -> None:
    """Write a line to the pipe at once: what is written survives the process."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def message(name: str, revision: int) -> dict[str, Any]:
    """Return a message in one of its revisions."""
    text = f"revision {revision} word{revision} " * 5
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}], "revision": revision}


async def change(store: Store, name: str, task: int) -> None:
    """Append, update, delete and summarise, and say what is about to be done and what was acknowledged."""
    chance = random.Random(f"{name}.{task}")
    session_id = f"s{task % SESSIONS}"
    session = Session.create(store).for_session(session_id)
    own: dict[str, int] = {}
    number = 0
    while True:
        number += 1
        kind = chance.choice("aaauuudc") if own else "a"
        one = f"{name}.{task}.{number}" if kind == "a" else chance.choice(list(own))
        revision = own.get(one, -1) + 1
        say("will", kind, session_id, one, revision)
        if kind == "a":
            await session.append_message(message(one, 0))
        elif kind == "u":
            await session.update_message(message(one, revision))
        elif kind == "d":
            await session.delete_messages([one])
        else:
            await session.add_compaction(f"summary {number}", one, one)
        say("done", kind, session_id, one, revision)
        if kind == "d":
            del own[one]
        elif kind != "c":
            own[one] = revision


async def main(url: str, name: str) -> None:
    """Change with many tasks at once."""
    store = await open_store(url)
    say("ready")
    await asyncio.gather(*(change(store, name, task) for task in range(TASKS)))


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
