from __future__ import annotations

import random
from itertools import islice
from typing import Any

import msgspec
import pytest

from eventstore import Event
from eventstore.ports import Tx
from projections.history import read_view
from projections.overlay import Overlay, View, view_of, view_tokens
from projections.paths import Range, path_to
from projections.stored import find_message
from projections.tokens import estimate_parts_tokens
from sessions import Store
from tests.projections.plain import Plain, random_story
from tests.projections.support import appended, chain, compacted, deleted, ids, on, opened, updated


def shape(view: View) -> list[Any]:
    """Return a view with the ids of its overlays in place of them."""
    return [part if isinstance(part, Range) else msgspec.json.decode(part.content)["id"][11:] for part in view]


async def view(store: Store, leaf: str | None = None, start: tuple[int, int] = (0, 0)) -> list[Any]:
    """Return the view of the path to a leaf."""

    def look(tx: Tx, no: int) -> View:
        return view_of(tx, no, path_to(tx, no, leaf) or [], start=start)

    return shape(await on(store, look))


async def test_overlay_is_a_message() -> None:
    """An overlay is the JSON of an assistant's message with the summary as text and the time of its compaction."""
    async with opened() as store:
        await store.log.append("s", [*chain("1", "2"), compacted("c-9", "1", "1", "Größe \u2028 \0 中")])
        (overlay, rest) = await on(store, lambda tx, no: view_of(tx, no, path_to(tx, no, None) or []))
        assert isinstance(overlay, Overlay)
        assert msgspec.json.decode(overlay.content) == {
            "id": "compaction_c-9",
            "role": "assistant",
            "parts": [{"type": "text", "text": "Größe \u2028 \0 中"}],
            "createdAt": "2025-06-01T12:00:00Z",
        }
        stored = await on(store, lambda tx, no: find_message(tx, no, "2"))
        assert stored is not None
        assert overlay.created_at == stored.created_at
        assert rest == Range(1, 2, 2)


@pytest.mark.parametrize(
    ("compactions", "expected"),
    [
        ([], [Range(1, 1, 6)]),
        ([("a", "1", "6")], ["a"]),
        ([("a", "2", "3")], [Range(1, 1, 1), "a", Range(1, 4, 6)]),
        ([("a", "4", "4"), ("b", "2", "2")], [Range(1, 1, 1), "b", Range(1, 3, 3), "a", Range(1, 5, 6)]),
        ([("a", "1", "2"), ("b", "3", "6")], ["a", "b"]),
        ([("a", "1", "3"), ("b", "3", "4")], [Range(1, 1, 2), "b", Range(1, 5, 6)]),
        ([("a", "3", "5"), ("b", "1", "3")], ["b", Range(1, 4, 6)]),
        ([("a", "1", "2"), ("b", "1", "4")], ["b", Range(1, 5, 6)]),
        ([("a", "1", "4"), ("b", "2", "3")], [Range(1, 1, 1), "b", Range(1, 4, 6)]),
        ([("a", "2", "3"), ("b", "2", "3")], [Range(1, 1, 1), "b", Range(1, 4, 6)]),
        ([("a", "1", "2"), ("b", "2", "3"), ("c", "3", "4")], ["a", "c", Range(1, 5, 6)]),
    ],
)
async def test_newest_overlay_wins(compactions: list[tuple[str, str, str]], expected: list[Any]) -> None:
    """Of compactions that overlap the newest is applied, and an older one is left out whole."""
    events: list[Event] = [*chain(*"123456"), *(compacted(*one) for one in compactions)]
    async with opened() as store:
        await store.log.append("s", events)
        assert await view(store) == expected


async def test_overlay_reaches_over_runs() -> None:
    """A compaction of several runs is applied on the paths that hold all of it, and on no other."""
    async with opened() as store:
        events = [*chain(*"1234"), *chain("b3", "b4", parent="2"), *chain("c4", "c5", parent="b3")]
        await store.log.append("s", [*events, compacted("a", "2", "c4")])
        assert await view(store, "c5") == [Range(1, 1, 1), "a", Range(7, 5, 5)]
        assert await view(store, "c4") == [Range(1, 1, 1), "a"]
        assert await view(store, "b4") == [Range(1, 1, 2), Range(5, 3, 4)]
        assert await view(store, "4") == [Range(1, 1, 4)]
        assert await view(store, "2") == [Range(1, 1, 2)]
        await store.log.append("s", [compacted("b", "1", "2")])
        assert await view(store, "c5") == ["b", Range(5, 3, 3), Range(7, 4, 5)]
        assert await view(store, "4") == ["b", Range(1, 3, 4)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ((0, 0), [Range(1, 1, 1), "a", Range(4, 4, 4), "b", Range(7, 6, 6)]),
        ((0, 1), [Range(1, 1, 1), "a", Range(4, 4, 4), "b", Range(7, 6, 6)]),
        ((0, 2), ["a", Range(4, 4, 4), "b", Range(7, 6, 6)]),
        ((1, 3), ["a", Range(4, 4, 4), "b", Range(7, 6, 6)]),
        ((1, 4), [Range(4, 4, 4), "b", Range(7, 6, 6)]),
        ((2, 5), ["b", Range(7, 6, 6)]),
        ((2, 6), [Range(7, 6, 6)]),
    ],
)
async def test_view_from_a_point_on(start: tuple[int, int], expected: list[Any]) -> None:
    """A view that starts inside an overlay starts with that overlay, and nothing before the start is shown."""
    events: list[Event] = [*chain("1", "2", "x"), *chain("3", "4", "y", parent="2"), *chain("5", "6", parent="4")]
    async with opened() as store:
        await store.log.append("s", [*events, compacted("a", "2", "3"), compacted("b", "5", "5")])
        path = await on(store, lambda tx, no: path_to(tx, no, "6"))
        assert path == [Range(1, 1, 2), Range(4, 3, 4), Range(7, 5, 6)]
        assert await view(store, "6", start) == expected


