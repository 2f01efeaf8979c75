from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from eventstore import Event, LeafSelected, MessageAppended, SessionCreated, SessionRenamed
from eventstore.envelope import Envelope
from eventstore.events import SessionDeleted, SessionEnded, SessionForked, UsageAdded
from eventstore.group import apply
from eventstore.ports import Tx
from eventstore.rows import high_water
from eventstore.statements import Row
from projections import Directory, SessionInfo
from projections.directory import find_session, list_sessions
from replay import rebuild, verify
from sessions import Store, open_store

START = dt.datetime(2025, 6, 1, tzinfo=dt.UTC)


class Ticks:
    """A clock that goes on by a second whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> dt.datetime:
        """Return the next second."""
        self.asked += 1
        return START + dt.timedelta(seconds=self.asked)


def appended(name: str, parent: str | None = None) -> MessageAppended:
    """Return the event that appends a message."""
    return MessageAppended(
        raw=msgspec.Raw(msgspec.json.encode({"id": name, "role": "user", "parts": []})), parent_id=parent
    )


def opened() -> Any:
    """Open a store in memory with a ticking clock."""
    return open_store("sqlite://", clock=Ticks())


async def listed(store: Store) -> list[SessionInfo]:
    """Return all sessions as the directory lists them."""
    return [info for _, info in await page(store)]


async def page(
    store: Store, *, walk: int | None = None, before: int = 1 << 62, most: int = 1_000
) -> list[tuple[int, SessionInfo]]:
    """Return sessions with the positions that the directory lists them by, as of now or as of a position."""
    return await store.log.read(
        lambda tx: list_sessions(tx, walk=high_water(tx) if walk is None else walk, before=before, most=most)
    )


async def find(store: Store, session_id: str = "a") -> SessionInfo:
    """Return what the directory knows of a session."""
    info = await store.log.read(lambda tx: find_session(tx, session_id))
    assert info is not None
    return info


def used(input_tokens: int = 0, output_tokens: int = 0, cost: float = 0.0) -> UsageAdded:
    """Return the event that adds usage."""
    return UsageAdded(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)


async def events_of(store: Store) -> list[Envelope]:
    """Return the whole log."""
    return [envelope async for envelope in store.log.read_all()]


def again(envelopes: list[Envelope]) -> Callable[[Tx], None]:
    """Return what hands events to the directory, whether or not it has folded them."""
    return partial(_fold, envelopes)


def _fold(envelopes: list[Envelope], tx: Tx) -> None:
    apply(tx, Directory(), envelopes)


async def dump(store: Store) -> list[Row]:
    """Return every row of the directory."""
    directory = next(projection for projection in store.log.projections if isinstance(projection, Directory))
    return await store.log.read(lambda tx: list(directory.dump(tx)))


async def test_row_from_the_first_event_on() -> None:
    """A session has a row from its first event on, whichever that is, with the facts of its creation."""
    async with opened() as store:
        created = SessionCreated(name="Trip", parent_session_id="p", model="m", source="web")
        await store.log.append("a", [created])
        await store.log.append("b", [appended("1")])
        first, second = reversed(await listed(store))
        assert (first.id, first.name, first.parent_session_id, first.model, first.source) == (
            "a",
            "Trip",
            "p",
            "m",
            "web",
        )
        assert (second.id, second.name, second.parent_session_id, second.model, second.source) == (
            "b",
            "b",
            None,
            None,
            None,
        )
        for info in (first, second):
            assert info.created_at == info.updated_at
            assert (info.input_tokens, info.output_tokens, info.estimated_cost, info.end_reason) == (0, 0, 0.0, None)


async def test_every_event_moves_the_update() -> None:
    """Each later event sets the time and the place of the last update, and nothing else."""
    async with opened() as store:
        await store.log.append("a", [SessionCreated(name="A")])
        await store.log.append("b", [SessionCreated(name="B")])
        await store.log.append("a", [appended("1")])
        await store.log.append("a", [LeafSelected(message_id="1")])
        info = await find(store)
        assert (info.name, info.created_at, info.updated_at) == (
            "A",
            START + dt.timedelta(seconds=1),
            START + dt.timedelta(seconds=4),
        )
        assert [one.id for one in await listed(store)] == ["a", "b"]


async def test_first_and_last_event_in_one_group() -> None:
    """A session that is created and appended to in one group has its first event's facts and its last one's time."""
    async with opened() as store:
        both: list[Event] = [SessionCreated(name="A"), appended("1")]
        await asyncio.gather(
            store.log.append("a", both), store.log.append("b", [appended("1")]), store.log.append("a", [appended("2")])
        )
        first, second = await listed(store)
        assert (first.id, first.name, second.id) == ("a", "A", "b")
        assert first.updated_at - first.created_at == dt.timedelta(seconds=2)


async def test_last_of_many_events_in_a_group_counts() -> None:
    """Of the events that one group adds to a session, the last one is its update."""
    async with opened() as store:
        await store.log.append("a", [SessionCreated(name="A")])
        await asyncio.gather(
            store.log.append("a", [appended("1"), appended("2")]),
            store.log.append("b", [appended("1")]),
            store.log.append("a", [appended("3")]),
        )
        assert [(at, info.id) for at, info in await page(store)] == [(5, "a"), (4, "b")]
        assert (await find(store)).updated_at == (await events_of(store))[-1].recorded_at
        before = await dump(store)
        await rebuild(store, ["directory"])
        assert await dump(store) == before


async def test_shared_streams_are_no_sessions() -> None:
    """The streams of shared context and search keys are not listed."""
    async with opened() as store:
        for name in ("context:memory", "search:notes", "contexts", "Search:x"):
            await store.log.append(name, [SessionCreated(name="n")])
        assert sorted(info.id for info in await listed(store)) == ["Search:x", "contexts"]
        assert await store.log.read(lambda tx: find_session(tx, "context:memory")) is None


async def test_name_given_after_the_first_message_is_no_creation() -> None:
    """Only a session's first event names it."""
    async with opened() as store:
        await store.log.append("a", [appended("1"), SessionCreated(name="late")])
        assert [info.name for info in await listed(store)] == ["a"]


