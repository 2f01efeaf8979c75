from __future__ import annotations

import pytest

from eventstore import Event
from eventstore.ports import Tx
from projections.paths import (
    END,
    Neighbour,
    Range,
    first_on,
    last_on,
    nearest_below,
    newest_below,
    path_to,
    path_to_place,
    place_of,
)
from projections.stored import find_message
from sessions import Store
from tests.projections.support import appended, chain, deleted, on, opened, say

# 1 - 2 - 3 - 4 - 5
#     |   ` 4d
#     ` b3 - b4 - b5
#       ` c4
TREE: list[Event] = [
    *chain(*"12345"),
    *chain("b3", "b4", "b5", parent="2"),
    appended("c4", "b3"),
    appended("4d", "3"),
]


async def test_path_is_a_range_per_run() -> None:
    """A path is as many index ranges as it has runs, each from where it forks to where it is left."""
    async with opened() as store:
        await say(store, ["1", "2", "3", "4"])
        await say(store, ["3b", "4b"], "2")
        await say(store, ["4c"], "3b")
        assert await on(store, lambda tx, no: path_to(tx, no, "4")) == [Range(1, 1, 4)]
        assert await on(store, lambda tx, no: path_to(tx, no, "2")) == [Range(1, 1, 2)]
        assert await on(store, lambda tx, no: path_to(tx, no, "4b")) == [Range(1, 1, 2), Range(5, 3, 4)]
        path = await on(store, lambda tx, no: path_to(tx, no, None))
        assert path == [Range(1, 1, 2), Range(5, 3, 3), Range(7, 4, 4)]


async def test_path_to_nowhere() -> None:
    """There is no path to an unknown or deleted message, and an empty one in an empty session."""
    async with opened() as store:
        await store.log.append("s", [*chain("1", "2"), deleted("2")])
        await store.log.append("t", chain("other"))
        for name in ("other", "2", ""):
            assert await on(store, lambda tx, no, name=name: path_to(tx, no, name)) is None  # type: ignore[misc]
            assert await on(store, lambda tx, no, name=name: place_of(tx, no, name)) is None  # type: ignore[misc]
        assert await on(store, lambda tx, no: path_to(tx, no, None), "empty") == []
        assert await on(store, lambda tx, no: path_to(tx, no, "1"), "empty") is None
        await store.log.append("s", [deleted("1")])
        assert await on(store, lambda tx, no: path_to(tx, no, None)) == []


async def test_place_outlives_its_message() -> None:
    """The place of a message is the same whatever is deleted around it, and a path leads to a hole as well."""
    async with opened() as store:
        await store.log.append("s", [*TREE, deleted("1", "3", "b3")])
        assert await on(store, lambda tx, no: place_of(tx, no, "c4")) == (9, 4)
        assert await on(store, lambda tx, no: place_of(tx, no, None)) == (10, 4)
        assert await on(store, lambda tx, no: path_to_place(tx, no, 6, 3)) == [Range(1, 1, 2), Range(6, 3, 3)]
        assert await on(store, lambda tx, no: path_to(tx, no, "c4")) == [
            Range(1, 1, 2),
            Range(6, 3, 3),
            Range(9, 4, 4),
        ]


@pytest.mark.parametrize(
    ("gone", "first", "last"),
    [
        ([], "1", "c4"),
        (["1"], "2", "c4"),
        (["c4"], "1", "b3"),
        (["c4", "b3"], "1", "2"),
        (["1", "2"], "b3", "c4"),
        (["1", "2", "b3"], "c4", "c4"),
        (["2", "b3", "c4"], "1", "1"),
        (["1", "2", "b3", "c4"], None, None),
    ],
)
async def test_ends_of_a_path(gone: list[str], first: str | None, last: str | None) -> None:
    """The first and the last message on a path are those that are there, whatever holes and emptied runs it has."""
    async with opened() as store:
        await store.log.append("s", TREE)
        path = await on(store, lambda tx, no: path_to(tx, no, "c4")) or []
        if gone:
            await store.log.append("s", [deleted(*gone)])
        found = [await on(store, lambda tx, no, end=end: end(tx, no, path)) for end in (first_on, last_on)]  # type: ignore[misc]
        assert [one.id if one else None for one in found] == [first, last]


async def test_ends_of_a_stretch() -> None:
    """Of a stretch of a path only what lies on it counts, both ends included."""
    async with opened() as store:
        await store.log.append("s", [*TREE, deleted("3")])

        def ends(tx: Tx, no: int, stretch: list[Range]) -> list[str | None]:
            return [one.id if one else None for one in (first_on(tx, no, stretch), last_on(tx, no, stretch))]

        for stretch, expected in (
            ([Range(1, 2, 4)], ["2", "4"]),
            ([Range(1, 3, 4)], ["4", "4"]),
            ([Range(1, 3, 3)], [None, None]),
            ([Range(1, 4, END)], ["4", "5"]),
            ([Range(1, 3, 3), Range(10, 4, 4)], ["4d", "4d"]),
            ([], [None, None]),
        ):
            assert await on(store, lambda tx, no, s=stretch: ends(tx, no, s)) == expected  # type: ignore[misc]
        neighbour = await on(store, lambda tx, no: first_on(tx, no, [Range(6, 3, 3)]))
        assert neighbour == Neighbour(row_id=6, id="b3", run=6, ordinal=3)


