from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from eventstore import InvalidArgumentError, LimitExceededError, SessionExistsError, SessionStartedError
from sessions import Session, SessionManager, Store, open_store
from tests.sessions.talk import ids, log_of, said


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a manager of the store."""
    return SessionManager(store)


def ticking() -> Callable[[], dt.datetime]:
    """Return a clock that goes on by a second whenever it is asked."""
    now = dt.datetime(2025, 6, 1, tzinfo=dt.UTC)

    def tick() -> dt.datetime:
        nonlocal now
        now += dt.timedelta(seconds=1)
        return now

    return tick


async def test_templates_come_before_the_first_session(manager: SessionManager) -> None:
    """A manager that has given a session out takes no builder method any more, and names the one that was called."""
    manager.with_context("memory").get_session("chat")
    methods: dict[str, Callable[[], object]] = {
        "with_context": lambda: manager.with_context("notes"),
        "with_cached_prompt": manager.with_cached_prompt,
        "compact_after": lambda: manager.compact_after(1),
    }
    for name, method in methods.items():
        with pytest.raises(SessionStartedError) as refused:
            method()
        assert refused.value.method == name


async def test_created_session_is_known(store: Store, manager: SessionManager) -> None:
    """A created session has what it was created with, a new id, and no usage; creating is one event."""
    made = await manager.create("Trip", parent_session_id="p", model="m-1", source="web")
    assert uuid.UUID(made.id).version == 7
    assert (made.name, made.parent_session_id, made.model, made.source) == ("Trip", "p", "m-1", "web")
    assert (made.input_tokens, made.output_tokens, made.estimated_cost, made.end_reason) == (0, 0, 0.0, None)
    assert made.created_at == made.updated_at
    assert made.created_at.utcoffset() == dt.timedelta(0)
    assert await manager.get(made.id) == made
    assert await manager.list() == [made]
    assert await log_of(store) == [(made.id, 1, "session_created")]


async def test_session_is_created_under_a_given_id(manager: SessionManager) -> None:
    """A session can be created under an id of the caller's, and optional facts stay unset."""
    made = await manager.create("", id="mine")
    assert (made.id, made.name, made.parent_session_id, made.model, made.source) == ("mine", "", None, None, None)
    assert (await manager.create("n", id="")).id == ""


async def test_id_in_use_is_refused(store: Store, manager: SessionManager) -> None:
    """An id is in use once it was created or appended to, and creating it again changes nothing."""
    await manager.create("first", id="a")
    await manager.get_session("b").append_message(said("m1"))
    before = await manager.list()
    for taken in ("a", "b"):
        with pytest.raises(SessionExistsError) as raised:
            await manager.create("second", id=taken)
        assert raised.value.session_id == taken
    assert await manager.list() == before
    assert len(await log_of(store)) == 2


async def test_unknown_session(manager: SessionManager) -> None:
    """Of a session that does not exist nothing is known, and asking creates nothing."""
    assert await manager.get("nope") is None
    session = manager.get_session("nope")
    assert isinstance(session, Session)
    assert await session.get_history() == []
    assert await manager.list() == []


async def test_session_that_was_only_appended_to_is_listed(manager: SessionManager) -> None:
    """A session that was never created is listed under its id from its first message on."""
    await manager.get_session("chat").append_message(said("m1"))
    (info,) = await manager.list()
    assert (info.id, info.name, info.parent_session_id, info.model, info.source) == ("chat", "chat", None, None, None)


async def test_created_session_keeps_its_name_when_appended_to(manager: SessionManager) -> None:
    """Messages change nothing of a session but when it was last updated."""
    made = await manager.create("Trip", id="chat", model="m")
    await manager.get_session("chat").append_messages([said("m1"), said("m2")])
    info = await manager.get("chat")
    assert info is not None
    assert (info.name, info.model, info.created_at) == ("Trip", "m", made.created_at)
    assert info.updated_at >= made.updated_at


