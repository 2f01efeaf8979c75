from __future__ import annotations

import asyncio
import datetime as dt
import random
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from eventstore import Event, LeafSelected, MessageAppended
from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.statements import Row, Statement
from projections.message_tree import MessageTree, find_message, messages, runs, tip_id, trees
from replay import rebuild
from sessions import Store, open_store

NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


def appended(name: str, parent: str | None = None, text: str = "a b c", **event: Any) -> MessageAppended:
    """Return the event that appends a message."""
    message = {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}
    return MessageAppended(raw=msgspec.Raw(msgspec.json.encode(message)), parent_id=parent, **event)


def opened(**options: Any) -> Any:
    """Open a store in memory whose clock stands still."""
    return open_store("sqlite://", clock=lambda: NOON, **options)


async def rows(store: Store, *columns: Any) -> list[Row]:
    """Return these columns of every message, in the order of the log."""
    query = Statement(select(*columns).order_by(messages.c.row_id))
    return await store.log.read(lambda tx: tx.fetch(query))


async def dump(store: Store) -> list[Row]:
    """Return every row of the tree but the estimates."""
    tree = next(projection for projection in store.log.projections if isinstance(projection, MessageTree))
    return await store.log.read(lambda tx: list(tree.dump(tx)))


def sizes(tx: Tx) -> dict[int, tuple[int, int]]:
    """Return how many messages and leaves each tree has, by stream."""
    counts = Statement(select(trees.c.stream_no, trees.c.messages, trees.c.leaves))
    return {number: (size, leaves) for number, size, leaves in tx.fetch(counts)}


async def stream_no(store: Store, name: str = "s") -> int:
    """Return the number of a stream."""
    return (await store.log.read(lambda tx: find_stream(tx, name)))[0]


async def test_first_child_continues_the_run() -> None:
    """The first child of a message continues its run, other children and roots start one, and depth counts from 1."""
    events = [
        appended("1"),
        appended("2", "1"),
        appended("3", "2"),
        appended("2b", "1"),
        appended("3b", "2b"),
        appended("2c", "1"),
        appended("r"),
        appended("4", "3"),
    ]
    async with opened() as store:
        await store.log.append("s", events)
        assert await rows(store, messages.c.id, messages.c.run, messages.c.ordinal) == [
            ("1", 1, 1),
            ("2", 1, 2),
            ("3", 1, 3),
            ("2b", 4, 2),
            ("3b", 4, 3),
            ("2c", 6, 2),
            ("r", 7, 1),
            ("4", 1, 4),
        ]
        query = Statement(select(runs.c.run, runs.c.parent_run, runs.c.fork_ordinal).order_by(runs.c.run))
        assert await store.log.read(lambda tx: tx.fetch(query)) == [(1, 0, 0), (4, 1, 1), (6, 1, 1), (7, 0, 0)]


async def test_messages_and_leaves_are_counted() -> None:
    """A session's row knows how many messages and leaves there are, and its tip."""
    steps: list[tuple[Event, tuple[int, int], str]] = [
        (appended("1"), (1, 1), "1"),
        (appended("2", "1"), (2, 1), "2"),
        (appended("2b", "1"), (3, 2), "2b"),
        (LeafSelected(message_id="1"), (3, 2), "1"),
        (appended("r"), (4, 3), "r"),
        (appended("3", "2"), (5, 3), "3"),
    ]
    async with opened() as store:
        for event, size, tip in steps:
            await store.log.append("s", [event])
            number = await stream_no(store)
            assert await store.log.read(lambda tx, number=number: sizes(tx)[number]) == size
            assert await store.log.read(lambda tx, number=number: tip_id(tx, number)) == tip
        assert await store.log.read(lambda tx: (99 in sizes(tx), tip_id(tx, 99))) == (False, None)


