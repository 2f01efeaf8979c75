from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from eventstore import (
    InvalidArgumentError,
    InvalidCompactionError,
    LimitExceededError,
    MessageDeletedError,
    MessageNotFoundError,
    ParentNotFoundError,
    SessionNotFoundError,
)
from replay import rebuild, verify
from sessions import Session, SessionInfo, SessionManager, Store, open_store
from tests.replay.dumps import dumps
from tests.sessions.talk import ids, log_of, said

START = dt.datetime(2025, 6, 1, tzinfo=dt.UTC)
MOST = (1 << 63) - 1


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        """Return what it is set to."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return the clock of the store."""
    return Clock()


@pytest.fixture(params=["file", "memory"])
async def store(request: pytest.FixtureRequest, url: str, clock: Clock) -> AsyncIterator[Store]:
    """Open a store whose clock is set by hand."""
    at = url if request.param == "file" else "sqlite://"
    async with open_store(at, clock=clock, synchronous="normal") as opened:
        yield opened


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a manager of the store."""
    return SessionManager(store)


async def known(manager: SessionManager, session_id: str = "s") -> SessionInfo:
    """Return what is known of a session that is there."""
    info = await manager.get(session_id)
    assert info is not None
    return info


async def usage(manager: SessionManager) -> tuple[int, int, float]:
    """Return what the session "s" has used."""
    info = await known(manager)
    return info.input_tokens, info.output_tokens, info.estimated_cost


async def test_rename(store: Store, manager: SessionManager, clock: Clock) -> None:
    """A session gets another name by one event, and the name it has already by none."""
    made = await manager.create("A", id="s", model="m", source="web")
    clock.now += dt.timedelta(hours=1)
    await manager.rename("s", "B")
    assert await known(manager) == SessionInfo("s", "B", None, "m", "web", 0, 0, 0.0, None, made.created_at, clock.now)
    clock.now += dt.timedelta(hours=1)
    before = await known(manager)
    await manager.rename("s", "B")
    assert await known(manager) == before
    assert [kind for _, _, kind in await log_of(store)] == ["session_created", "session_renamed"]
    await manager.rename("s", "")
    assert (await known(manager)).name == ""


async def test_rename_of_a_session_that_was_only_appended_to(store: Store, manager: SessionManager) -> None:
    """A session that goes by its id gets a name, and to name it by its id is no event."""
    await manager.append("s", said("m1"))
    await manager.rename("s", "s")
    assert len(await log_of(store)) == 1
    await manager.rename("s", "S")
    assert (await known(manager)).name == "S"


async def test_renames_of_one_moment(store: Store, manager: SessionManager) -> None:
    """Of renames at once each is compared with the one before it, also with a creation in the same group."""
    calls = [manager.create("A", id="s"), *(manager.rename("s", name) for name in ["A", "B", "B", "A"])]
    await asyncio.gather(*calls)
    assert [kind for _, _, kind in await log_of(store)] == ["session_created", "session_renamed", "session_renamed"]
    assert (await known(manager)).name == "A"


async def test_unknown_session_is_neither_renamed_nor_charged(store: Store, manager: SessionManager) -> None:
    """A name, or usage, of an unknown session raises and creates nothing."""
    for name in ("nope", ""):
        for call in (manager.rename(name, "x"), manager.add_usage(name, 1, 1, 1.0)):
            with pytest.raises(SessionNotFoundError) as raised:
                await call
            assert raised.value.session_id == name
    assert await log_of(store) == []
    assert await manager.list() == []


async def test_usage_adds_up(store: Store, manager: SessionManager) -> None:
    """Usage is the sum of what was added, of whole numbers and floats, also of calls at once and after a rebuild."""
    await manager.create("A", id="s")
    assert await usage(manager) == (0, 0, 0.0)
    await manager.add_usage("s", 10, 20, 0.1)
    await manager.add_usage("s", 0, 0, 0)
    await manager.add_usage("s", 1, 0, 0.2)
    await manager.add_usage("s", 0, 1, 2)
    assert await usage(manager) == (11, 21, 0.1 + 0.2 + 2)
    assert type((await known(manager)).estimated_cost) is float
    await manager.add_usage("s", 0, 0, -2.5)
    assert await usage(manager) == (11, 21, 0.1 + 0.2 + 2 - 2.5)
    await asyncio.gather(*(manager.add_usage("s", 1, 2, 0.5) for _ in range(100)))
    expected = await usage(manager)
    assert expected[:2] == (111, 221)
    assert expected[2] == pytest.approx(49.8)
    before = await dumps(store)
    await rebuild(store)
    assert await dumps(store) == before
    assert (await verify(store)).problems == []


async def test_every_usage_is_an_event(store: Store, manager: SessionManager) -> None:
    """Usage is recorded as it was added, nothing being something too."""
    await manager.append("s", said("m1"))
    await manager.add_usage("s", 0, 0, 0.0)
    await manager.add_usage("s", 0, 0, 0.0)
    assert [kind for _, _, kind in await log_of(store)] == ["message_appended", "usage_added", "usage_added"]


@pytest.mark.parametrize("tokens", [-1, 1.0, 1.5, True, "1", None, float("inf"), float("nan"), 1 << 63, 1 << 200])
@pytest.mark.parametrize("argument", ["input_tokens", "output_tokens"])
async def test_bad_token_counts_are_refused(store: Store, manager: SessionManager, argument: str, tokens: Any) -> None:
    """A count of tokens that is no whole number from 0 on, or too large to be stored, writes nothing."""
    await manager.create("A", id="s")
    counts = {"input_tokens": 1, "output_tokens": 1} | {argument: tokens}
    with pytest.raises(InvalidArgumentError) as raised:
        await manager.add_usage("s", **counts, cost=0.0)
    assert raised.value.argument == argument
    assert len(await log_of(store)) == 1
    assert await usage(manager) == (0, 0, 0.0)


@pytest.mark.parametrize("cost", [float("inf"), float("-inf"), float("nan"), True, "1", None, 10**400, 1j])
async def test_bad_costs_are_refused(store: Store, manager: SessionManager, cost: Any) -> None:
    """A cost that is no finite number writes nothing."""
    await manager.create("A", id="s")
    with pytest.raises(InvalidArgumentError) as raised:
        await manager.add_usage("s", 1, 1, cost)
    assert raised.value.argument == "cost"
    assert len(await log_of(store)) == 1


async def test_sums_that_cannot_be_stored_are_refused(store: Store, manager: SessionManager) -> None:
    """Usage that would take a sum beyond what a row can hold is refused, and others in its group are not."""
    await manager.create("A", id="s")
    await manager.add_usage("s", MOST, MOST - 1, 1e308)
    outcomes = await asyncio.gather(
        manager.add_usage("s", 1, 0, 0.0),
        manager.add_usage("s", 0, 1, 0.0),
        manager.add_usage("s", 0, 1, 0.0),
        manager.add_usage("s", 0, 0, 1e308),
        manager.append("s", said("m1")),
        return_exceptions=True,
    )
    refused = [outcome.argument if isinstance(outcome, InvalidArgumentError) else None for outcome in outcomes]
    assert refused == ["input_tokens", None, "output_tokens", "cost", None]
    assert await usage(manager) == (MOST, MOST, 1e308)
    before = await dumps(store)
    await rebuild(store)
    assert await dumps(store) == before


TOUCHING: dict[str, Callable[[SessionManager], Awaitable[Any]]] = {
    "append": lambda manager: manager.append("s", said("new")),
    "append_all": lambda manager: manager.append_all("s", [said("new"), said("newer")]),
    "upsert": lambda manager: manager.upsert("s", said("m1", "new")),
    "upsert new": lambda manager: manager.upsert("s", said("new")),
    "delete_messages": lambda manager: manager.delete_messages("s", ["m1"]),
    "clear_messages": lambda manager: manager.clear_messages("s"),
    "add_compaction": lambda manager: manager.add_compaction("s", "S", "m1", "m2"),
    "update_message": lambda manager: manager.get_session("s").update_message(said("m1", "new")),
    "select_leaf": lambda manager: manager.get_session("s").select_leaf("m1"),
    "import_message": lambda manager: manager.get_session("s").import_message(said("new"), None, START),
    "rename": lambda manager: manager.rename("s", "B"),
    "add_usage": lambda manager: manager.add_usage("s", 0, 0, 0.0),
    "compact_and_split": lambda manager: manager.compact_and_split("s", "S"),
}
NOT_TOUCHING: dict[str, Callable[[SessionManager], Awaitable[Any]]] = {
    "append again": lambda manager: manager.append("s", said("m1")),
    "append all again": lambda manager: manager.append_all("s", [said("m1"), said("m2")]),
    "append nothing": lambda manager: manager.append_all("s", []),
    "upsert of the same": lambda manager: manager.upsert("s", said("m1")),
    "delete unknown": lambda manager: manager.delete_messages("s", ["nope"]),
    "rename to the same": lambda manager: manager.rename("s", "A"),
    "select the tip": lambda manager: manager.get_session("s").select_leaf("m2"),
    "fork": lambda manager: manager.fork("s", "m2", "F"),
    "create below": lambda manager: manager.create("child", parent_session_id="s"),
    "read": lambda manager: manager.get_history("s"),
    "get": lambda manager: manager.get("s"),
    "list": lambda manager: manager.list(limit=1),
    "search": lambda manager: manager.search("hello"),
    "another session": lambda manager: manager.append("other", said("m1")),
}


async def _touched(manager: SessionManager, clock: Clock, call: Callable[[SessionManager], Awaitable[Any]]) -> bool:
    await manager.create("A", id="s")
    await manager.append_all("s", [said("m1"), said("m2")])
    clock.now += dt.timedelta(hours=1)
    before = await known(manager)
    await call(manager)
    after = await known(manager)
    assert after.created_at == before.created_at == START
    assert after.updated_at in {START, clock.now}
    return after.updated_at == clock.now


@pytest.mark.parametrize("call", TOUCHING)
async def test_what_is_written_is_an_update(manager: SessionManager, clock: Clock, call: str) -> None:
    """Every call that writes to a session, message calls too, is its last update."""
    await manager.create("first", id="other")
    assert await _touched(manager, clock, TOUCHING[call])
    assert "s" in [info.id for info in (await manager.list())[:2]]


@pytest.mark.parametrize("call", NOT_TOUCHING)
async def test_what_writes_nothing_is_no_update(manager: SessionManager, clock: Clock, call: str) -> None:
    """A call that writes nothing to a session leaves the time of its last update."""
    assert not await _touched(manager, clock, NOT_TOUCHING[call])


async def test_times_never_run_backwards(manager: SessionManager, clock: Clock) -> None:
    """A clock that is set back makes no session older than it was."""
    await manager.create("A", id="s")
    clock.now -= dt.timedelta(hours=1)
    await manager.append("s", said("m1"))
    assert (await known(manager)).updated_at == START


async def test_calls_are_those_of_the_session(manager: SessionManager) -> None:
    """Message calls of a manager do what the calls of a session do, and create a session that is not there."""
    first = await manager.append("s", said("m1"))
    assert (first.inserted, first.version) == (True, 1)
    assert not (await manager.append("s", said("m1"))).inserted
    assert [one.message.id for one in await manager.append_all("s", [said("m2"), said("m3")])] == ["m2", "m3"]
    await manager.append_all("s", [said("b2"), said("b3")], "m1")
    await manager.append("s", said("root"), None)
    assert ids(await manager.get_history("s")) == ["root"]
    assert (await manager.get_message_count("s"), await manager.get_message_count("nope")) == (1, 0)
    assert ids(await manager.get_history("s", "m3")) == ["m1", "m2", "m3"]
    assert ids(await manager.get_branches("s", "m1")) == ["m2", "b2"]
    assert not (await manager.upsert("s", said("m2", "changed"))).inserted
    assert (await manager.upsert("s", said("m4"), "m3")).inserted
    compaction = await manager.add_compaction("s", "S", "m1", "m2")
    assert await manager.get_compactions("s") == [compaction]
    assert ids(await manager.get_history("s")) == [f"compaction_{compaction.id}", "m3", "m4"]
    assert await manager.delete_messages("s", ["m3", "nope"]) == 1
    assert await manager.get_message_count("s") == 3
    session = manager.get_session("s")
    assert isinstance(session, Session)
    assert await session.get_history() == await manager.get_history("s")
    with pytest.raises(ParentNotFoundError):
        await manager.append("s", said("x"), "nope")
    with pytest.raises(MessageDeletedError):
        await manager.upsert("s", said("m3"))
    with pytest.raises(MessageNotFoundError):
        await manager.get_history("s", "nope")
    with pytest.raises(InvalidCompactionError):
        await manager.add_compaction("s", "S", "m2", "m1")
    await manager.clear_messages("s")
    assert await manager.get_history("s") == await manager.get_compactions("s") == []


@pytest.mark.parametrize("wrong", [5, None, b"x", ["a"], True])
async def test_names_are_texts(store: Store, manager: SessionManager, wrong: Any) -> None:
    """A new name that is no text, or too long, is refused and writes nothing."""
    await manager.create("A", id="s")
    with pytest.raises(InvalidArgumentError) as raised:
        await manager.rename("s", wrong)
    assert raised.value.argument == "name"
    with pytest.raises(LimitExceededError):
        await manager.rename("s", "é" * 2049)
    assert len(await log_of(store)) == 1
    await manager.rename("s", "a\0b\ud800")
    assert (await known(manager)).name == "a\0b\ufffd"
