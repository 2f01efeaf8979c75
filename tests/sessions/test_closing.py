from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from eventstore import InvalidArgumentError, NotSupportedError, StoreClosedError, StoreUnavailableError
from sessions import Limits, Session, SessionManager, Store, open_store
from tests.sessions.talk import chain, collect, ids, said

WAIT = 10.0


async def test_closing_ends_subscriptions(store: Store, session: Session) -> None:
    """Closing a store ends every subscription quietly, whether it waits, was just begun, or has more to give."""
    await session.append_messages([said(f"m{n}") for n in range(1, 3001)])
    busy = session.subscribe(0)
    await anext(busy)
    streams = [session.subscribe(3000), session.subscribe(), store.log.subscribe(), session.subscribe(9999)]
    waiting = [asyncio.create_task(collect(stream)) for stream in streams]
    await asyncio.sleep(0.05)
    await store.close()
    async with asyncio.timeout(WAIT):
        assert [await task for task in waiting] == [[], [], [], []]
        rest = [envelope.version async for envelope in busy]
    assert rest == list(range(2, len(rest) + 2))


async def test_closing_while_subscriptions_read(store: Store, session: Session) -> None:
    """Subscriptions that are in the middle of a long past when the store closes end quietly too."""
    await session.append_messages([said(f"m{n}", "x" * 2_000) for n in range(1, 3001)])
    reading = [asyncio.create_task(collect(session.subscribe(0))) for _ in range(6)]
    await asyncio.sleep(0.01)
    await store.close()
    async with asyncio.timeout(WAIT):
        for read in await asyncio.gather(*reading):
            assert [envelope.version for envelope in read] == list(range(1, len(read) + 1))


@pytest.mark.parametrize("kind", ["history", "tree", "events"])
async def test_closing_never_makes_a_part_look_whole(store: Store, session: Session, kind: str) -> None:
    """A history, a tree or events that closing cuts off end with StoreClosedError, not as if they were complete."""
    await session.append_messages([said(f"m{n}", "x" * 2_000) for n in range(3000)])
    stream = getattr(session, kind)()
    await anext(stream)
    await store.close()
    with pytest.raises(StoreClosedError):
        await collect(stream)


