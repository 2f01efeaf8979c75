"""Another process on the same file: `python worker.py URL COMMAND NAME`, told what to do by lines on its input."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from eventstore.errors import VersionConflictError
from eventstore.log import EventLog
from tests.eventstore.support import Tally, note, notes, opened

APPENDS = 50
TASKS = 20


def say(answer: Any) -> None:
    """Answer with a line of JSON."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def lines() -> Iterator[str]:
    """Yield what it is told; no task runs meanwhile, and none needs to."""
    for line in sys.stdin:
        yield line.strip()


async def append_to_both(log: EventLog, name: str) -> None:
    """Append to the stream of all and to one of its own, one after the other, and tell the numbers."""
    told: dict[str, list[tuple[int, int]]] = {"shared": [], name: []}
    say("ready")
    next(lines())
    for number in range(APPENDS):
        for stream_id, numbers in told.items():
            [envelope] = (await log.append(stream_id, notes(f"{name}.{number}"))).envelopes
            numbers.append((envelope.version, envelope.position))
    say(told)


async def read_check_append(log: EventLog, name: str) -> None:
    """Add one to a counter that is read outside the append, again after each conflict; tell the conflicts."""
    conflicts = added = 0
    say("ready")
    next(lines())
    while added < APPENDS // 2:
        version = await log.stream_version("counter")
        try:
            await log.append("counter", notes(f"{name}.{version}"), expected=version)
            added += 1
        except VersionConflictError:
            conflicts += 1
    say(conflicts)


async def decide_in_the_transaction(log: EventLog, name: str) -> None:
    """Append what is decided from the tables inside the transaction, which can never conflict."""
    say("ready")
    next(lines())
    for _ in range(APPENDS // 2):

        def count(tx: Any, head: Any) -> Any:
            tx.flush()
            return [note(head.version)], None

        await log.transact("counted", count)
    say(name)


async def append_when_told(log: EventLog, _name: str) -> None:
    """Append an event to the stream of all for each line, with the line as its text, and tell its version."""
    say("ready")
    for line in lines():
        say((await log.append("shared", notes(line))).envelopes[0].version)


async def open_and_append(url: str, name: str) -> None:
    """Open a database that nobody has opened before, from many tasks' first appends."""
    say("ready")
    next(lines())
    async with opened(url, Tally()) as log:
        await asyncio.gather(*(log.append("new", notes(f"{name}.{task}")) for task in range(TASKS)))
    say(name)


COMMANDS: dict[str, Callable[[EventLog, str], Awaitable[None]]] = {
    command.__name__: command
    for command in (append_to_both, read_check_append, decide_in_the_transaction, append_when_told)
}


async def main(url: str, command: str, name: str) -> None:
    """Run a command on an open log, or the one that opens it itself."""
    if command == "open_and_append":
        await open_and_append(url, name)
    else:
        async with opened(url, Tally()) as log:
            await COMMANDS[command](log, name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
