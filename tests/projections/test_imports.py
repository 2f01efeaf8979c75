from __future__ import annotations

from typing import Any

import pytest

from eventstore.events import Event, MessagesCleared, SessionDeleted
from eventstore.heads import Head, Proposal, WithMetadata
from eventstore.ports import Tx
from projections.imports import AT_A_TIME, find_records, imported
from replay import rebuild
from sessions import Store, open_store
from tests.projections.support import appended, dump


async def tell(store: Store, session: str, *told: tuple[Event, dict[str, Any]]) -> None:
    """Append events, each with metadata of its own."""

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        return [WithMetadata(event, metadata) for event, metadata in told], None

    await store.log.transact(session, decide)


async def found(store: Store, *records: str, format_name: str = "f") -> dict[str, str]:
    """Return which of some records are known, and the session that holds each."""
    holders = await store.log.read(lambda tx: find_records(tx, format_name, records))
    return {record: holder.session_id for record, holder in holders.items()}


async def check_rebuilt(store: Store) -> None:
    """Check that the ledger follows from the log."""
    before = await dump(store, "imports")
    await rebuild(store, ["imports"])
    assert await dump(store, "imports") == before


async def test_records_are_found_by_format() -> None:
    """A record is known in its format, with the session that brought it first, and in no other format."""
    async with open_store("sqlite://") as store:
        await tell(store, "s", (appended("a"), imported("f", ["1", "2"])), (appended("b"), imported("g", ["3"])))
        await tell(store, "t", (appended("a"), imported("f", ["2", "4"])))
        assert await found(store, "1", "2", "3", "4", "5") == {"1": "s", "2": "s", "4": "t"}
        assert await found(store, "3", format_name="g") == {"3": "s"}
        await check_rebuilt(store)


@pytest.mark.parametrize("number", [0, 1, AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1, 5 * AT_A_TIME])
async def test_many_records_are_found(number: int) -> None:
    """However many records are asked for at once, those that are known are found."""
    names = [str(one) for one in range(number)]
    async with open_store("sqlite://") as store:
        await tell(store, "s", (appended("a"), imported("f", names[::2])))
        assert await found(store, *names) == dict.fromkeys(names[::2], "s")


@pytest.mark.parametrize("event", [MessagesCleared(), SessionDeleted()], ids=["cleared", "deleted"])
async def test_what_is_cleared_is_forgotten(event: Event) -> None:
    """With its messages a session's records are forgotten, those of the same group too, and others' stay."""
    async with open_store("sqlite://") as store:
        await tell(store, "t", (appended("a"), imported("f", ["0"])))
        await tell(store, "s", (appended("a"), imported("f", ["1"])))
        await tell(store, "s", (appended("b"), imported("f", ["2"])), (event, {}))
        assert await found(store, "0", "1", "2") == {"0": "t"}
        await check_rebuilt(store)


async def test_metadata_of_the_decision_stays() -> None:
    """Metadata of one event is added to that of the whole decision."""
    async with open_store("sqlite://") as store:

        def decide(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
            return [appended("a"), WithMetadata(appended("b", "a"), {"own": 1})], None

        await store.log.transact("s", decide, metadata={"all": 2})
        assert [one.metadata async for one in store.log.read_stream("s")] == [{"all": 2}, {"all": 2, "own": 1}]
