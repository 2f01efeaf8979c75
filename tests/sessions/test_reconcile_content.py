"""What a client's list of messages holds: what is compared, what is kept, what is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from eventstore import (
    InvalidArgumentError,
    InvalidMessageError,
    LimitExceededError,
    NotSupportedError,
    SessionDeletedError,
)
from sessions import (
    Limits,
    Message,
    ReconcileResult,
    Session,
    SessionManager,
    Store,
    StoredSession,
    open_store,
)
from tests.contracts.test_provider import InMemory
from tests.sessions.clients import answered, talked, twice
from tests.sessions.compactions import Frames
from tests.sessions.talk import collect, ids, log_of, said

LONG_AGO = dt.datetime(2001, 2, 3, 4, 5, 6, 789_012, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "part", [{"type": "step-start"}, {"type": "text", "text": "Sure", "state": "done"}], ids=["step", "state"]
)
async def test_what_only_clients_note_down(session: Session, part: dict[str, Any]) -> None:
    """A turn under another id is the stored one though the client notes steps and states of its texts."""
    known = await talked(session)
    texts = [] if part["type"] == "text" else [{"type": "text", "text": "Sure"}]
    copy = {"id": "x", "role": "assistant", "parts": [part, *texts]}
    assert await twice(session, [*known[:3], copy]) == ReconcileResult(0, 1, 3)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2"]
    found = await session.get_message("a2")
    assert found is not None
    assert found.parts == copy["parts"]


async def test_keys_and_times_stay(session: Session) -> None:
    """What a client has no keys for is kept, and so is the time of a stored message, whatever the client notes down."""
    await session.import_message(said("u1", "help", metadata={"source": "phone"}, starred=True), None, LONG_AGO)
    await session.append_message(answered("a1"))
    seen = [said("u1", "help", createdAt="2001-02-03T04:05:06.789Z"), answered("a1", createdAt="2030-01-01T00:00:00Z")]
    assert await twice(session, seen) == ReconcileResult(0, 0, 2)
    assert await twice(session, [said("u1", "help!", metadata={"source": "web"}), seen[1]]) == ReconcileResult(0, 1, 1)
    found = await session.get_message("u1")
    assert found is not None
    assert found.created_at == LONG_AGO
    assert (found.text, found.metadata, found.to_dict()["starred"]) == ("help!", {"source": "web"}, True)
    await twice(session, [*seen[:1], said("new", createdAt="2001-02-03T04:05:07Z")])
    new = await session.get_message("new")
    assert new is not None
    assert new.created_at == dt.datetime(2001, 2, 3, 4, 5, 7, tzinfo=dt.UTC)


async def test_numbers_as_a_browser_writes_them(session: Session) -> None:
    """Numbers that come back as JavaScript writes them are those that are stored, to the last digit."""
    part = {"type": "data-post", "id": 12345678901234567891, "score": 1.0, "zero": -0.0, "flag": True}
    stored = answered("a1", metadata={"ids": [12345678901234567891]})
    stored["parts"].append(part)
    await session.append_message(stored)
    echo = answered("a1", metadata={"ids": [12345678901234567000]})
    echo["parts"].append({**part, "id": 12345678901234567000, "score": 1, "zero": 0})
    assert await twice(session, [echo]) == ReconcileResult(0, 0, 1)
    assert await twice(session, [{**echo, "id": "x"}]) == ReconcileResult(0, 0, 1)
    echo["parts"][0]["text"] = "Sure!"
    assert await twice(session, [echo]) == ReconcileResult(0, 1, 0)
    stored["parts"][0]["text"] = "Sure!"
    assert await session.get_history() == [Message(**stored)]
    echo["parts"][1] = {**part, "id": 10**400}
    assert await twice(session, [echo]) == ReconcileResult(0, 1, 0)
    assert await twice(session, [echo]) == ReconcileResult(0, 0, 1)
    echo["parts"][1]["flag"] = 1
    assert await twice(session, [echo]) == ReconcileResult(0, 1, 0)


async def test_surrogates_come_in_as_everywhere(session: Session) -> None:
    """Lone surrogates in ids and texts are replaced, and the same list again is known by what was stored (SQL-3)."""
    given = [said("u\ud800", "tru\ud82dth"), answered("a\udc00", "🙂 yes")]
    assert await twice(session, given) == ReconcileResult(2, 0, 0)
    assert [message.text for message in await session.get_history()] == ["tru\ufffdth", "🙂 yes"]


@pytest.mark.parametrize("messages", [None, 5, "m1", b"m1", said("m1"), Message(role="user", parts=[])])
async def test_what_is_no_list_is_refused(session: Session, messages: object) -> None:
    """One message, a text, or anything else that is no list of messages is refused."""
    with pytest.raises(InvalidArgumentError):
        await session.reconcile(messages)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bad", "error", "path"),
    [
        ({"id": "x", "role": "user"}, InvalidMessageError, "parts"),
        ({"id": "compaction_x", "role": "user", "parts": None}, InvalidMessageError, "parts"),
        (said("x", metadata={"a": [float("nan")]}), InvalidMessageError, "metadata.a[0]"),
        ({"id": "x", "role": "user", "parts": [{"type": 1}]}, InvalidMessageError, "parts[0].type"),
        (said("", "empty id"), InvalidMessageError, "id"),
        (said("x" * 600), LimitExceededError, "id"),
        ({"id": "x", "role": "user", "parts": [{"type": "text"}] * 10_001}, LimitExceededError, "parts"),
    ],
    ids=["no parts", "no summary", "number", "type", "id", "long id", "many parts"],
)
async def test_one_bad_message_fails_all(
    store: Store, session: Session, bad: dict[str, Any], error: type[Exception], path: str
) -> None:
    """A message that cannot be stored fails the whole list, named by its path, before anything is written (MEM-4)."""
    known = await talked(session)
    before = await log_of(store)
    with pytest.raises(error) as raised:
        await session.reconcile([*known[:3], answered("a2", "changed"), said("new"), bad])
    assert getattr(raised.value, "path", None) == path
    assert await log_of(store) == before


async def test_what_copies_come_to_is_limited_too() -> None:
    """A message that only becomes too large by what a copy adds to it is refused, and nothing is written (MEM-2)."""
    part = {"type": "tool-look", "toolCallId": "c", "state": "output-available", "input": {}, "output": "x" * 50}
    async with open_store("sqlite://", limits=Limits(parts=2, message_bytes=300)) as store:
        session = Session.create(store).for_session("chat")
        await session.append_message({"id": "a", "role": "assistant", "parts": [part, {"type": "step-start"}]})
        for more in ([{"type": "text", "text": "x"}], [{**part, "toolCallId": "d", "output": "y" * 80}]):
            stale = {"id": "a", "role": "assistant", "parts": [{**part, "output": None}, *more]}
            with pytest.raises(LimitExceededError) as raised:
                await session.reconcile([stale, said("new")])
            assert raised.value.limit in {"parts", "message_bytes"}
        assert await session.version() == 1


async def test_deep_messages(session: Session) -> None:
    """Messages as deep as the limit allows are compared and stored (MEM-4)."""
    deep: Any = 1.0
    for _ in range(97):
        deep = [{"a": deep}]
    part = {"type": "data-deep", "data": deep}
    await session.append_message({"id": "a", "role": "assistant", "parts": [part]})
    given = {"id": "x", "role": "assistant", "parts": [part]}
    assert await twice(session, [given, said("u")]) == ReconcileResult(1, 0, 1)


async def test_through_the_provider_of_a_store(store: Store) -> None:
    """A stored session can be reconciled by itself, and a session over it as one over the store."""
    stored = StoredSession(store, "chat")
    assert await stored.reconcile([said("u1")]) == ReconcileResult(1, 0, 0)
    assert await Session(stored).reconcile([said("u1"), said("u2")]) == ReconcileResult(1, 0, 1)
    assert ids(await stored.get_history()) == ["u1", "u2"]


async def test_not_over_a_provider_without_a_log() -> None:
    """A provider of an application cannot write a list in one transaction, and says so."""
    session = Session(InMemory())
    with pytest.raises(NotSupportedError):
        await session.reconcile([said("u1")])
    assert await session.get_history() == []


async def test_deleted_session_takes_no_list(store: Store, session: Session) -> None:
    """A client that still has a session which was deleted cannot bring it back (PRV-1)."""
    known = await talked(session)
    await SessionManager(store).delete("chat")
    with pytest.raises(SessionDeletedError):
        await session.reconcile(known)
    assert await collect(session.tree()) == []


async def test_what_follows_a_write_follows_a_list(store: Store) -> None:
    """A list tells the status, lists its session, and is found by search."""
    frames = Frames()
    session = Session.create(store).for_session("chat").with_publisher(frames)
    await session.reconcile([said("u1", "fox")])
    await session.reconcile([said("u1", "wolf")])
    assert [frame["phase"] for _, frame in frames.sent] == ["idle", "idle"]
    assert ids(await session.search("wolf")) == ["u1"]  # type: ignore[arg-type]
    assert await session.search("fox") == []
    assert [info.id for info in await SessionManager(store).list()] == ["chat"]
