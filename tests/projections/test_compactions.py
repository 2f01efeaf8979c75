from __future__ import annotations

import pytest

from eventstore import Event
from eventstore.ports import Tx
from projections.compactions import (
    Compaction,
    Span,
    find_ends,
    find_summary,
    list_compactions,
    list_spans,
    stretch,
)
from projections.paths import Range
from sessions import Store
from tests.projections.support import NOON, appended, chain, cleared, compacted, deleted, on, opened, updated

# 1 - 2 - 3 - 4
#     ` b3 - b4 - b5
TREE: list[Event] = [*chain(*"1234"), *chain("b3", "b4", "b5", parent="2")]


async def ends(store: Store) -> list[tuple[str, str, str]]:
    """Return the compactions with the ends of what is left of them."""
    found = await on(store, list_compactions)
    return [(one.id, one.from_message_id, one.to_message_id) for one in found]


async def stale(store: Store) -> list[str]:
    """Return the compactions that are stale."""
    return [one.id for one in await on(store, list_compactions) if one.stale]


async def test_compactions_are_listed_in_log_order() -> None:
    """A session lists its own compactions, oldest first, with all that they were made with."""
    async with opened() as store:
        await store.log.append("t", [*chain("1"), compacted("other", "1", "1")])
        await store.log.append("s", [*TREE, compacted("z", "1", "2", "first"), compacted("a", "b3", "b5", "second")])
        assert await on(store, list_compactions) == [
            Compaction("z", "first", "1", "2", NOON, stale=False),
            Compaction("a", "second", "b3", "b5", NOON, stale=False),
        ]
        assert await on(store, list_compactions, "nobody") == []


async def test_compaction_is_found_by_its_id() -> None:
    """The ends of a compaction are found by its overlay's id in its session, and its summary by its row."""
    async with opened(estimate_tokens=len) as store:
        await store.log.append("s", [*TREE, compacted("a", "1", "b4", "so far")])

        def look(tx: Tx, no: int) -> None:
            assert find_ends(tx, no, "compaction_a") == ("1", "b4")
            assert find_ends(tx, no, "compaction_b") is None
            assert find_ends(tx, no, "a") is None
            assert find_ends(tx, no + 1, "compaction_a") is None
            assert list_spans(tx, no) == [Span(8, 1, 1, 5, 4, 4 + 6)]
            found_id, summary, time = find_summary(tx, 8)
            assert (found_id, summary, tx.dialect.to_time(time)) == ("a", "so far", NOON)

        await on(store, look)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2", "3", [Range(1, 2, 3)]),
        ("3", "3", [Range(1, 3, 3)]),
        ("2", "b4", [Range(1, 2, 2), Range(5, 3, 4)]),
        ("1", "b5", [Range(1, 1, 2), Range(5, 3, 5)]),
        ("b4", "b5", [Range(5, 4, 5)]),
    ],
)
async def test_stretch_is_what_a_compaction_was_made_of(first: str, last: str, expected: list[Range]) -> None:
    """A compaction stands for the ranges of the path between its ends."""
    async with opened() as store:
        await store.log.append("s", [*TREE, compacted("a", first, last)])
        assert await on(store, lambda tx, no: stretch(tx, no, list_spans(tx, no)[0])) == expected


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (["1"], ("2", "b4")),
        (["b4"], ("1", "b3")),
        (["2"], ("1", "b4")),
        (["3", "4", "b5"], ("1", "b4")),
        (["1", "b4"], ("2", "b3")),
        (["b3", "b4"], ("1", "2")),
        (["1", "2"], ("b3", "b4")),
        (["1", "2", "b4"], ("b3", "b3")),
        (["b4", "1", "b3"], ("2", "2")),
        (["1", "2", "b3", "b4"], None),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
async def test_compaction_shrinks_to_what_is_left(
    gone: list[str],
    left: tuple[str, str] | None,
    together: bool,  # noqa: FBT001 - a parameter of the cases above
) -> None:
    """Deleted ends move to what is left of the range, over runs too, and a compaction of nothing is dropped."""
    async with opened() as store:
        await store.log.append("s", [*TREE, compacted("a", "1", "b4"), compacted("kept", "4", "4")])
        await store.log.append("s", [deleted(*gone)] if together else [deleted(name) for name in gone])
        kept = [] if "4" in gone else [("kept", "4", "4")]
        assert await ends(store) == ([("a", *left)] if left else []) + kept


async def test_what_is_appended_into_a_range_later_is_not_in_it() -> None:
    """A message that hangs where the end of a range was deleted does not belong to the compaction."""
    async with opened() as store:
        await store.log.append("s", [*chain(*"123"), compacted("a", "2", "3"), deleted("3"), appended("3x", "2")])
        assert await ends(store) == [("a", "2", "2")]
        await store.log.append("s", [updated("3x", "edited")])
        assert await stale(store) == []


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("1", []),
        ("2", ["a", "b"]),
        ("3", ["a"]),
        ("4", ["a"]),
        ("b3", ["b"]),
        ("b4", ["b"]),
        ("b5", []),
    ],
)
async def test_edit_inside_a_range_makes_it_stale(edited: str, expected: list[str]) -> None:
    """An edit marks the compactions that stand for the message, both ends included, and no other."""
    async with opened() as store:
        await store.log.append("s", [*TREE, compacted("a", "2", "4"), compacted("b", "2", "b4")])
        assert await stale(store) == []
        await store.log.append("s", [updated(edited, "edited")])
        assert await stale(store) == expected


async def test_stale_stays() -> None:
    """A stale compaction stays so through deletions, and neither a deletion nor an earlier edit makes one stale."""
    async with opened() as store:
        await store.log.append("s", [*TREE, updated("2", "before"), compacted("a", "1", "4"), compacted("b", "1", "2")])
        await store.log.append("s", [deleted("1")])
        assert await stale(store) == []
        await store.log.append("s", [updated("3", "edited"), deleted("3")])
        assert await stale(store) == ["a"]
        assert await ends(store) == [("a", "2", "4"), ("b", "2", "2")]


async def test_clear_drops_the_compactions_of_one_session() -> None:
    """A clear drops a session's compactions, frees their ids, and leaves those of others."""
    async with opened() as store:
        for name in "st":
            await store.log.append(name, [*TREE, compacted("a", "1", "3")])
        await store.log.append("s", [cleared()])
        assert await ends(store) == []
        assert [one.id for one in await on(store, list_compactions, "t")] == ["a"]
        await store.log.append("s", [*chain("1"), compacted("a", "1", "1")])
        assert await ends(store) == [("a", "1", "1")]
