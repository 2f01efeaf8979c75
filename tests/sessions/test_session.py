from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from eventstore import InvalidArgumentError, LimitExceededError, MessageAppended, SessionStartedError
from sessions import Limits, Session, SessionManager, Store, StoredSession, open_store
from tests.sessions.talk import chain, collect, ids, log_of, said


async def test_builder_touches_nothing(store: Store) -> None:
    """Building a session reads and writes nothing, and its default id is the empty one."""
    session = Session.create(store)
    assert session.session_id == ""
    assert session.for_session("a") is session
    assert session.for_session("b").session_id == "b"
    assert await log_of(store) == []
    await Session.create(store).append_message(said("m1"))
    assert await log_of(store) == [("", 1, "message_appended")]


async def test_builder_ends_with_the_first_use(store: Store) -> None:
    """Once a session was used, also when that failed, it cannot be named again."""
    session = Session.create(store).for_session("chat")
    await session.get_history()
    with pytest.raises(SessionStartedError) as raised:
        session.for_session("other")
    assert raised.value.method == "for_session"
    assert session.session_id == "chat"
    for start in (session.history, session.tree, session.events, session.version):
        fresh = Session.create(store).for_session("chat")
        begun = getattr(fresh, start.__name__)()
        if asyncio.iscoroutine(begun):
            await begun
        else:
            await collect(begun)
        with pytest.raises(SessionStartedError):
            fresh.for_session("other")


async def test_session_over_a_provider(store: Store) -> None:
    """A session can be made over a store's own provider, which decides what is stored."""
    stored = StoredSession(store, "chat")
    await stored.append_message(said("m1"))
    for session in (Session(stored), Session.create(stored), Session(stored).for_session("label")):
        assert ids(await session.get_history()) == ["m1"]
    assert Session(stored).session_id == "chat"


async def test_stored_session_can_be_used_alone(store: Store) -> None:
    """The provider under a session has the same calls."""
    stored = StoredSession(store, "chat")
    await stored.append_messages([said("m1", "one"), said("m2", "two")])
    await stored.append_message(said("b"), "m1")
    await stored.select_leaf("m2")
    assert ids(await stored.get_history()) == ids(await collect(stored.history())) == ["m1", "m2"]
    assert ids(await stored.get_branches("m1")) == ["m2", "b"]
    assert (await stored.get_path_length(), await stored.version()) == (2, 4)
    assert [hit.id for hit in await stored.search_messages("two")] == ["m2"]
    assert len(await collect(stored.tree())) == 3


@pytest.mark.parametrize("use", [Session, Session.create, SessionManager, lambda it: StoredSession(it, "chat")])
def test_store_that_was_not_awaited(use: Callable[[Any], Any]) -> None:
    """Whoever forgets to await a store is told so."""
    with pytest.raises(InvalidArgumentError, match=r"store: is not open yet: await open_store"):
        use(open_store("sqlite://"))


@pytest.mark.parametrize("bad", ["context:", "context:a", "search:", "search:x\u00e9"])
async def test_ids_of_other_streams_are_refused(store: Store, bad: str) -> None:
    """A session id that would name a shared context or search stream is refused, and nothing is written."""
    with pytest.raises(InvalidArgumentError) as raised:
        await Session.create(store).for_session(bad).append_message(said("m1"))
    assert raised.value.argument == "session_id"
    for attempt in (
        SessionManager(store).create("n", id=bad),
        SessionManager(store).create("n", parent_session_id=bad),
    ):
        with pytest.raises(InvalidArgumentError):
            await attempt
    assert await SessionManager(store).get(bad) is None
    assert await log_of(store) == []


@pytest.mark.parametrize(
    "good", ["", " ", "context", "Context:a", "x context:", "a/b?c=%20", "é中🙂", "x" * 512, "''--", "\n"]
)
async def test_any_other_text_is_a_session_id(store: Store, good: str) -> None:
    """Every text without NUL of at most 512 bytes names a session, kept as it is."""
    session = Session.create(store).for_session(good)
    await session.append_message(said("m1"))
    info = await SessionManager(store).get(good)
    assert info is not None
    assert (info.id, info.name) == (good, good)
    assert [hit.session_id for hit in await session.search("hello")] == [good]