def random_events(seed: int, count: int) -> list[tuple[str, Event]]:
    """Return events of a few sessions, each legal after those before it."""
    chance = random.Random(seed)
    known: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    events: list[tuple[str, Event]] = []
    for number in range(count):
        name = chance.choice("aab" if number < count // 2 else "abc")
        ids = known[name]
        if ids and chance.random() < 0.15:
            events.append((name, LeafSelected(message_id=chance.choice(ids))))
            continue
        parent = ids[-1] if ids else None
        if chance.random() < 0.5:
            parent = chance.choice([None, *ids[-3:], *ids])
        ids.append(f"m{len(ids)}")
        events.append((name, appended(ids[-1], parent, "word " * chance.randrange(5))))
    return events


@pytest.mark.parametrize("seed", range(5))
async def test_groups_of_any_size_give_the_same_rows(seed: int) -> None:
    """Events applied one by one, all in one group, or again from the log give the same rows and the same sums."""
    events = random_events(seed, 120)
    async with opened() as single, opened() as grouped:
        for name, event in events:
            await single.log.append(name, [event])
        await asyncio.gather(*(grouped.log.append(name, [event]) for name, event in events))
        one, other = await dump(single), await dump(grouped)
        assert one == other
        assert {row[0] for row in one} == {messages.name, runs.name, trees.name}
        sums = await rows(single, messages.c.tokens, messages.c.path_tokens)
        assert sums == await rows(grouped, messages.c.tokens, messages.c.path_tokens)
        for _ in range(2):
            await rebuild(grouped, ["message_tree"])
            assert await dump(grouped) == one
            assert await rows(grouped, messages.c.tokens, messages.c.path_tokens) == sums


async def test_tokens_are_summed_along_the_path() -> None:
    """Every message carries the estimate of its path, which another estimator restamps when the tree is rebuilt."""
    async with opened(estimate_tokens=len) as store:
        await store.log.append("s", [appended("1", None, "abc"), appended("2", "1", "de"), appended("2b", "1", "f")])
        await store.log.append("s", [appended("3b", "2b", ""), appended("r", None, "gg")])
        sums = await rows(store, messages.c.id, messages.c.tokens, messages.c.path_tokens)
        assert sums == [("1", 7, 7), ("2", 6, 13), ("2b", 5, 12), ("3b", 4, 16), ("r", 6, 6)]


async def test_dump_leaves_out_estimates() -> None:
    """Two stores that estimate tokens otherwise have equal dumps."""
    events = [appended("1"), appended("2", "1", "some more words")]
    async with opened(estimate_tokens=len) as one, opened(estimate_tokens=lambda _text: 7) as other:
        for store in (one, other):
            await store.log.append("s", events)
        assert await dump(one) == await dump(other)
        assert await rows(one, messages.c.tokens) != await rows(other, messages.c.tokens)


async def test_own_time_of_the_event_is_shown_in_the_message() -> None:
    """An own time that only the event knows becomes the message's `createdAt`."""
    own = dt.datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
    async with opened() as store:
        await store.log.append("s", [appended("1", created_at=own), appended("2", "1")])
        number = await stream_no(store)

        def stored(tx: Tx) -> list[tuple[Any, dt.datetime]]:
            found = [find_message(tx, number, name) for name in ("1", "2")]
            return [(msgspec.json.decode(one.content), tx.dialect.to_time(one.created_at)) for one in found if one]

        (first, first_time), (second, second_time) = await store.log.read(stored)
        assert (first["createdAt"], first_time) == ("2024-01-02T03:04:05.678000Z", own)
        assert ("createdAt" in second, second_time) == (False, NOON)


async def test_content_is_stored_as_it_came_in() -> None:
    """A row holds the message's JSON byte for byte as the event has it."""
    text = '{"z":1,"id":"1","role":"user","parts":[{"b":-0.0,"type":"x","a":1e22}],"n":123456789012345678901234567890}'
    async with opened() as store:
        await store.log.append("s", [MessageAppended(raw=msgspec.Raw(text.encode()))])
        number = await stream_no(store)
        found = await store.log.read(lambda tx: find_message(tx, number, "1"))
        assert found is not None
        assert found.content == text


async def test_reset_empties_its_tables_alone() -> None:
    """Resetting the tree leaves none of its rows and touches no other projection's."""
    async with opened() as store:
        await store.log.append("s", [appended("1"), appended("2", "1")])
        tree, *others = store.log.projections
        before = await store.log.read(lambda tx: [list(one.dump(tx)) for one in others])
        assert any(before)
        await store.log.database.write(tree.reset)
        assert await dump(store) == []
        after = await store.log.read(lambda tx: [list(one.dump(tx)) for one in others])
        assert after == before


async def test_dump_of_one_session_has_its_rows_alone() -> None:
    """The dump of a stream is those rows of the whole dump that belong to it."""
    async with opened() as store:
        await store.log.append("a", [appended("1"), appended("2", "1")])
        await store.log.append("b", [appended("1")])
        tree = store.log.projections[0]
        number = await stream_no(store, "b")
        one = await store.log.read(lambda tx: list(tree.dump(tx, number)))
        assert [row[0] for row in one] == [messages.name, runs.name, trees.name]
        assert set(one) < set(await dump(store))
