from __future__ import annotations

from typing import Any

import pytest

from eventstore import LeafSelected
from eventstore.ports import Tx
from projections import RowStat
from projections.history import (
    PAGE_BYTES,
    PAGE_MESSAGES,
    children_of,
    page_of_tree,
    page_of_view,
    read_view,
    row_stats,
    start_of_recent,
)
from projections.overlay import View, view_of
from projections.paths import path_to
from sessions import Session, Store
from tests.projections.support import appended, chain, compacted, deleted, ids, on, opened, say, updated


async def view_to(store: Store, leaf: str | None = None) -> View:
    """Return the view of the path to a leaf."""
    return await on(store, lambda tx, no: view_of(tx, no, path_to(tx, no, leaf) or []))


async def pages(store: Store, leaf: str | None = None, *, newest_first: bool = False, **bounds: int) -> list[list[str]]:
    """Return the ids in each page of a view."""
    view = await view_to(store, leaf)
    found: list[list[str]] = []
    while view:

        def next_page(tx: Tx, no: int, view: View = view) -> tuple[list[Any], View]:
            before = view[:]
            page = page_of_view(tx, no, view, newest_first=newest_first, **bounds)
            assert view == before
            return page

        page, view = await on(store, next_page)
        found.append(ids(page))
    return found


async def test_view_is_read_from_the_root_on() -> None:
    """A view gives each of its messages once, across runs and holes, with overlays where they stand."""
    async with opened() as store:
        events = [*chain(*"12345"), *chain("b3", "b4", "b5", parent="2"), compacted("c", "2", "b3"), deleted("b4")]
        await store.log.append("s", events)
        for leaf, expected in (("b5", ["1", "compaction_c", "b5"]), ("5", [*"12345"]), ("2", ["1", "2"])):
            view = await view_to(store, leaf)
            assert ids(await on(store, lambda tx, no, view=view: list(read_view(tx, no, view)))) == expected  # type: ignore[misc]