CALLS: dict[str, Callable[[Session, SessionManager], Any]] = {
    "append_message": lambda session, _: session.append_message(said("x")),
    "append_messages": lambda session, _: session.append_messages([said("x")]),
    "get_message": lambda session, _: session.get_message("m1"),
    "get_latest_leaf": lambda session, _: session.get_latest_leaf(),
    "get_history": lambda session, _: session.get_history(),
    "history": lambda session, _: collect(session.history()),
    "get_path_length": lambda session, _: session.get_path_length(),
    "get_branches": lambda session, _: session.get_branches("m1"),
    "tree": lambda session, _: collect(session.tree()),
    "select_leaf": lambda session, _: session.select_leaf("m1"),
    "search": lambda session, _: session.search("x"),
    "version": lambda session, _: session.version(),
    "events": lambda session, _: collect(session.events()),
    "manager.create": lambda _, manager: manager.create("n"),
    "manager.get": lambda _, manager: manager.get("chat"),
    "manager.list": lambda _, manager: manager.list(),
    "manager.search": lambda _, manager: manager.search("x"),
    "manager.get_session": lambda _, manager: manager.get_session("chat").get_history(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_every_call_after_closing_says_so(store: Store, session: Session, call: Callable[..., Any]) -> None:
    """Once a store is closed, every call raises StoreClosedError."""
    await session.append_message(said("m1"))
    await store.close()
    with pytest.raises(StoreClosedError):
        await call(session, SessionManager(store))


async def test_closing_twice_is_once(store: Store) -> None:
    """Closing a closed store does nothing, also when both calls run at once."""
    await asyncio.gather(store.close(), store.close())
    await store.close()


async def test_closing_commits_what_is_waiting(url: str) -> None:
    """Appends that were handed in before the store was closed are stored or refused, never lost unsaid."""
    store = await open_store(url, synchronous="normal")
    session = Session.create(store).for_session("chat")
    appends = [asyncio.create_task(session.append_message(said(f"m{n}"), None)) for n in range(600)]
    await asyncio.sleep(0)
    await store.close()
    async with asyncio.timeout(WAIT):
        outcomes = await asyncio.gather(*appends, return_exceptions=True)
    stored = {outcome.message.id for outcome in outcomes if not isinstance(outcome, BaseException)}
    assert all(isinstance(outcome, StoreClosedError) for outcome in outcomes if isinstance(outcome, BaseException))
    async with open_store(url) as again:
        found = await collect(Session.create(again).for_session("chat").tree())
        assert {node.message.id for node in found} == stored


async def test_reads_during_closing_end(store: Store, session: Session) -> None:
    """Reads that are under way while the store closes end with their result or with StoreClosedError."""
    await session.append_messages([said(f"m{n}", "x" * 1_000) for n in range(500)])
    reads = [asyncio.create_task(session.get_history()) for _ in range(20)]
    await asyncio.sleep(0.005)
    await store.close()
    async with asyncio.timeout(WAIT):
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
    for outcome in outcomes:
        assert isinstance(outcome, StoreClosedError) or (isinstance(outcome, list) and len(outcome) == 500)


async def test_store_can_be_awaited_or_entered(url: str) -> None:
    """Opening gives the same store whether it is awaited or entered, and an awaited one can be entered later."""
    store = await open_store(url)
    async with store as same:
        assert same is store
        await chain(Session.create(store).for_session("chat"), "m1", "m2")
    with pytest.raises(StoreClosedError):
        await Session.create(store).for_session("chat").get_history()
    async with open_store(url) as again:
        assert ids(await Session.create(again).for_session("chat").get_history()) == ["m1", "m2"]


async def test_engine_is_the_store_s_own(store: Store, session: Session) -> None:
    """The engine that a store names sees what the store holds."""
    await session.append_message({"id": "m1", "role": "user", "parts": []})
    async with store.engine.connect() as connection:
        assert (await connection.execute(text("SELECT COUNT(*) FROM events"))).scalar() == 1


async def test_stores_in_memory_are_private() -> None:
    """Every store in memory is one of its own, and is gone when it is closed."""
    async with open_store("sqlite://") as one, open_store("sqlite://") as two:
        await Session.create(one).for_session("chat").append_message(said("m1"))
        assert await Session.create(two).for_session("chat").get_history() == []
    async with open_store("sqlite://") as three:
        assert await SessionManager(three).list() == []


@pytest.mark.parametrize("url", ["", "chats.db", "sqlite", 5, None, b"sqlite://", "sqlite://:bad port:x/"])
def test_bad_urls_are_refused(url: Any) -> None:
    """What is no URL of a database is refused when it is given."""
    with pytest.raises((InvalidArgumentError, NotSupportedError)):
        open_store(url)


@pytest.mark.parametrize("url", ["mysql://h/d", "oracle://h/d"])
def test_other_engines_are_not_supported(url: str) -> None:
    """An engine that there is no dialect for is named in the error."""
    with pytest.raises(NotSupportedError):
        open_store(url)


def test_database_that_cannot_be_opened(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be made is an error when the store is opened, and no thread fails afterwards."""
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)

    async def attempt() -> None:
        with pytest.raises(StoreUnavailableError):
            await open_store(url.replace("chats.db", "no/such/folder/chats.db"))

    before = set(threading.enumerate())
    for _ in range(20):
        asyncio.run(attempt())
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert failures == []


@pytest.mark.parametrize(
    "options",
    [
        {"limits": 5},
        {"limits": {"depth": 5}},
        {"clock": 5},
        {"estimate_tokens": "x"},
        {"publisher": 5},
        {"projections": 5},
        {"projections": [5]},
        {"synchronous": "off"},
        {"synchronous": None},
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    """An option that is not what it should be is refused when it is given, by its name."""
    with pytest.raises(InvalidArgumentError) as raised:
        open_store("sqlite://", **options)
    assert raised.value.argument in options


@pytest.mark.parametrize("origin", [None, 5, "sqlite://", Limits(), object()], ids=lambda value: type(value).__name__)
def test_sessions_need_a_store(origin: Any) -> None:
    """A session or manager over what is no store is refused when it is made."""
    for make in (Session, Session.create, SessionManager):
        with pytest.raises(InvalidArgumentError):
            make(origin)


def test_store_must_have_been_opened() -> None:
    """A store that was never awaited is refused too, which is an easy thing to forget."""
    with pytest.raises(InvalidArgumentError):
        Session.create(open_store("sqlite://"))  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["sqlite://", "file"])
def test_tasks_append_on_their_way_out(tmp_path: Path, url: str) -> None:
    """A task that is cancelled at the end of the program can still append and close its store."""
    stored: list[str] = []

    async def talk(ready: asyncio.Event) -> None:
        async with open_store(f"sqlite:///{tmp_path / 'chats.db'}" if url == "file" else url) as store:
            session = Session.create(store).for_session("chat")
            try:
                ready.set()
                await asyncio.sleep(60)
            finally:
                stored.append((await session.append_message(said("bye"))).message.id)

    async def main() -> None:
        ready = asyncio.Event()
        main.task = asyncio.create_task(talk(ready))  # type: ignore[attr-defined]
        await ready.wait()

    asyncio.run(main())
    assert stored == ["bye"]


def test_store_belongs_to_its_event_loop(tmp_path: Path) -> None:
    """A store that is used in another event loop says so at once, and can be closed there."""

    async def opened() -> Store:
        return await open_store(f"sqlite:///{tmp_path / 'chats.db'}")

    async def used(store: Store) -> None:
        session = Session.create(store).for_session("chat")
        for call in (session.append_message(said("m1")), session.get_history()):
            with pytest.raises(NotSupportedError, match="event loop"):
                await call
        await store.close()

    asyncio.run(used(asyncio.run(opened())))