async def test_newest_update_comes_first(url: str) -> None:
    """Sessions are listed by their last event, the newest first."""
    async with open_store(url, clock=ticking(), synchronous="normal") as store:
        manager = SessionManager(store)
        for name in ("a", "b", "c"):
            await manager.create(name, id=name)
        await manager.get_session("a").append_message(said("m1"))
        await manager.get_session("d").append_message(said("m1"))
        await manager.get_session("b").append_message(said("m1"))
        await manager.get_session("a").append_message(said("m1"))
        listed = await manager.list()
        assert [info.id for info in listed] == ["b", "d", "a", "c"]
        assert [info.updated_at for info in listed] == sorted((info.updated_at for info in listed), reverse=True)
        await manager.get_session("c").append_messages([said("m1"), said("m2")])
        await manager.get_session("c").select_leaf("m1")
        first = (await manager.list())[0]
        assert (first.id, first.updated_at > first.created_at) == ("c", True)


async def test_search_spans_all_sessions(manager: SessionManager) -> None:
    """A manager's search finds the messages of every session, newest first where they match equally."""
    for session_id in ("a", "b"):
        await manager.get_session(session_id).append_message(said("m1", f"penguins of {session_id}"))
    hits = await manager.search("penguin")
    assert [(hit.session_id, hit.id) for hit in hits] == [("b", "m1"), ("a", "m1")]
    await manager.get_session("a").append_message(said("m2", "penguins of c"))
    assert [hit.session_id for hit in await manager.search("penguin")] == ["a", "b", "a"]
    assert len(await manager.search("penguin", limit=1)) == 1
    assert await manager.search("penguin", limit=0) == []
    assert await manager.search("walrus") == []


async def test_search_gives_the_newest_of_many_equal_hits(manager: SessionManager) -> None:
    """Of more equal matches than are looked at, the newest are found, in whatever session they are."""
    old, young = manager.get_session("old"), manager.get_session("young")
    await old.append_message(said("first", "same words"))
    await young.append_messages([said(f"m{n}", "same words") for n in range(300)])
    await old.append_message(said("last", "same words"))
    assert [hit.id for hit in await manager.search("same words", limit=3)] == ["last", "m299", "m298"]


@pytest.mark.parametrize("limit", [-1, True, 1.5, "5", None])
async def test_bad_limits_are_refused(manager: SessionManager, limit: object) -> None:
    """A limit that is no count is refused."""
    for search in (manager.search, manager.get_session("a").search):
        with pytest.raises(InvalidArgumentError) as raised:
            await search("x", limit=limit)  # type: ignore[arg-type]
        assert raised.value.argument == "limit"


@pytest.mark.parametrize("facts", ["name", "model", "source"])
async def test_titles_are_checked(store: Store, manager: SessionManager, facts: str) -> None:
    """Names, models and sources are texts of a bounded size, with lone surrogates replaced and NUL kept."""

    def titled(title: Any) -> Any:
        return manager.create(**{"name": "n", facts: title})

    for wrong in (5, b"x", ["a"], 0, False):
        with pytest.raises(InvalidArgumentError) as refused:
            await titled(wrong)
        assert refused.value.argument == facts
    with pytest.raises(LimitExceededError) as raised:
        await titled("é" * 2049)
    assert (raised.value.limit, raised.value.path) == ("title_bytes", facts)
    assert await log_of(store) == []
    for given, kept in (("é" * 2048, "é" * 2048), ("a\0b\ud800", "a\0b\ufffd"), ("", "")):
        made = await titled(given)
        assert getattr(made, facts) == kept
        assert await manager.get(made.id) == made


async def test_sessions_of_a_manager_are_sessions(manager: SessionManager) -> None:
    """A session got from a manager is the one with that id."""
    made = await manager.create("Trip")
    await manager.get_session(made.id).append_message(said("m1"))
    assert ids(await manager.get_session(made.id).get_history()) == ["m1"]
    assert await manager.get_session(made.id).version() == 2