@pytest.mark.parametrize("count", [1, PAGE_MESSAGES - 1, PAGE_MESSAGES, PAGE_MESSAGES + 1, 2 * PAGE_MESSAGES])
async def test_pages_of_a_path_are_the_path(count: int) -> None:
    """The pages of a path are bounded in messages, and joined they are the path, with none left over."""
    names = [str(number) for number in range(count)]
    async with opened() as store:
        await say(store, names)
        found = await pages(store)
        assert [name for page in found for name in page] == names
        assert all(0 < len(page) <= PAGE_MESSAGES for page in found)
        assert len(found) == -(-count // PAGE_MESSAGES)


async def test_pages_end_anywhere_in_runs() -> None:
    """A page may end inside a run, at its end, or span many runs."""
    async with opened() as store:
        await say(store, [str(number) for number in range(PAGE_MESSAGES)])
        for number in range(60):
            at = PAGE_MESSAGES - 30 + number
            await say(store, [f"x{at}", f"y{at}"], str(at - 1) if at <= PAGE_MESSAGES else f"z{at - 1}")
            await say(store, [f"z{at}"], str(at - 1) if at <= PAGE_MESSAGES else f"z{at - 1}")
        expected = [message.id async for message in Session.create(store).for_session("s").history()]
        assert [name for page in await pages(store) for name in page] == expected
        whole = await Session.create(store).for_session("s").get_history()
        assert [message.id for message in whole] == expected


@pytest.mark.parametrize("newest_first", [False, True], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("most", range(1, 12))
async def test_pages_of_any_size_are_the_view(most: int, newest_first: bool) -> None:  # noqa: FBT001 - a case
    """Joined, the pages of a view are the view in either direction, through holes, runs and overlays."""
    async with opened() as store:
        events = [*chain(*"12345"), *chain("b3", "b4", "b5", "b6", parent="2"), appended("c5", "b4")]
        await store.log.append("s", [*events, *chain("c6", "c7", "c8", parent="c5"), deleted("b3", "c6", "c8")])
        await store.log.append("s", [compacted("one", "1", "1"), compacted("two", "b4", "c5")])
        expected = ["compaction_one", "2", "compaction_two", "c7"]
        found = await pages(store, newest_first=newest_first, most=most)
        assert [name for page in found for name in page] == (expected[::-1] if newest_first else expected)
        assert all(len(page) <= most for page in found)


async def test_hole_at_the_end_of_a_page_loses_nothing() -> None:
    """A page that ends before holes is full, and what is left of its range may come to nothing."""
    async with opened() as store:
        await store.log.append("s", [*chain(*"123456"), appended("x", "6"), deleted("3", "4"), deleted("x")])
        assert await pages(store, most=2) == [["1", "2"], ["5", "6"]]
        assert await pages(store, most=3) == [["1", "2", "5"], ["6"]]
        assert await pages(store, "6", newest_first=True, most=2) == [["6", "5"], ["2", "1"]]


async def test_pages_are_bounded_in_bytes() -> None:
    """A page holds no more than fits in its bytes, but for a message that is longer by itself."""
    async with opened() as store:
        await say(store, [str(number) for number in range(9)], size=PAGE_BYTES // 4)
        assert [len(page) for page in await pages(store)] == [3, 3, 3]
        await say(store, ["big"], "8", size=PAGE_BYTES * 2)
        await say(store, ["after"], "big")
        assert [len(page) for page in await pages(store)] == [3, 3, 3, 1, 1]
        assert [len(page) for page in await pages(store, newest_first=True)] == [1, 1, 3, 3, 3]
        assert [len(page) for page in await pages(store, most_bytes=1)] == [1] * 11


async def test_overlays_count_in_bytes() -> None:
    """An overlay is as long as its JSON in UTF-8, whatever characters its summary is made of."""
    async with opened() as store:
        events = [*chain(*"123"), compacted("a", "1", "1", "中" * 1_000), compacted("b", "2", "2", "é" * 1_000)]
        await store.log.append("s", events)
        expected = [["compaction_a"], ["compaction_b", "3"]]
        assert await pages(store, most_bytes=4_000) == expected


async def test_row_stats_are_the_stored_messages() -> None:
    """The numbers of a path are those of its messages as they are stored now; compactions change none of them."""
    async with opened(estimate_tokens=len) as store:
        other = appended("3b", "2", "four \u00fc")
        await store.log.append("s", [*chain("1", "2", "3"), other, compacted("c", "1", "3b")])
        first, last = (len(bytes(event.raw)) for event in (appended("1"), other))
        stats = await on(store, lambda tx, no: row_stats(tx, no, path_to(tx, no, "3b") or []))
        user = RowStat("1", "user", first, 9), RowStat("2", "user", first, 9), RowStat("3b", "user", last, 4 + 6)
        assert stats == [*user]
        edit = updated("2", "größer", role="assistant")
        await store.log.append("s", [edit, deleted("1")])
        stats = await on(store, lambda tx, no: row_stats(tx, no, path_to(tx, no, "3") or []))
        size = len(bytes(edit.raw))
        assert stats == [RowStat("2", "assistant", size, 4 + 6), RowStat("3", "user", first, 9)]


@pytest.mark.parametrize(
    ("most_bytes", "least_messages", "expected"),
    [
        (0, 0, (None, 0)),
        (0, 1, ((2, 5), 1)),
        (1, 2, ((1, 3), 2)),
        (1, 3, ((0, 2), 3)),
        (1, 99, ((0, 1), 4)),
        (100, 0, ((2, 5), 1)),
        (199, 0, ((2, 5), 1)),
        (200, 0, ((1, 3), 2)),
        (399, 1, ((0, 2), 3)),
        (400, 0, ((0, 1), 4)),
        (1 << 62, 0, ((0, 1), 4)),
    ],
)
async def test_window_holds_what_fits(most_bytes: int, least_messages: int, expected: Any) -> None:
    """A window begins with the first message up to which all fits, but has at least as many as were asked for."""
    async with opened() as store:
        text = "x" * (100 - len(bytes(appended("1", None, "").raw)))
        events = [appended("1", None, text), appended("2", "1", text), *chain("a", "b", parent="2")]
        events += [appended("3", "2", text), appended("4", "3", text), appended("4b", "3", text), appended("5", "4b")]
        await store.log.append("s", [*events, updated("5", text), deleted("4b")])

        def look(tx: Tx, no: int) -> Any:
            bounds = {"most_bytes": most_bytes, "least_messages": least_messages}
            return start_of_recent(tx, no, path_to(tx, no, "5") or [], **bounds)

        path = await on(store, lambda tx, no: path_to(tx, no, "5"))
        assert path is not None
        assert [(part.first, part.last) for part in path] == [(1, 2), (3, 3), (4, 5)]
        assert await on(store, look) == expected


async def test_children_are_in_log_order() -> None:
    """The child that continues the run comes first, since it was first, and the others follow as they were appended."""
    async with opened() as store:

        async def children(name: str) -> list[str]:
            return ids(await on(store, lambda tx, no: children_of(tx, no, name)))

        await say(store, ["1", "2", "3"])
        for name in ("c", "a", "b"):
            await say(store, [name, f"{name}+"], "1")
        assert await children("1") == ["2", "c", "a", "b"]
        assert await children("a") == ["a+"]
        assert await children("3") == await children("nope") == []
        await store.log.append("s", [deleted("2", "c", "b+")])
        assert await children("1") == ["3", "c+", "a", "b"]
        assert await children("b") == await children("c") == []


async def test_roots_are_nobodys_children() -> None:
    """Several roots do not make each other's messages siblings or children."""
    async with opened() as store:
        await say(store, ["r1", "a"])
        await say(store, ["r2", "b"], None)
        await say(store, ["c"], "r2")
        assert ids(await on(store, lambda tx, no: children_of(tx, no, "r1"))) == ["a"]
        assert ids(await on(store, lambda tx, no: children_of(tx, no, "r2"))) == ["b", "c"]


async def test_pages_of_the_tree_are_the_session() -> None:
    """The pages of a tree are all of its messages in log order, bounded, and none of a neighbouring session's."""
    names = [str(number) for number in range(PAGE_MESSAGES + 10)]
    async with opened() as store:
        await say(store, ["before"], session="r")
        await say(store, names[:5])
        await say(store, ["between"], session="t")
        await store.log.append("s", [LeafSelected(message_id="2"), updated("1", "edited"), compacted("c", "1", "2")])
        await say(store, names[5:], "2")
        found: list[list[str]] = []
        after = 0
        while page := await on(store, lambda tx, no: page_of_tree(tx, no, after)):  # noqa: B023
            found.append(ids(page))
            after = page[-1][3]
        assert [len(page) for page in found] == [PAGE_MESSAGES, 10]
        assert [name for page in found for name in page] == names
        await store.log.append("s", [deleted("1", "5")])
        rows = await on(store, lambda tx, no: page_of_tree(tx, no, 0))
        assert [(name, row[2]) for name, row in zip(ids(rows), rows, strict=True)][:5] == [
            ("0", None),
            ("2", "0"),
            ("3", "2"),
            ("4", "3"),
            ("6", "2"),
        ]
