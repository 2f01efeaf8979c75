"""A process that uses a store of large messages with little memory; run as a program.

Its private memory is limited. It says every step that it has done in a line of its own.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from replay import rebuild
from sessions import Session, SessionManager, Store, StoredSession, open_store
from sessions.exporters import export_session

KILOBYTES = 200
MEGABYTE = 1 << 20


def message(number: int) -> dict[str, Any]:
    """Return a message of 200 KB, mostly a tool's output."""
    text = {"type": "text", "text": f"number{number} and some words"}
    tool = {"type": "tool-read", "toolCallId": f"c{number}", "output": f"{number:06} " * (KILOBYTES * 1024 // 7)}
    return {"id": f"m{number}", "role": "assistant", "parts": [text, tool]}


async def fill(session: StoredSession, count: int) -> None:
    """Append so many messages, a few at a time."""
    for start in range(0, count, 10):
        await session.append_messages([message(number) for number in range(start, start + 10)])


async def use(store: Store, session: StoredSession, count: int) -> None:
    """Use everything but a full read."""
    steps: dict[str, Callable[[], Awaitable[Any]]] = {
        "append": lambda: session.append_message(message(count)),
        "latest leaf": session.get_latest_leaf,
        "path length": session.get_path_length,
        "recent": lambda: session.get_recent_history(MEGABYTE),
        "stats": session.get_history_row_stats,
        "tokens": session.token_estimate,
        "limited": lambda: session.get_history(limit=5),
        "skills": lambda: Session(session).get_loaded_skill_keys(),
        "list": lambda: SessionManager(store).list(),
        "export": lambda: export(store),
        "search": lambda: session.search_messages("number7"),
        "common word": lambda: session.search_messages("words", limit=5),
        "update": lambda: session.update_message({**message(3), "role": "user"}),
        "delete": lambda: session.delete_messages([f"m{number}" for number in range(10, 20)]),
        "compact": lambda: session.add_compaction("S", "m21", "m30"),
        "import": lambda: session.import_message(message(count + 1), None, dt.datetime(2001, 1, 1, tzinfo=dt.UTC)),
        "select": lambda: session.select_leaf(f"m{count}"),
        "streams": lambda: streams(session),
        "rebuild": lambda: rebuild(store),
        "append again": lambda: session.append_message(message(count)),
    }
    for step, call in steps.items():
        await call()
        say(step)
    try:
        say(f"full read of {len(await session.get_history())}")
    except MemoryError:
        say("full read is too large")


async def streams(session: StoredSession) -> None:
    """Read the session from both ends, in batches, as a tree and as events."""
    counts = [
        sum([1 async for _ in stream])
        for stream in (session.history(), session.history(newest_first=True), session.tree(), session.events())
    ]
    counts.append(sum([len(batch) async for batch in session.history_batches()]))
    say(f"counts {counts}")


async def export(store: Store) -> None:
    """Export the whole tree, and keep nothing of it."""
    size = 0
    async for piece in export_session(store, "chat", format="json"):
        size += len(piece)
    assert size > KILOBYTES * 1024


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(url: str, count: int, megabytes: int) -> None:
    """Fill a store, and use it after opening it again."""
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes * MEGABYTE, megabytes * MEGABYTE))
    async with open_store(url, synchronous="normal") as store:
        await fill(StoredSession(store, "chat"), count)
    async with open_store(url, synchronous="normal") as store:
        say("open")
        await use(store, StoredSession(store, "chat"), count)
    async with open_store(url, synchronous="normal") as store:
        say(f"open again at {await StoredSession(store, 'chat').version()}")


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
