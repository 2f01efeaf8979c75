from __future__ import annotations

import asyncio
import random
from itertools import islice
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from eventstore.ports import Tx
from eventstore.statements import Statement
from projections.compactions import list_compactions
from projections.corrections import Sums, sums_of
from projections.history import read_view
from projections.overlay import Overlay, view_of, view_tokens
from projections.paths import nearest_below, path_to, place_of
from projections.stored import is_spent
from projections.tree_tables import message_count, messages, runs, spent_ids, trees, with_tips
from replay import rebuild
from tests.projections.plain import Plain, random_story
from tests.projections.support import Tip, dump, ids, on, opened, rows, tip_of


def held(tx: Tx, no: int) -> dict[str, str | None]:
    """Return the messages of a session with their parents, in the order of the log."""
    query = select(messages.c.id, messages.c.parent_id).where(messages.c.stream_no == no).order_by(messages.c.row_id)
    return dict(tx.fetch(Statement(query)))


def all_of(tx: Tx, no: int) -> dict[str, Any]:
    """Return all that the tree tells of a session."""
    names = held(tx, no)
    paths = {name: path_to(tx, no, name) or [] for name in names}
    counted = select(message_count, trees.c.leaves, trees.c.spent).select_from(with_tips(trees))
    counts = Statement(counted.where(trees.c.stream_no == no))
    return {
        "parents": names,
        "children": {
            name: [one.id for one in nearest_below(tx, no, *(place_of(tx, no, name) or ()))] for name in names
        },
        "sums": {name: sums_of(tx, no, path) for name, path in paths.items()},
        "views": {name: view_ids(tx, no, view_of(tx, no, path)) for name, path in paths.items()},
        "tokens": {name: view_tokens(tx, no, path) for name, path in paths.items()},
        "tip": tip_of(tx, no),
        "counts": tx.fetch(counts)[0],
        "compactions": [(c.id, c.from_message_id, c.to_message_id, c.stale) for c in list_compactions(tx, no)],
    }


def view_ids(tx: Tx, no: int, view: list[Any]) -> list[str]:
    """Return the ids of what a view shows."""
    found: list[str] = []
    for part in view:
        if isinstance(part, Overlay):
            found.append(msgspec.json.decode(part.content)["id"])
        else:
            found += ids(read_view(tx, no, [part]))
    return found


def told(plain: Plain) -> dict[str, Any]:
    """Return the same as its events tell it."""
    paths = {name: plain.path(name) for name in plain.held}
    spent = len(plain.parents) - len(plain.held)
    covers = [(cover, plain.left(cover)) for cover in plain.covers]
    return {
        "parents": {name: plain.parent(name) for name in plain.held},
        "children": {name: plain.children(name) for name in plain.held},
        "sums": {name: sums(plain, path) for name, path in paths.items()},
        "views": {name: plain.view(path) for name, path in paths.items()},
        "tokens": {name: plain.view_tokens(path) for name, path in paths.items()},
        "tip": Tip(plain.tip, len(plain.held), spent),
        "counts": (len(plain.held), len(plain.leaves()), spent),
        "compactions": [(cover.id, left[0], left[-1], cover.stale) for cover, left in covers],
    }


def sums(plain: Plain, path: list[str]) -> Sums:
    """Return what the messages of a path come to."""
    found = [plain.held[name] for name in path]
    return Sums(len(found), sum(one.tokens for one in found), sum(one.bytes for one in found))


@pytest.mark.parametrize("seed", range(8))
async def test_tree_is_what_the_events_tell(seed: int) -> None:
    """After any events, in groups of any size, paths, sums, children, views, tip and compactions are as told."""
    chance = random.Random(seed)
    plain = Plain()
    story = random_story(chance, plain)
    async with opened(estimate_tokens=len) as store:
        for _ in range(25):
            await store.log.append("s", list(islice(story, chance.choice([1, 1, 2, 5, 20]))))
            assert await on(store, all_of) == told(plain)
        for name in plain.parents:
            spent = await on(store, lambda tx, no, name=name: is_spent(tx, no, name))  # type: ignore[misc]
            assert spent == (name not in plain.held)


@pytest.mark.parametrize("seed", range(5))
async def test_groups_of_any_size_give_the_same_rows(seed: int) -> None:
    """Events applied one by one, all in one group, or again from the log give the same rows and the same sums."""
    chance = random.Random(seed)
    stories = {name: random_story(chance, Plain()) for name in "abc"}
    events = [(name, next(stories[name])) for name in (chance.choice("aabc") for _ in range(150))]
    sizes = (messages.c.tokens, messages.c.path_tokens, messages.c.path_bytes)
    async with opened() as single, opened() as grouped:
        for name, event in events:
            await single.log.append(name, [event])
        await asyncio.gather(*(grouped.log.append(name, [event]) for name, event in events))
        one, other = await dump(single), await dump(grouped)
        assert one == other
        assert {row[0] for row in one} >= {messages.name, runs.name, trees.name, spent_ids.name}
        found = await rows(single, *sizes)
        assert found == await rows(grouped, *sizes)
        for _ in range(2):
            await rebuild(grouped, ["message_tree"])
            assert await dump(grouped) == one
            assert await rows(grouped, *sizes) == found


@pytest.mark.parametrize("seed", range(5))
async def test_text_index_follows_the_messages(seed: int) -> None:
    """After any events, one by one or in groups, the text index is the one that the rows alone would fill."""
    chance = random.Random(seed)
    stories = {name: random_story(chance, Plain()) for name in "ab"}
    async with opened() as store:
        for _ in range(20):
            name = chance.choice("ab")
            await store.log.append(name, list(islice(stories[name], chance.choice([1, 1, 3, 20]))))
        before = await dump(store, "search_index")
        assert before
        await rebuild(store, ["search_index"])
        assert await dump(store, "search_index") == before
