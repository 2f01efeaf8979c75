from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from eventstore import LeafSelected
from eventstore.ports import Tx
from projections.stored import StoredMessage, find_message, is_spent, tree_of
from tests.projections.support import NOON, Tip, appended, chain, cleared, deleted, on, opened, tip_of, updated


async def test_message_is_found_as_it_is_stored() -> None:
    """A message is found by its id in its session alone, with the position of its append whatever became of it."""
    async with opened() as store:
        await store.log.append("t", chain("1"))
        await store.log.append("s", chain("1", "2"))
        event = updated("1", "edited")
        await store.log.append("s", [event, deleted("2")])

        def stored(tx: Tx, no: int) -> list[StoredMessage | None]:
            return [find_message(tx, no, name) for name in ("1", "2", "3")]

        found, *others = await on(store, stored)
        assert found is not None
        assert (found.position, found.content) == (2, bytes(event.raw).decode())
        assert others == [None, None]


async def test_own_time_of_the_event_is_shown_in_the_message() -> None:
    """An own time that only the event knows becomes the message's `createdAt`."""
    own = dt.datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
    async with opened() as store:
        await store.log.append("s", [appended("1", created_at=own), appended("2", "1")])

        def stored(tx: Tx, no: int) -> list[tuple[Any, dt.datetime]]:
            found = [find_message(tx, no, name) for name in ("1", "2")]
            return [(msgspec.json.decode(one.content), tx.dialect.to_time(one.created_at)) for one in found if one]

        (first, first_time), (second, second_time) = await on(store, stored)
        assert (first["createdAt"], first_time) == ("2024-01-02T03:04:05.678000Z", own)
        assert ("createdAt" in second, second_time) == (False, NOON)


async def test_ids_of_deleted_messages_are_spent() -> None:
    """An id is spent from its message's deletion until the session is cleared, in that session alone."""
    async with opened() as store:

        async def spent() -> list[bool]:
            return await on(store, lambda tx, no: [is_spent(tx, no, name) for name in ("1", "2", "3")])

        await store.log.append("t", [*chain("1", "2"), deleted("2")])
        await store.log.append("s", chain("1", "2"))
        assert await spent() == [False, False, False]
        await store.log.append("s", [deleted("1")])
        assert await spent() == [True, False, False]
        await store.log.append("s", [cleared()])
        assert await spent() == [False, False, False]
        assert await on(store, lambda tx, no: is_spent(tx, no, "2"), "t")


async def test_tip_is_what_was_appended_or_selected_last() -> None:
    """The tip follows appends and selections; after its deletion it is the newest leaf where it hung."""
    async with opened() as store:
        steps = [
            ([*chain("1", "2", "3")], "3"),
            ([appended("2b", "1")], "2b"),
            ([LeafSelected(message_id="2")], "2"),
            ([updated("3", "edited"), deleted("2b")], "2"),
            ([deleted("2")], "3"),
            ([appended("r")], "r"),
            ([deleted("r")], "3"),
            ([LeafSelected(message_id="1"), deleted("1")], "3"),
            ([deleted("3")], None),
        ]
        for events, tip in steps:
            await store.log.append("s", events)
            assert (await on(store, tip_of)).message_id == tip
        assert await on(store, tip_of) == Tip(None, 0, 5)
        assert await on(store, tip_of, "nobody") == Tip()


async def test_what_was_remembered_goes_when_tables_are_written_past_the_log() -> None:
    """A tree that was emptied is not remembered from the last append: the next one starts it anew."""
    async with opened() as store:
        await store.log.append("s", chain("1", "2"))
        (tree,) = [one for one in store.log.projections if one.name == "message_tree"]
        await store.log.database.write(tree.reset)
        await store.log.append("s", [appended("3")])
        assert (await on(store, tree_of)).message_id == "3"