async def test_rebuild_gives_the_same_rows() -> None:
    """The directory is the same after a rebuild, and one by one as in groups."""
    events: list[tuple[str, Event]] = [("a", SessionCreated(name="A")), ("b", appended("1")), ("c", appended("1"))]
    events += [("b", appended("2", "1")), ("a", appended("1")), ("b", LeafSelected(message_id="1"))]
    async with opened() as one, opened() as other:
        for name, event in events:
            await one.log.append(name, [event])
        await asyncio.gather(*(other.log.append(name, [event]) for name, event in events))
        assert await dump(one) == await dump(other)
        for _ in range(2):
            await rebuild(one, ["directory"])
            assert await dump(one) == await dump(other)
        assert len(await dump(one)) == 3


async def test_what_is_told_of_a_session() -> None:
    """A new name, an end and usage are in the session's row, and each is an update of it."""
    async with opened() as store:
        await store.log.append("a", [SessionCreated(name="A")])
        await store.log.append("a", [SessionRenamed(name="B")])
        await store.log.append("a", [used(3, 4, 0.5)])
        await store.log.append("a", [used(10, 0, 0.25), SessionEnded(reason="why")])
        info = await find(store)
        assert (info.name, info.end_reason) == ("B", "why")
        assert (info.input_tokens, info.output_tokens, info.estimated_cost) == (13, 4, 0.75)
        assert info.updated_at == info.created_at + dt.timedelta(seconds=3)
        await store.log.append("a", [SessionEnded(reason="other"), appended("1")])
        assert (await find(store)).end_reason == "other"


async def test_what_is_told_first_of_a_session() -> None:
    """A session whose first event is no creation is named by its id, and has what the event tells."""
    async with opened() as store:
        await store.log.append("a", [used(1, 2, 3.0)])
        await store.log.append("b", [SessionRenamed(name="B"), SessionEnded(reason="why")])
        await store.log.append("c", [SessionForked(session_id="a", version=1, message_id="m")])
        a, b, c = [await find(store, name) for name in "abc"]
        assert (a.name, a.input_tokens, a.output_tokens, a.estimated_cost) == ("a", 1, 2, 3.0)
        assert (b.name, b.end_reason, c.name, c.parent_session_id) == ("B", "why", "c", None)


