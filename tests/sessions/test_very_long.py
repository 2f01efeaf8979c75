"""Very long conversations: what does not read them costs no more than in a short one, and streams hold a page."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from sessions import Store, StoredSession, open_store
from tests.sessions.talk import said
from tests.sessions.watching import Work, working

LONG = 60_000
VERY_LONG = 1_000_000
SHORT = 1_000

ROUNDS = 3
PAGE_BLOCKS = 50_000
"""More objects than a page of messages is made of, and far fewer than a long chain."""

# Each call is made a few times, so it gets the number of the round too.
CALLS: dict[str, Callable[[StoredSession, int, int], Awaitable[Any]]] = {
    "latest leaf": lambda session, _, __: session.get_latest_leaf(),
    "path length": lambda session, _, __: session.get_path_length(),
    "path length of the middle": lambda session, n, _: session.get_path_length(f"m{n // 2 + 9}"),
    "token estimate": lambda session, _, __: session.token_estimate(),
    "token estimate of the middle": lambda session, n, _: session.token_estimate(f"m{n // 2 + 9}"),
    "message": lambda session, _, __: session.get_message("m9"),
    "branches": lambda session, n, _: session.get_branches(f"m{n // 2 + 9}"),
    "last five": lambda session, _, __: session.get_history(limit=5),
    "last five of the middle": lambda session, n, _: session.get_history(f"m{n // 2 + 9}", limit=5),
    "recent": lambda session, _, __: session.get_recent_history(500),
    "compactions": lambda session, _, __: session.get_compactions(),
    "one word": lambda session, n, _: session.search_messages(f"m{n - 1}", limit=5),
    "append": lambda session, _, k: session.append_message(said(f"new{k}")),
    "append below the first": lambda session, _, k: session.append_message(said(f"side{k}"), "m9"),
    "select": lambda session, _, k: session.select_leaf(f"new{k}"),
    "update of the last": lambda session, _, k: session.update_message(said(f"new{k}", "changed")),
    "update of the first": lambda session, _, k: session.update_message(said(f"m{k}", "changed")),
    "update of the middle": lambda session, n, k: session.update_message(said(f"m{n // 2 + k}", "changed")),
    "token estimate after updates": lambda session, _, __: session.token_estimate(),
    "delete of the last": lambda session, _, k: session.delete_messages([f"new{k}"]),
    "delete of the first": lambda session, _, k: session.delete_messages([f"m{k}"]),
    "delete of the middle": lambda session, n, k: session.delete_messages([f"m{n // 2 + k}"]),
    "path length after deletions": lambda session, _, __: session.get_path_length(),
    "latest leaf after deletions": lambda session, _, __: session.get_latest_leaf(),
    "summary of a few": lambda session, n, _: session.add_compaction("S", f"m{n - 9}", f"m{n - 5}"),
    "summary of most": lambda session, n, _: session.add_compaction("S", "m9", f"m{n - 20}"),
    "history behind a summary": lambda session, _, __: session.get_history(limit=20),
    "token estimate with summaries": lambda session, _, __: session.token_estimate(),
}


async def fill(store: Store, name: str, length: int) -> StoredSession:
    """Make a session of one chain of short messages."""
    session = StoredSession(store, name)
    for start in range(0, length, 5_000):
        await session.append_messages([said(f"m{n}", f"m{n}") for n in range(start, min(start + 5_000, length))])
    return session


async def costs(session: StoredSession, length: int) -> dict[str, list[Work]]:
    """Return what each call asks of the database, each of a few times."""
    found: dict[str, list[Work]] = {name: [] for name in CALLS}
    # The first read looks the session up, the later ones know it.
    await session.get_latest_leaf()
    for number in range(ROUNDS):
        for name, call in CALLS.items():
            async with working(session.store) as work:
                await call(session, length, number)
            found[name].append(work)
    return found


def check_costs(short: dict[str, list[Work]], long: dict[str, list[Work]]) -> None:
    """Check that a long session asks for no more than a short one, nor a change at its start than one at its end."""

    def steps(works: list[Work]) -> int:
        # Now and then the text index merges: the least of a few times is what the call itself takes.
        return min(work.steps for work in works)

    for name, works in long.items():
        assert [work.statements for work in works] == [work.statements for work in short[name]], name
        assert steps(works) <= 2 * steps(short[name]) + 200, name
    for kind in ("update", "delete"):
        for place in ("first", "middle"):
            assert steps(long[f"{kind} of the {place}"]) <= 10 * steps(long[f"{kind} of the last"])


async def check_streams(session: StoredSession, length: int) -> None:
    """Check that a session is read from both ends and in batches with a page of it in memory."""

    def flat(batches: AsyncIterator[list[Any]]) -> AsyncIterator[Any]:
        return (message async for batch in batches for message in batch)

    forward, backward = range(length), range(length - 1, -1, -1)
    streams: list[tuple[AsyncIterator[Any], Iterable[int]]] = [
        (session.history(), forward),
        (session.history(newest_first=True), backward),
        (session.history(overlays=False), forward),
        (flat(session.history_batches()), forward),
    ]
    for stream, numbers in streams:
        left, before, most = iter(numbers), sys.getallocatedblocks(), 0
        async for message in stream:
            number = next(left)
            assert message.id == f"m{number}"
            if number % 64 == 0:
                most = max(most, sys.getallocatedblocks() - before)
        assert next(left, None) is None
        assert most < PAGE_BLOCKS


async def check_length(url: str, length: int) -> None:
    """Check all of this for a chain of so many messages, beside one of a thousand."""
    async with open_store(url, synchronous="normal") as store:
        short = await costs(await fill(store, "short", SHORT), SHORT)
        session = await fill(store, "long", length)
        assert [message.id for message in await session.get_history()] == [f"m{n}" for n in range(length)]
        assert await session.get_path_length() == length == len(await session.get_history_row_stats())
        await check_streams(session, length)
        check_costs(short, await costs(session, length))
        stats = await session.get_history_row_stats()
        assert await session.get_path_length() == len(stats)
        assert (await session.get_recent_history(0)).total_content_bytes == sum(row.bytes for row in stats)


async def test_long_chain_costs_no_more(url: str) -> None:
    """Of 60,000 messages a call reads what it gives back, and a change at the start costs one at the end."""
    await check_length(url, LONG)


@pytest.mark.soak
async def test_very_long_chain_costs_no_more(url: str) -> None:
    """The same holds for a chain of a million messages."""
    await check_length(url, VERY_LONG)
