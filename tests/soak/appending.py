"""A process that appends under load until it is killed; run as a program.

It says "ready" when the store is open, and then every acknowledged append in a line of its own: the session and the
ids. The id of a message says where it belongs: process, task, number, its place in its batch and the batch's size.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys

from sessions import Session, Store, open_store

TASKS = 64
SESSIONS = 5
BATCHES = (1, 1, 1, 2, 7)


def say(line: str) -> None:
    """Write a line to the pipe at once: what is written survives the process."""
    os.write(1, f"{line}\n".encode())


async def append(store: Store, name: str, task: int) -> None:
    """Append messages one by one and in batches, and say each that was acknowledged."""
    chance = random.Random(f"{name}.{task}")
    number = 0
    while True:
        number += 1
        session_id = f"s{chance.randrange(SESSIONS)}" if task % 2 else f"own{task}"
        session = Session.create(store).for_session(session_id)
        size = chance.choice(BATCHES)
        text = "some words to index " * chance.randrange(1, 20)
        messages = [
            {
                "id": f"{name}.{task}.{number}.{place}.{size}",
                "role": "user",
                "parts": [{"type": "text", "text": text}],
            }
            for place in range(size)
        ]
        if size == 1:
            results = [await session.append_message(messages[0])]
        else:
            results = await session.append_messages(messages)
        say(" ".join([session_id, *(result.message.id for result in results)]))


async def main(url: str, name: str) -> None:
    """Append with many tasks at once."""
    store = await open_store(url)
    say("ready")
    await asyncio.gather(*(append(store, name, task) for task in range(TASKS)))


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
