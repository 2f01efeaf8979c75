from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import msgspec

from eventstore import Event, LeafSelected, MessageAppended, SessionCreated
from eventstore.statements import Row
from projections import Directory, SessionInfo
from projections.directory import find_session, list_sessions
from replay import rebuild
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
    return await store.log.read(list_sessions)


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
        info = await store.log.read(lambda tx: find_session(tx, "a"))
        assert info is not None
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
