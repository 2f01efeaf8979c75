from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import msgspec
import pytest

from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections import history
from projections.history import PAGE_BYTES, PAGE_MESSAGES, Range
from sessions import Session, Store, open_store

T = TypeVar("T")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Open a store in memory."""
    async with open_store("sqlite://") as opened:
        yield opened


async def on(store: Store, query: Callable[[Tx, int], T], session_id: str = "s") -> T:
    """Run a query with the number of a session's stream."""
    return await store.log.read(lambda tx: query(tx, find_stream(tx, session_id)[0]))


async def chain(
    store: Store, names: list[str], parent: str | None = None, *, size: int = 1, session: str = "s"
) -> None:
    """Append messages with texts of this size, each under the one before it."""
    given = [{"id": name, "role": "user", "parts": [{"type": "text", "text": "x" * size}]} for name in names]
    await Session.create(store).for_session(session).append_messages(given, parent)


def ids(rows: Any) -> list[str]:
    """Return the ids in rows that begin with a message's content."""
    return [msgspec.json.decode(row[0])["id"] for row in rows]


async def test_path_is_a_range_per_run(store: Store) -> None:
    """A path is as many index ranges as it has runs, each from where it forks to where it is left."""
    await chain(store, ["1", "2", "3", "4"])
    await chain(store, ["3b", "4b"], "2")
    await chain(store, ["4c"], "3b")
    assert await on(store, lambda tx, no: history.path_to(tx, no, "4")) == [Range(1, 1, 4)]
    assert await on(store, lambda tx, no: history.path_to(tx, no, "2")) == [Range(1, 1, 2)]
    assert await on(store, lambda tx, no: history.path_to(tx, no, "4b")) == [Range(1, 1, 2), Range(5, 3, 4)]
    path = await on(store, lambda tx, no: history.path_to(tx, no, None))
    assert path == [Range(1, 1, 2), Range(5, 3, 3), Range(7, 4, 4)]
    assert ids(await on(store, lambda tx, no: list(history.read_path(tx, no, path or [])))) == ["1", "2", "3b", "4c"]


async def test_path_to_nowhere(store: Store) -> None:
    """There is no path to an unknown message, and an empty one in an empty session."""
    await chain(store, ["1"])
    await chain(store, ["other"], session="t")
    assert await on(store, lambda tx, no: history.path_to(tx, no, "other")) is None
    assert await on(store, lambda tx, no: history.path_to(tx, no, None), "empty") == []
    assert await on(store, lambda tx, no: history.path_to(tx, no, "1"), "empty") is None


async def pages_of_path(store: Store, leaf: str | None) -> list[list[str]]:
    """Return the ids in each page of a path."""
    path = await on(store, lambda tx, no: history.path_to(tx, no, leaf)) or []
    pages: list[list[str]] = []
    while path:

        def next_page(tx: Tx, no: int, path: list[Range] = path) -> tuple[list[Any], list[Range]]:
            return history.page_of_path(tx, no, path)

        page, path = await on(store, next_page)
        pages.append(ids(page))
    return pages


@pytest.mark.parametrize("count", [1, PAGE_MESSAGES - 1, PAGE_MESSAGES, PAGE_MESSAGES + 1, 2 * PAGE_MESSAGES])
async def test_pages_of_a_path_are_the_path(store: Store, count: int) -> None:
    """The pages of a path are bounded in messages, and joined they are the path, with none left over."""
    names = [str(number) for number in range(count)]
    await chain(store, names)
    pages = await pages_of_path(store, None)
    assert [name for page in pages for name in page] == names
    assert all(0 < len(page) <= PAGE_MESSAGES for page in pages)
    assert len(pages) == -(-count // PAGE_MESSAGES)


async def test_pages_end_anywhere_in_runs(store: Store) -> None:
    """A page may end inside a run, at its end, or span many runs."""
    names = [str(number) for number in range(PAGE_MESSAGES)]
    await chain(store, names)
    for number in range(60):
        at = PAGE_MESSAGES - 30 + number
        await chain(store, [f"x{at}", f"y{at}"], str(at - 1) if at <= PAGE_MESSAGES else f"z{at - 1}")
        await chain(store, [f"z{at}"], str(at - 1) if at <= PAGE_MESSAGES else f"z{at - 1}")
    expected = [node async for node in Session.create(store).for_session("s").history()]
    pages = await pages_of_path(store, None)
    assert [name for page in pages for name in page] == [message.id for message in expected]
    whole = await Session.create(store).for_session("s").get_history()
    assert [message.id for message in whole] == [message.id for message in expected]


async def test_pages_are_bounded_in_bytes(store: Store) -> None:
    """A page holds at most one message more than fits in its bytes."""
    await chain(store, [str(number) for number in range(9)], size=PAGE_BYTES // 3)
    assert [len(page) for page in await pages_of_path(store, None)] == [3, 3, 3]
    await chain(store, ["big"], "8", size=PAGE_BYTES * 2)
    await chain(store, ["after"], "big")
    assert [len(page) for page in await pages_of_path(store, None)] == [3, 3, 3, 1, 1]


async def test_children_are_in_log_order(store: Store) -> None:
    """The child that continues the run comes first, since it was first, and the others follow as they were appended."""
    await chain(store, ["1", "2", "3"])
    for name in ("c", "a", "b"):
        await chain(store, [name, f"{name}+"], "1")
    assert ids(await on(store, lambda tx, no: history.children_of(tx, no, "1"))) == ["2", "c", "a", "b"]
    assert ids(await on(store, lambda tx, no: history.children_of(tx, no, "a"))) == ["a+"]
    assert ids(await on(store, lambda tx, no: history.children_of(tx, no, "3"))) == []
    assert ids(await on(store, lambda tx, no: history.children_of(tx, no, "nope"))) == []


async def test_roots_are_nobodys_children(store: Store) -> None:
    """Several roots do not make each other's messages siblings or children."""
    await chain(store, ["r1", "a"])
    await chain(store, ["r2", "b"], None)
    await chain(store, ["c"], "r2")
    assert ids(await on(store, lambda tx, no: history.children_of(tx, no, "r1"))) == ["a"]
    assert ids(await on(store, lambda tx, no: history.children_of(tx, no, "r2"))) == ["b", "c"]


async def test_pages_of_the_tree_are_the_session(store: Store) -> None:
    """The pages of a tree are all of its messages in log order, bounded, and none of a neighbouring session's."""
    names = [str(number) for number in range(PAGE_MESSAGES + 10)]
    await chain(store, ["before"], session="r")
    await chain(store, names[:5])
    await chain(store, ["between"], session="t")
    await Session.create(store).for_session("s").select_leaf("2")
    await chain(store, names[5:], "2")
    pages: list[list[str]] = []
    after = 0
    while page := await on(store, lambda tx, no: history.page_of_tree(tx, no, after)):  # noqa: B023
        pages.append(ids(page))
        after = page[-1][3]
    assert [len(page) for page in pages] == [PAGE_MESSAGES, 10]
    assert [name for page in pages for name in page] == names