async def test_session_ids_are_compared_byte_exactly(store: Store) -> None:
    """Ids that differ in case, accents' form or white space are different sessions and messages."""
    names = ["a", "A", "é", "e\u0301", "a ", "\uff41"]
    for name in names:
        await Session.create(store).for_session(name).append_message(said("m1", name))
    for name in names:
        session = Session.create(store).for_session(name)
        assert [message.text for message in await session.get_history()] == [name]
    one = Session.create(store).for_session("one")
    await chain(one, *names)
    assert ids(await one.get_history()) == names


@pytest.mark.parametrize("bad", ["\0", "a\0b", "a\0"])
async def test_nul_in_ids_is_refused(store: Store, session: Session, bad: str) -> None:
    """An id with NUL is refused wherever an id goes in, and nothing is written."""
    manager = SessionManager(store)
    attempts = (
        Session.create(store).for_session(bad).append_message(said("m1")),
        session.append_message(said("m1"), bad),
        session.get_message(bad),
        session.get_history(bad),
        collect(session.history(bad)),
        session.get_branches(bad),
        session.get_path_length(bad),
        session.select_leaf(bad),
        manager.create("n", id=bad),
        manager.create("n", parent_session_id=bad),
        manager.get(bad),
    )
    for attempt in attempts:
        with pytest.raises(InvalidArgumentError):
            await attempt
    assert await log_of(store) == []


async def test_long_session_ids_are_refused(store: Store) -> None:
    """An id above the limit in bytes is refused with the limit's name, and looked up it is simply unknown."""
    for bad in ("x" * 513, "é" * 257, "🙂" * 129):
        with pytest.raises(LimitExceededError) as raised:
            await Session.create(store).for_session(bad).append_message(said("m1"))
        assert (raised.value.limit, raised.value.maximum, raised.value.path) == ("id_bytes", 512, "session_id")
        with pytest.raises(LimitExceededError):
            await SessionManager(store).create("n", id=bad)
        assert await SessionManager(store).get(bad) is None
        assert await Session.create(store).get_message(bad) is None


async def test_limits_are_the_stores(url: str) -> None:
    """A store opened with other limits holds messages to those."""
    async with open_store(url, limits=Limits(id_bytes=4, parts=1)) as store:
        session = Session.create(store).for_session("chat")
        await session.append_message(said("m1"))
        for message in (said("m1234"), {"id": "m2", "role": "user", "parts": [{"type": "a"}] * 2}):
            with pytest.raises(LimitExceededError):
                await session.append_message(message)
        assert await session.version() == 1


async def test_version_counts_the_events(session: Session) -> None:
    """The version of a session is the number of its events, of every kind."""
    await chain(session, "m1", "m2")
    assert await session.version() == 2
    await session.select_leaf("m1")
    assert await session.version() == 3


async def test_events_from_a_version_on(session: Session) -> None:
    """Events come oldest first from a version on, each with its place and its message as it came in."""
    await session.append_messages([said(f"m{n}", f"text {n}") for n in range(1, 5)])
    await session.select_leaf("m2")
    envelopes = await collect(session.events())
    assert [e.version for e in envelopes] == [1, 2, 3, 4, 5]
    assert [e.type for e in envelopes] == ["message_appended"] * 4 + ["leaf_selected"]
    assert {e.stream_id for e in envelopes} == {"chat"}
    first = envelopes[0].event
    assert isinstance(first, MessageAppended)
    assert (first.message, first.parent_id) == (said("m1", "text 1"), None)
    for start, count in ((0, 5), (1, 5), (3, 3), (5, 1), (6, 0), (1 << 60, 0)):
        assert len(await collect(session.events(start))) == count
    assert len(await collect(session.events(from_version=5))) == 1


@pytest.mark.parametrize("start", [-1, True, 1.5, "1", 1 << 70])
async def test_events_from_no_version_are_refused(session: Session, start: object) -> None:
    """What can be no version is refused by events and subscriptions."""
    for read in (session.events, session.subscribe):
        with pytest.raises(InvalidArgumentError):
            await collect(read(start))  # type: ignore[arg-type]