async def below(store: Store, run: int, ordinal: int) -> list[str]:
    """Return the ids of the nearest messages below a place."""
    return [one.id for one in await on(store, lambda tx, no: nearest_below(tx, no, run, ordinal))]


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        ([], ["3", "b3"]),
        (["3"], ["4", "b3", "4d"]),
        (["b3"], ["3", "b4", "c4"]),
        (["3", "4", "b3", "b4"], ["5", "b5", "c4", "4d"]),
        (["3", "4", "5"], ["b3", "4d"]),
        (["b3", "b4", "b5"], ["3", "c4"]),
        (["3", "4", "5", "4d", "b3", "b4", "b5"], ["c4"]),
        (["3", "4", "5", "4d", "b3", "b4", "b5", "c4"], []),
        (["2"], ["3", "b3"]),
        (["1", "2", "4"], ["3", "b3"]),
    ],
)
async def test_nearest_below_looks_through_holes(gone: list[str], expected: list[str]) -> None:
    """The nearest messages below a place come in log order, through holes, runs whose head is gone and emptied runs."""
    async with opened() as store:
        await store.log.append("s", TREE)
        if gone:
            await store.log.append("s", [deleted(*gone)])
        assert await below(store, 1, 2) == expected


async def test_nearest_below_an_end() -> None:
    """Below a leaf there is nothing, also when another run forks above it or its run went on once."""
    async with opened() as store:
        await store.log.append("s", [*TREE, deleted("5")])
        for run, ordinal in ((1, 4), (1, 5), (6, 5), (9, 4), (10, 4), (99, 1)):
            assert await below(store, run, ordinal) == []
        await store.log.append("s", [appended("5e", "4"), appended("5f", "4")])
        assert await below(store, 1, 4) == ["5e", "5f"]


async def test_newest_below_is_the_newest_and_not_the_deepest() -> None:
    """Of what hangs below a message the one that was appended last is found, however deep others are."""
    async with opened() as store:
        await store.log.append("s", [*chain("r"), *TREE])

        async def newest(top: str | None) -> str:
            def look(tx: Tx, no: int) -> int:
                place = None if top is None else place_of(tx, no, top)
                return newest_below(tx, no, last_on(tx, no, [Range(place[0], 1, place[1])]) if place else None)

            row = await on(store, look)
            names = ["r", "1", "2", "3", "4", "5", "b3", "b4", "b5", "c4", "4d", "e6"]
            places = {
                name: await on(store, lambda tx, no, name=name: find_message(tx, no, name))  # type: ignore[misc]
                for name in names
            }
            return next((name for name, found in places.items() if found and found.position == row), "")

        tops: tuple[str | None, ...] = ("2", "3", "b3", "4", "b4", "c4", "r", None)
        assert [await newest(top) for top in tops] == ["4d", "4d", "c4", "5", "b5", "c4", "r", "4d"]
        await store.log.append("s", [deleted("4d", "b3", "c4")])
        tops = ("2", "3", "1", "r", None)
        assert [await newest(top) for top in tops] == ["b5", "5", "b5", "r", "b5"]
        await store.log.append("s", [appended("e6", "b4"), deleted("b4", "b5")])
        assert [await newest(top) for top in ("1", "3", None)] == ["e6", "5", "e6"]
        await store.log.append("s", [deleted("e6", "5", "4", "3")])
        assert [await newest(top) for top in ("1", "2", None)] == ["2", "2", "2"]
        await store.log.append("s", [deleted("1", "2", "r")])
        assert await newest(None) == ""
        assert await on(store, lambda tx, no: newest_below(tx, no, None), "empty") == 0


async def test_newest_below_a_fork_is_not_on_its_neighbours() -> None:
    """What hangs above a message, or beside it on another fork, is no leaf below it, however new it is."""
    events = [*chain("2", "3", "4"), appended("7", "3"), appended("8", "2"), appended("9", "2")]
    async with opened() as store:
        await store.log.append("s", events)

        def newest(tx: Tx, no: int) -> list[int]:
            tops = [Neighbour(1, "2", 1, 1), Neighbour(2, "3", 1, 2), Neighbour(3, "4", 1, 3)]
            return [newest_below(tx, no, top) for top in tops]

        assert await on(store, newest) == [6, 4, 3]
        await store.log.append("s", [deleted("9")])
        assert await on(store, newest) == [5, 4, 3]