async def test_overlay_stands_for_what_is_left() -> None:
    """An overlay stays while anything of its range is left, and is gone with the last of it."""
    async with opened() as store:
        await store.log.append("s", [*chain(*"12345"), compacted("a", "2", "4"), deleted("2")])
        assert await view(store) == [Range(1, 1, 2), "a", Range(1, 5, 5)]
        await store.log.append("s", [deleted("4")])
        assert await view(store) == [Range(1, 1, 2), "a", Range(1, 4, 5)]
        await store.log.append("s", [deleted("3")])
        assert await view(store) == [Range(1, 1, 5)]


async def test_view_of_nothing() -> None:
    """The view of an empty path is empty, also when the session had compactions."""
    async with opened() as store:
        await store.log.append("s", [*chain("1"), compacted("a", "1", "1"), deleted("1")])
        assert await view(store) == []
        assert await on(store, lambda tx, no: view_tokens(tx, no, [])) == 0


def contents(tx: Tx, no: int, part: Range | Overlay) -> list[str]:
    """Return the JSON of the messages that a part of a view shows."""
    return [part.content] if isinstance(part, Overlay) else [row[0] for row in read_view(tx, no, [part])]


@pytest.mark.parametrize("seed", range(6))
async def test_view_is_the_one_that_the_events_tell(seed: int) -> None:
    """Whatever happened, every path is shown as told from each of its messages on, and its tokens are their sum."""
    chance = random.Random(seed)
    plain = Plain()
    story = random_story(chance, plain)
    async with opened(estimate_tokens=len) as store:
        for _ in range(6):
            await store.log.append("s", list(islice(story, 25)))
            for leaf in plain.leaves():
                path = plain.path(leaf)
                starts = [0, *range(len(path))][: 12 if chance.random() < 0.5 else 1]

                def look(tx: Tx, no: int, leaf: str = leaf, path: list[str] = path, starts: Any = starts) -> None:
                    ranges = path_to(tx, no, leaf) or []
                    whole = [text for part in view_of(tx, no, ranges) for text in contents(tx, no, part)]
                    parts = [msgspec.json.decode(text)["parts"] for text in whole]
                    assert view_tokens(tx, no, ranges) == sum(estimate_parts_tokens(one, len) for one in parts)
                    assert view_tokens(tx, no, ranges) == plain.view_tokens(path)
                    for start in starts:
                        *_, end = path_to(tx, no, path[start]) or []
                        runs = [part.run for part in ranges]
                        view = view_of(tx, no, ranges, start=(runs.index(end.run), end.last))
                        shown = [text for part in view for text in contents(tx, no, part)]
                        assert ids([(text,) for text in shown]) == plain.view(path, start)

                await on(store, look)


async def test_tokens_of_a_view_follow_edits() -> None:
    """Edits and deletions under an overlay change nothing of its tokens, those beside it count."""
    async with opened(estimate_tokens=len) as store:
        tokens: list[int] = []
        for events in (
            [*chain(*"12345"), compacted("a", "2", "4", "sum")],
            [updated("3", "much longer than it was before")],
            [deleted("4")],
            [updated("1", "")],
            [updated("5", "x")],
            [deleted("1")],
            [appended("6", "5", "yy")],
            [deleted("2", "3")],
        ):
            await store.log.append("s", events)
            tokens.append(await on(store, lambda tx, no: view_tokens(tx, no, path_to(tx, no, None) or [])))
        assert tokens == [9 + 7 + 9, 9 + 7 + 9, 9 + 7 + 9, 4 + 7 + 9, 4 + 7 + 5, 7 + 5, 7 + 5 + 6, 5 + 6]
