from __future__ import annotations

import copy
import datetime as dt
import pickle
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from eventstore import InvalidArgumentError
from sessions import SessionManager, Store, open_store
from tests.sessions.talk import log_of, said

NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


@pytest.fixture(params=["file", "memory"])
async def store(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Store]:
    """Open a store whose clock stands still, so that no time tells its sessions apart."""
    at = url if request.param == "file" else "sqlite://"
    async with open_store(at, clock=lambda: NOON, synchronous="normal") as opened:
        yield opened


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a manager of the store."""
    return SessionManager(store)


Between = Callable[[int, list[str]], Awaitable[None]]
"""What happens after a page: called with the number of pages so far, and the ids in them."""


async def walk(manager: SessionManager, limit: int, between: Between | None = None) -> list[str]:
    """Return the ids in all pages, and let something happen after each."""
    seen: list[str] = []
    page = await manager.list(limit=limit)
    for number in range(1, 1_000):
        seen += [info.id for info in page]
        assert len(page) <= limit
        if page.next_cursor is None:
            return seen
        assert len(page) == limit
        if between is not None:
            await between(number, seen)
        page = await manager.list(limit=limit, cursor=page.next_cursor)
    raise AssertionError("the walk has no end")


async def fill(manager: SessionManager, count: int = 50) -> list[str]:
    """Create so many sessions, and return their ids as they are listed."""
    for number in range(count):
        await manager.create(f"Session {number}", id=f"s{number}")
    return [f"s{number}" for number in reversed(range(count))]


async def test_pages_beside_writes_show_each_session_once(manager: SessionManager) -> None:
    """Sessions that are touched or created between pages do not move a walk, whatever the clock says (ORD-4)."""
    expected = await fill(manager)

    async def between(number: int, seen: list[str]) -> None:
        if number == 2:
            await manager.append(seen[3], said("m1"))
            await manager.append("s7", said("m1"))
            await manager.append("s0", said("m1"))
            await manager.create("new", id="new")

    assert await walk(manager, 7, between) == expected
    assert [info.id for info in await manager.list(limit=4)] == ["new", "s0", "s7", expected[3]]


@pytest.mark.parametrize("limit", [1, 2, 7, 49, 50, 51, 10**30])
async def test_pages_of_any_size_make_the_whole_list(manager: SessionManager, limit: int) -> None:
    """Pages of any size give what the whole list gives, and only the last one has no cursor (ORD-4)."""
    expected = await fill(manager)
    assert await walk(manager, limit) == expected
    assert ((await manager.list(limit=limit)).next_cursor is None) == (limit >= 50)
    whole = await manager.list()
    assert ([info.id for info in whole], whole.next_cursor) == (expected, None)


async def test_whatever_is_done_between_pages(manager: SessionManager) -> None:
    """Each session that was there at the start comes once, in the order as of then, unless it was deleted (ORD-4)."""
    for seed in range(8):
        chance = random.Random(seed)
        order = [info.id for info in await manager.list()] or await fill(manager, 30)
        gone: set[str] = set()

        async def between(
            number: int, _: list[str], *, chance: random.Random = chance, gone: set[str] = gone, seed: int = seed
        ) -> None:
            for step in range(chance.randrange(6)):
                known = [info.id for info in await manager.list()]
                some, name = chance.choice(known), f"{seed}.{number}.{step}"
                match chance.randrange(7):
                    case 0:
                        await manager.create(name, id=name)
                    case 1:
                        await manager.rename(some, name)
                    case 2:
                        await manager.delete(some)
                        gone.add(some)
                    case 3:
                        await manager.fork(some, (await manager.append(some, said(name))).message.id, name)
                    case 4:
                        await manager.compact_and_split(some, "S")
                    case _:
                        await manager.append(some, said(name))

        seen = await walk(manager, chance.randrange(1, 6), between)
        assert len(seen) == len(set(seen))
        assert [name for name in seen if name not in gone] == [name for name in order if name not in gone]
        assert set(seen) <= set(order)


async def test_pages_show_what_is_known_when_they_are_read(manager: SessionManager) -> None:
    """A page has the names and the usage of the moment, in the order of the start."""
    await fill(manager, 4)
    page = await manager.list(limit=2)
    await manager.rename("s1", "renamed")
    await manager.add_usage("s0", 1, 2, 0.5)
    rest = await manager.list(limit=5, cursor=page.next_cursor)
    assert [(info.id, info.name, info.input_tokens) for info in rest] == [("s1", "renamed", 0), ("s0", "Session 0", 1)]
    assert rest.next_cursor is None


async def test_walks_of_different_starts(manager: SessionManager) -> None:
    """Each walk keeps the order of its own start, and a cursor may be used again, with another limit."""
    await fill(manager, 4)
    first = await manager.list(limit=1)
    await manager.append("s0", said("m1"))
    second = await manager.list(limit=1)
    for _ in range(2):
        assert [info.id for info in await manager.list(cursor=first.next_cursor)] == ["s2", "s1", "s0"]
        assert [info.id for info in await manager.list(limit=2, cursor=second.next_cursor)] == ["s3", "s2"]


async def test_cursor_outlives_the_store(url: str) -> None:
    """A walk goes on in another process and another time."""
    async with open_store(url, synchronous="normal") as store:
        await fill(SessionManager(store), 5)
        page = await SessionManager(store).list(limit=2)
    async with open_store(url, synchronous="normal") as store:
        await SessionManager(store).append("s0", said("m1"))
        rest = await SessionManager(store).list(limit=2, cursor=page.next_cursor)
        assert [info.id for info in rest] == ["s2", "s1"]


async def test_first_page_of_nothing(manager: SessionManager) -> None:
    """A store without sessions has one page, which is empty."""
    page = await manager.list(limit=5)
    assert (page, page.next_cursor) == ([], None)
    await manager.create("A", id="a")
    await manager.delete("a")
    page = await manager.list(limit=5)
    assert (page, page.next_cursor) == ([], None)


async def test_rest_of_a_walk_may_be_gone(manager: SessionManager) -> None:
    """When all that a walk has not shown yet was deleted, it ends with an empty page."""
    await fill(manager, 4)
    page = await manager.list(limit=2)
    for name in ("s0", "s1", "s2"):
        await manager.delete(name)
    rest = await manager.list(limit=2, cursor=page.next_cursor)
    assert (rest, rest.next_cursor) == ([], None)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "5", [], float("nan")])
async def test_bad_limits_are_refused(manager: SessionManager, limit: Any) -> None:
    """A limit that is no number from 1 on raises (ORD-4)."""
    with pytest.raises(InvalidArgumentError) as raised:
        await manager.list(limit=limit)
    assert raised.value.argument == "limit"


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "garbage", ".", "1", "1.", ".1", "1.2.3", "-1.1", "1.-1", "1.5e3", "a.b", " 1.1", "1.1\n", "1,1"),
        *("0.0", "1.0", "1.2", "\u0663.1", "\u00b25.1", "9999999999999999999.1", f"{1 << 62}.1", f"{'9' * 5_000}.1"),
        *(5, 1.5, True, b"1.1", ["1.1"]),
    ],
)
async def test_bad_cursors_are_refused(manager: SessionManager, cursor: Any) -> None:
    """What no page gave as its cursor raises (ORD-4)."""
    await fill(manager, 3)
    with pytest.raises(InvalidArgumentError) as raised:
        await manager.list(limit=1, cursor=cursor)
    assert raised.value.argument == "cursor"


async def test_listing_writes_nothing(store: Store, manager: SessionManager) -> None:
    """A walk leaves no event."""
    await fill(manager, 5)
    await walk(manager, 2)
    assert len(await log_of(store)) == 5


async def test_page_is_a_list_with_a_cursor(manager: SessionManager) -> None:
    """A page equals the list of its sessions, and a copy of it has its cursor too."""
    await fill(manager, 3)
    page = await manager.list(limit=2)
    assert page == [await manager.get("s2"), await manager.get("s1")]
    for copied in (copy.copy(page), copy.deepcopy(page), pickle.loads(pickle.dumps(page))):  # noqa: S301 - our own
        assert (copied, copied.next_cursor) == (page, page.next_cursor)
