"""What a manager asks of the database: as much with many sessions as with few, and always by an index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from eventstore import Event, SessionCreated
from eventstore.heads import Head
from eventstore.ports import Tx
from sessions import SessionManager, Store, open_store
from tests.sessions.talk import said
from tests.sessions.test_plans import check_plans
from tests.sessions.watching import Work, recorded, working


def _made(first: int, last: int) -> Callable[[Tx, Head], tuple[dict[str, list[Event]], None]]:
    return lambda _tx, _head: ({f"s{n}": [SessionCreated(name=f"Session {n}")] for n in range(first, last)}, None)


async def fill(store: Store, count: int, *, first: int = 0) -> None:
    """Create so many sessions, many in a transaction."""
    for start in range(first, first + count, 5_000):
        last = min(start + 5_000, first + count)
        await store.log.transact(f"s{start}", _made(start, last))


async def cost_of(store: Store, call: Awaitable[Any]) -> Work:
    """Return what a call asks of the database."""
    async with working(store) as work:
        await call
    return work


async def costs(store: Store, count: int) -> list[Work]:
    """Return what the first page costs, and pages in the middle and near the end of so many sessions."""
    manager = SessionManager(store)
    pages = [manager.list(limit=20)]
    pages += [manager.list(limit=20, cursor=f"{count}.{before}") for before in (count // 2, 50)]
    found = []
    for page in pages:
        work = await cost_of(store, page)
        found.append(work)
    return found


async def check_pages_cost_the_same(count: int) -> None:
    """Check that a page costs what it costs in a store of 100 sessions, wherever it is, and that a walk shows all."""
    async with open_store("sqlite://") as few, open_store("sqlite://") as many:
        await fill(few, 100)
        await fill(many, count)
        for least, work in zip(await costs(few, 100), await costs(many, count), strict=True):
            assert work.statements == least.statements <= 3
            # An index over more rows is a little deeper.
            assert work.steps <= least.steps * 1.1
        cursor, seen = None, 0
        manager = SessionManager(many)
        while True:
            page = await manager.list(limit=5_000, cursor=cursor)
            assert [info.id for info in page] == [f"s{count - seen - n}" for n in range(1, len(page) + 1)]
            seen, cursor = seen + len(page), page.next_cursor
            if cursor is None:
                break
        assert seen == count


async def test_pages_cost_the_same_with_many_sessions() -> None:
    """A page of a list costs the same wherever it is and however many sessions there are."""
    await check_pages_cost_the_same(4_000)


@pytest.mark.soak
async def test_pages_cost_the_same_with_a_hundred_thousand_sessions() -> None:
    """A page of a list costs the same wherever it is among 100,000 sessions."""
    await check_pages_cost_the_same(100_000)


CALLS: dict[str, Callable[[SessionManager], Awaitable[Any]]] = {
    "get": lambda manager: manager.get("s5"),
    "get unknown": lambda manager: manager.get("nope"),
    "create": lambda manager: manager.create("new"),
    "rename": lambda manager: manager.rename("s5", "new"),
    "add_usage": lambda manager: manager.add_usage("s5", 1, 1, 0.1),
    "append": lambda manager: manager.append("s5", said("new")),
    "fork": lambda manager: manager.fork("s5", "m2", "F"),
    "compact_and_split": lambda manager: manager.compact_and_split("s5", "S"),
    "delete": lambda manager: manager.delete("s5"),
    "delete unknown": lambda manager: manager.delete("nope"),
    "first page": lambda manager: manager.list(limit=5),
    "later page": lambda manager: manager.list(limit=5, cursor="100.50"),
    "page of an old walk": lambda manager: manager.list(limit=5, cursor="60.50"),
    "whole list": lambda manager: manager.list(),
}


SIZE_TELLS = {"whole list", "later page", "page of an old walk"}
"""The calls that look at what was created, or written to, since a walk began."""


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Return a store with 100 sessions, one of them with messages and a summary."""
    async with open_store("sqlite://") as opened:
        await fill(opened, 100)
        manager = SessionManager(opened)
        await manager.append_all("s5", [said("m1"), said("m2")])
        await manager.add_compaction("s5", "S", "m1", "m1")
        yield opened


@pytest.mark.parametrize("call", CALLS)
async def test_rows_are_found_by_an_index(store: Store, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """No call of a manager looks through a table that all sessions share."""
    manager = SessionManager(store)
    with recorded(monkeypatch) as seen:
        await CALLS[call](manager)
    assert seen
    await check_plans(store, seen)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in SIZE_TELLS])
async def test_calls_cost_the_same_with_many_sessions(store: Store, call: str) -> None:
    """A call of a manager runs as many statements, in as many steps, with 3,000 sessions as with 100."""
    async with open_store("sqlite://") as many:
        await fill(many, 100)
        manager = SessionManager(many)
        await manager.append_all("s5", [said("m1"), said("m2")])
        await manager.add_compaction("s5", "S", "m1", "m1")
        await fill(many, 2_900, first=100)
        least = await cost_of(store, CALLS[call](SessionManager(store)))
        work = await cost_of(many, CALLS[call](manager))
        assert work.statements == least.statements
        assert work.steps <= least.steps * 1.1 + 20


async def test_page_of_an_old_walk_looks_at_what_was_touched_since(store: Store) -> None:
    """A page of a walk that began before many writes looks at the sessions written to since, and at no others."""
    manager = SessionManager(store)
    begun = await store.log.high_water()
    costs = []
    for number in range(2):
        for session in range(10):
            await manager.append(f"s{session}", said(f"n{number}"))
        costs.append(await cost_of(store, manager.list(limit=5, cursor=f"{begun}.50")))
    assert costs[0].statements <= 3 + 10 * 4
    # Once more to each session is one more event of each to look for the place in.
    assert costs[1].statements <= costs[0].statements + 10


async def test_sessions_that_are_newer_than_a_walk_are_passed_over(store: Store) -> None:
    """A page of a walk that began before many sessions were created runs no statement more for them."""
    manager = SessionManager(store)
    begun = await store.log.high_water()
    before = await cost_of(store, manager.list(limit=5, cursor=f"{begun}.50"))
    await fill(store, 2_000, first=100)
    after = await cost_of(store, manager.list(limit=5, cursor=f"{begun}.50"))
    assert after.statements == before.statements
    assert after.steps <= before.steps + 2_000 * 15