@pytest.mark.parametrize("apart", [True, False])
async def test_deleted_session_leaves_its_number_alone(apart: bool) -> None:  # noqa: FBT001 - a parameter
    """Of a deleted session nothing is left but its number, whether it was there before or began in the same group."""
    events: list[Event] = [SessionCreated(name="secret"), used(1), SessionDeleted(), used(1), appended("1")]
    async with opened() as store:
        if apart:
            for event in events:
                await store.log.append("a", [event])
        else:
            await store.log.append("a", events)
        await store.log.append("b", [appended("1")])
        assert [info.id for info in await listed(store)] == ["b"]
        assert await store.log.read(lambda tx: find_session(tx, "a")) is None
        assert [row for row in await dump(store) if row[0] == "deleted_sessions"] == [("deleted_sessions", 1)]


async def test_events_that_come_again_change_nothing() -> None:
    """Events that were folded already change no row, however many of the last come again."""
    async with opened() as store:
        await store.log.append("a", [SessionCreated(name="A"), used(1, 2, 0.1)])
        await store.log.append("gone", [SessionCreated(name="G"), used(5)])
        await store.log.append("b", [appended("1")])
        await store.log.append("a", [SessionRenamed(name="B"), used(1, 2, 0.2)])
        await store.log.append("gone", [SessionDeleted()])
        await store.log.append("b", [appended("2", "1")])
        await store.log.append("b", [SessionEnded(reason="why")])
        before, log = await dump(store), await events_of(store)
        for first in range(len(log)):
            for last in range(first + 1, len(log) + 1):
                await store.log.database.write(again(log[first:last]))
                assert await dump(store) == before
        assert (await verify(store)).problems == []


async def test_groups_give_the_same_rows_as_single_events() -> None:
    """The directory is the same whether events come one by one, all at once or in a rebuild."""
    events: list[tuple[str, Event]] = [
        ("a", SessionCreated(name="A")),
        ("b", appended("1")),
        ("a", used(1, 1, 0.1)),
        ("gone", SessionCreated(name="G")),
        ("a", SessionRenamed(name="B")),
        ("gone", SessionDeleted()),
        ("a", used(1, 1, 0.2)),
        ("b", SessionEnded(reason="why")),
        ("a", used(1, 1, 0.3)),
        ("b", appended("2", "1")),
    ]
    async with opened() as one, opened() as other:
        for name, event in events:
            await one.log.append(name, [event])
        await asyncio.gather(*(other.log.append(name, [event]) for name, event in events))
        assert await dump(one) == await dump(other)
        await rebuild(one, ["directory"])
        assert await dump(one) == await dump(other)
        for store in (one, other):
            assert (await verify(store)).problems == []


async def test_list_as_of_a_position() -> None:
    """Sessions are listed by their last event up to a position, however much came after it, with what is known now."""
    async with opened() as store:
        for name in ("a", "b", "c"):
            await store.log.append(name, [SessionCreated(name=name)])
        await store.log.append("b", [appended("1")])
        walk = await store.log.high_water()
        positions = {"a": 1, "b": 4, "c": 3}
        assert [(at, info.id) for at, info in await page(store, walk=walk)] == [(4, "b"), (3, "c"), (1, "a")]
        for name in ("c", "a", "new", "a"):
            await store.log.append(name, [SessionRenamed(name=f"{name}!")])
        found = await page(store, walk=walk)
        assert [(at, info.name) for at, info in found] == [(4, "b"), (3, "c!"), (1, "a!")]
        assert [info.id for _, info in await page(store, walk=walk, most=2)] == ["b", "c"]
        for before in range(6):
            expected = sorted((at for at in positions.values() if at < before), reverse=True)
            assert [at for at, _ in await page(store, walk=walk, before=before)] == expected
        assert await page(store, walk=0) == []
        assert [(at, info.name) for at, info in await page(store, walk=1)] == [(1, "a!")]
        assert [info.id for _, info in await page(store)] == ["a", "new", "c", "b"]


async def test_deleted_session_is_in_no_list_of_the_past() -> None:
    """A session that was deleted since is not listed as of an earlier position."""
    async with opened() as store:
        for name in ("a", "b"):
            await store.log.append(name, [SessionCreated(name=name)])
        await store.log.append("a", [SessionDeleted()])
        assert [info.id for _, info in await page(store, walk=2)] == ["b"]
