"""A process that appends, updates, deletes and summarises at random beside others on one file; run as a program.

It says "ready" when the store is open, waits for a line, and then makes its changes. What others may do at the same
moment is answered by typed errors, which it expects; anything else ends it. In the end it says how often it had to
accept one.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import random
import sys
from typing import Any

from eventstore import (
    InvalidCompactionError,
    MessageDeletedError,
    MessageNotFoundError,
    ParentNotFoundError,
    VersionConflictError,
)
from sessions import Session, Store, open_store

EXPECTED = (
    InvalidCompactionError,
    MessageDeletedError,
    MessageNotFoundError,
    ParentNotFoundError,
    VersionConflictError,
)


def said(name: str, text: str) -> dict[str, Any]:
    """Return a message with one text part."""
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}


async def change(session: Session, chance: random.Random, new: str) -> None:
    """Make one change, mostly to messages that others may be changing too."""
    known = [node.message.id async for node in session.tree()]
    some = chance.choice(known) if known else new
    match chance.randrange(10):
        case 0 | 1 | 2:
            await session.append_message(said(new, "appended"))
        case 3:
            await session.append_message(said(new, "appended below"), some)
        case 4 | 5:
            await session.update_message(said(some, f"updated {chance.randrange(1_000)}"))
        case 6:
            await session.delete_messages(chance.sample(known, min(2, len(known))))
        case 7:
            path = [message.id async for message in session.history() if not message.id.startswith("compaction_")]
            if len(path) > 4:
                at = chance.randrange(len(path) - 3)
                await session.add_compaction(f"summary of {new}", path[at], path[at + 3])
        case 8:
            await session.upsert_message(said(some, f"upserted {chance.randrange(1_000)}"))
        case _:
            version = await session.version()
            await session.append_message(said(new, "appended in time"), expected_version=version)


async def write(store: Store, name: str, session_id: str, count: int) -> collections.Counter[str]:
    """Make so many changes to a session, and return how many errors of each kind there were."""
    chance = random.Random(name)
    refused: collections.Counter[str] = collections.Counter()
    session = Session.create(store).for_session(session_id)
    for number in range(count):
        try:
            await change(session, chance, f"{name}-{number}")
        except EXPECTED as error:
            refused[type(error).__name__] += 1
    await summarise(session, name)
    return refused


async def summarise(session: Session, name: str) -> None:
    """Append a few messages and summarise them, again when others have changed them in between."""
    for number in itertools.count():
        chain = [said(f"{name}-last-{number}-{k}", "to be summarised") for k in range(3)]
        try:
            await session.append_messages(chain, None)
            await session.add_compaction(f"summary of {name}", chain[0]["id"], chain[-1]["id"])
        except EXPECTED:
            continue
        return


async def main(url: str, name: str, session_id: str, count: int, tasks: int) -> None:
    """Make the changes with a few tasks at once."""
    async with open_store(url, synchronous="normal") as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        refused = await asyncio.gather(*(write(store, f"{name}.{task}", session_id, count) for task in range(tasks)))
        sys.stdout.write(json.dumps(sum(refused, collections.Counter())))


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
