"""A process that creates, forks, splits, renames and deletes sessions beside others on one file; run as a program.

It says "ready" when the store is open, waits for a line, and then does so many things at random. What others may have
done a moment before is answered by typed errors, which it expects; anything else ends it.
"""

from __future__ import annotations

import asyncio
import collections
import json
import random
import sys
from typing import Any

from eventstore import MessageNotFoundError, SessionDeletedError, SessionExistsError, SessionNotFoundError
from sessions import SessionManager, open_store

EXPECTED = (MessageNotFoundError, SessionDeletedError, SessionExistsError, SessionNotFoundError)


def said(name: str, text: str) -> dict[str, Any]:
    """Return a message with one text part."""
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}


async def act(manager: SessionManager, chance: random.Random, new: str) -> None:
    """Do one thing to one of a few sessions that others do things to, or to one that came of them."""
    known = [info.id for info in await manager.list(limit=6)]
    some = chance.choice([*known, "shared-0", "shared-1"])
    match chance.randrange(10):
        case 0:
            await manager.create(new, id=f"shared-{chance.randrange(40)}")
        case 1 | 2 | 3:
            await manager.append(some, said(new, f"said {new}"))
        case 4 | 5:
            history = await manager.get_history(some)
            await manager.fork(some, history[-1].id if history else "none", f"fork {new}")
        case 6:
            await manager.compact_and_split(some, f"summary {new}")
        case 7:
            await manager.rename(some, new)
        case 8:
            await manager.add_usage(some, 1, 2, 0.5)
        case _:
            await manager.delete(some)


async def main(url: str, name: str, count: int, tasks: int) -> None:
    """Do so many things with a few tasks at once."""
    async with open_store(url, synchronous="normal") as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        manager = SessionManager(store)
        refused: collections.Counter[str] = collections.Counter()

        async def run(task: int) -> None:
            chance = random.Random(f"{name}.{task}")
            for number in range(count):
                try:
                    await act(manager, chance, f"{name}.{task}.{number}")
                except EXPECTED as error:
                    refused[type(error).__name__] += 1

        await asyncio.gather(*map(run, range(tasks)))
        sys.stdout.write(json.dumps(refused))


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
