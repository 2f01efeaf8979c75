from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import select

from eventstore import Event, LeafSelected, MessageAppended
from eventstore.events import SessionDeleted
from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.statements import Statement
from projections import MessageTree, SearchIndex
from projections.corrections import Sums, sums_of
from projections.paths import path_to
from projections.stored import find_message, tree_of
from projections.tree_tables import message_count, messages, runs, trees, with_tips
from tests.projections.support import (
    Tip,
    appended,
    chain,
    cleared,
    compacted,
    deleted,
    dump,
    on,
    opened,
    rows,
    tip_of,
    updated,
)

PLACE = (messages.c.id, messages.c.run, messages.c.ordinal)
ROW = (messages.c.row_id, messages.c.run, messages.c.ordinal, messages.c.path_tokens, messages.c.path_bytes)


def counts(tx: Tx, stream_no: int) -> tuple[int, int, int]:
    """Return how many messages, leaves and spent ids a tree has."""
    query = Statement(
        select(trees.c.stream_no, message_count, trees.c.leaves, trees.c.spent).select_from(with_tips(trees))
    )
    found = {number: (size, leaves, spent) for number, size, leaves, spent in tx.fetch(query)}
    return found[stream_no]


def test_handles_all_that_happens_to_messages() -> None:
    """The tree folds every event of messages, branches and compactions, and the end of them all."""
    assert sorted(map(str, MessageTree.handles)) == [
        "compaction_added",
        "leaf_selected",
        "message_appended",
        "message_updated",
        "messages_cleared",
        "messages_deleted",
        "session_deleted",
    ]


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
        assert await rows(store, *PLACE) == [
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


async def test_messages_leaves_and_spent_ids_are_counted() -> None:
    """A session's row knows its tip, how many messages and leaves there are, and how many ids are spent."""
    steps: list[tuple[Event, tuple[int, int, int], str | None]] = [
        (appended("1"), (1, 1, 0), "1"),
        (appended("2", "1"), (2, 1, 0), "2"),
        (appended("2b", "1"), (3, 2, 0), "2b"),
        (LeafSelected(message_id="1"), (3, 2, 0), "1"),
        (appended("r"), (4, 3, 0), "r"),
        (appended("3", "2"), (5, 3, 0), "3"),
        (updated("3", "new"), (5, 3, 0), "3"),
        (compacted("c", "1", "3"), (5, 3, 0), "3"),
        (deleted("3"), (4, 3, 1), "2"),
        (appended("3b", "2"), (5, 3, 1), "3b"),
        (appended("3c", "2"), (6, 4, 1), "3c"),
        (deleted("3b"), (5, 3, 2), "3c"),
        (deleted("3c"), (4, 3, 3), "2"),
        (deleted("1", "2b"), (2, 2, 5), "2"),
        (deleted("2"), (1, 1, 6), "r"),
        (deleted("r"), (0, 0, 7), None),
        (appended("4"), (1, 1, 7), "4"),
        (cleared(), (0, 0, 0), None),
        (appended("1"), (1, 1, 0), "1"),
    ]
    async with opened() as store:
        for event, size, tip in steps:
            await store.log.append("s", [event])
            assert await on(store, counts) == size
            assert await on(store, tip_of) == Tip(tip, size[0], size[2])
        assert await on(store, tip_of, "t") == Tip()


async def test_deletion_leaves_a_hole() -> None:
    """A deletion takes its row away and gives its children their new parent; nothing else below is touched."""
    async with opened() as store:
        await store.log.append("s", [*chain(*"12345"), appended("3b", "2"), appended("4b", "3b")])
        before = {row[0]: row[1:] for row in await rows(store, *PLACE, *ROW, messages.c.content)}
        await store.log.append("s", [deleted("2")])
        after = {row[0]: row[1:] for row in await rows(store, *PLACE, *ROW, messages.c.content)}
        assert after == {name: row for name, row in before.items() if name != "2"}
        parents = await rows(store, messages.c.id, messages.c.parent_id)
        assert parents == [("1", None), ("3", "1"), ("4", "3"), ("5", "4"), ("3b", "1"), ("4b", "3b")]


async def test_ordinal_is_never_given_twice() -> None:
    """What is appended where the end of a run was deleted starts a run of its own."""
    async with opened() as store:
        await store.log.append("s", [*chain(*"1234"), deleted("3", "4"), *chain("3b", "4b", parent="2")])
        assert await rows(store, *PLACE) == [("1", 1, 1), ("2", 1, 2), ("3b", 6, 3), ("4b", 6, 4)]
        await store.log.append("s", [deleted("2"), appended("2c", "1"), appended("2d", "1")])
        assert await rows(store, *PLACE) == [("1", 1, 1), ("3b", 6, 3), ("4b", 6, 4), ("2c", 9, 2), ("2d", 10, 2)]
        assert await rows(store, messages.c.id, messages.c.sealed) == [
            ("1", 1),
            ("3b", 0),
            ("4b", 0),
            ("2c", 0),
            ("2d", 0),
        ]


async def test_roots_that_were_below_a_deleted_root() -> None:
    """The children of a deleted root are roots, and what is appended below them goes on in their runs."""
    async with opened() as store:
        await store.log.append("s", [*chain("1", "2"), appended("2b", "1"), deleted("1"), *chain("3", parent="2")])
        await store.log.append("s", chain("3b", parent="2b"))
        found = await rows(store, *PLACE, messages.c.parent_id)
        assert found == [("2", 1, 2, None), ("2b", 3, 2, None), ("3", 1, 3, "2"), ("3b", 3, 3, "2b")]


async def test_update_keeps_place_and_time() -> None:
    """An update replaces content, role and sizes; place, parent and time stay, unless the message brings a time."""
    async with opened(estimate_tokens=len) as store:
        await store.log.append("s", chain("1", "2", "3"))
        before = await rows(store, messages.c.row_id, messages.c.parent_id, messages.c.created_at, *PLACE)
        event = updated("2", "longer than before", role="assistant")
        await store.log.append("s", [event])
        assert await rows(store, messages.c.row_id, messages.c.parent_id, messages.c.created_at, *PLACE) == before
        (row,) = [
            row[1:]
            for row in await rows(
                store, messages.c.id, messages.c.role, messages.c.content, messages.c.tokens, messages.c.bytes
            )
            if row[0] == "2"
        ]
        assert row == ("assistant", bytes(event.raw).decode(), 4 + 18, len(bytes(event.raw)))
        await store.log.append("s", [updated("2", "x", createdAt="2020-01-01T00:00:00Z")])
        times = await rows(store, messages.c.created_at)
        assert times[0] == times[2] == (before[0][2],)
        assert times[1] < times[0]


async def test_update_of_the_tip_counts_for_what_comes_after_it() -> None:
    """Messages below a leaf that was updated carry its new size, in the same group as the update or in a later one."""
    async with opened(estimate_tokens=len) as store, opened(estimate_tokens=len) as other:
        events = [appended("1", None, ""), updated("1", "longer"), appended("2", "1", "x"), appended("3", "2", "y")]
        await store.log.append("s", events)
        for event in events:
            await other.log.append("s", [event])
        assert await rows(store, *ROW) == await rows(other, *ROW)
        assert [row[3] for row in await rows(store, *ROW)] == [10, 15, 20]


async def test_clear_frees_everything() -> None:
    """A clear leaves nothing of a session but its empty row, and nothing of another session is touched."""
    async with opened() as store:
        for name in "st":
            events = [*chain(*"1234"), updated("2", "new"), deleted("3"), compacted("c", "1", "4")]
            await store.log.append(name, events)
        numbers = [(await store.log.read(lambda tx, name=name: find_stream(tx, name)))[0] for name in "st"]
        kept = await dump(store, stream_no=numbers[1])
        await store.log.append("s", [cleared()])
        assert [row[0] for row in await dump(store, stream_no=numbers[0])] == ["message_trees"]
        assert await dump(store, stream_no=numbers[1]) == kept
        await store.log.append("s", chain("3", "1"))
        assert await on(store, sums_of_tip) == sums_of_names(await rows(store, *ROW, messages.c.tokens), 2)


async def test_deleted_session_leaves_its_mark() -> None:
    """A deleted session leaves nothing but a row that says so, and no other session is touched."""
    async with opened() as store:
        for name in "st":
            events = [*chain(*"1234"), updated("2", "new"), deleted("3"), compacted("c", "1", "4")]
            await store.log.append(name, events)
        numbers = [(await store.log.read(lambda tx, name=name: find_stream(tx, name)))[0] for name in "st"]
        kept = await dump(store, stream_no=numbers[1])
        await store.log.append("s", [SessionDeleted()])
        assert [row[0] for row in await dump(store, stream_no=numbers[0])] == ["message_trees"]
        assert (await on(store, tree_of)).deleted == 1
        assert await on(store, tip_of) == Tip()
        assert await dump(store, stream_no=numbers[1]) == kept
        await store.log.append("empty", [SessionDeleted()])
        assert (await on(store, tree_of, "empty")).deleted == 1


def sums_of_tip(tx: Tx, stream_no: int) -> Sums:
    """Return the sums of the path to the tip."""
    return sums_of(tx, stream_no, path_to(tx, stream_no, None) or [])


def sums_of_names(found: list[Any], count: int) -> Sums:
    """Return the sums that the last of some rows carries by itself."""
    *_, path_tokens, path_bytes, _ = found[-1]
    return Sums(count, path_tokens, path_bytes)


async def test_tokens_are_summed_along_the_path() -> None:
    """Every message carries the estimate of its path."""
    async with opened(estimate_tokens=len) as store:
        await store.log.append("s", [appended("1", None, "abc"), appended("2", "1", "de"), appended("2b", "1", "f")])
        await store.log.append("s", [appended("3b", "2b", ""), appended("r", None, "gg")])
        sums = await rows(store, messages.c.id, messages.c.tokens, messages.c.path_tokens)
        assert sums == [("1", 7, 7), ("2", 6, 13), ("2b", 5, 12), ("3b", 4, 16), ("r", 6, 6)]


async def test_dump_leaves_out_estimates() -> None:
    """Two stores that estimate tokens otherwise have equal dumps."""
    events = [*chain("1", "2", "3"), updated("1", "some more words"), deleted("2"), compacted("c", "1", "3")]
    async with opened(estimate_tokens=len) as one, opened(estimate_tokens=lambda _text: 7) as other:
        for store in (one, other):
            await store.log.append("s", events)
        assert await dump(one) == await dump(other)
        assert await rows(one, messages.c.tokens) != await rows(other, messages.c.tokens)


async def test_content_is_stored_as_it_came_in() -> None:
    """A row holds the message's JSON byte for byte as the event has it."""
    text = '{"z":1,"id":"1","role":"user","parts":[{"b":-0.0,"type":"x","a":1e22}],"n":123456789012345678901234567890}'
    async with opened() as store:
        await store.log.append("s", [MessageAppended(raw=msgspec.Raw(text.encode()))])
        found = await on(store, lambda tx, no: find_message(tx, no, "1"))
        assert found is not None
        assert found.content == text


async def test_reset_empties_its_tables_alone() -> None:
    """Resetting the tree leaves none of its rows and touches no other projection's."""
    async with opened() as store:
        await store.log.append("s", [*chain("1", "2", "3"), deleted("2"), compacted("c", "1", "3")])
        (tree,) = [one for one in store.log.projections if isinstance(one, MessageTree)]
        others = [one.name for one in store.log.projections if one is not tree]
        await store.log.database.write(SearchIndex().catch_up)
        before = [await dump(store, name) for name in others]
        assert any(before)
        await store.log.database.write(tree.reset)
        assert await dump(store) == []
        assert [await dump(store, name) for name in others] == before


async def test_dump_of_one_session_has_its_rows_alone() -> None:
    """The dump of a stream is those rows of the whole dump that belong to it."""
    async with opened() as store:
        await store.log.append("a", chain("1", "2"))
        await store.log.append("b", chain("1"))
        number = (await store.log.read(lambda tx: find_stream(tx, "b")))[0]
        one = await dump(store, stream_no=number)
        assert [row[0] for row in one] == [messages.name, runs.name, trees.name]
        assert set(one) < set(await dump(store))
