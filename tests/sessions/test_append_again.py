from __future__ import annotations

import contextlib
import datetime as dt
import enum
import sqlite3
from typing import Any

import pytest

from eventstore import DuplicateMessageError, IntegrityError, ParentNotFoundError, VersionConflictError
from sessions import Message, Session, Store, open_store
from tests.sessions.talk import chain, ids, log_of, said


async def test_the_same_again_is_no_new_event(store: Store, session: Session) -> None:
    """A known id again gives the first result, changed it is refused, in another session it is new (TREE-6)."""
    first = await session.append_message(said("msg-1", "hello"))
    await session.append_message(said("other"))
    again = await session.append_message(said("msg-1", "hello"))
    assert (again.message, again.inserted) == (first.message, False)
    assert (again.version, again.position) == (first.version, first.position)
    assert again.message.created_at == first.message.created_at
    for attempt in (
        session.append_message(said("msg-1", "goodbye")),
        session.append_message(said("msg-1", "hello"), "other"),
    ):
        with pytest.raises(DuplicateMessageError) as raised:
            await attempt
        assert (raised.value.session_id, raised.value.message_id) == ("chat", "msg-1")
    elsewhere = Session.create(store).for_session("s2")
    assert (await elsewhere.append_message(said("msg-1", "other words"))).inserted
    assert len(await log_of(store)) == 3
    assert [hit.session_id for hit in await session.search("hello")] == ["chat", "chat"]
    assert await elsewhere.search("hello") == []


@pytest.mark.parametrize(
    ("content", "same"),
    [
        ({"x": {"a": 1, "b": [1, 2]}}, True),
        ({"x": {"b": [1, 2], "a": 1}}, True),
        ({"x": {"a": 1.0, "b": [1, 2]}}, False),
        ({"x": {"a": True, "b": [1, 2]}}, False),
        ({"x": {"a": 1, "b": [2, 1]}}, False),
        ({"x": {"a": 1, "b": (1, 2)}}, True),
        ({"x": {"a": 1, "b": [1, 2], "c": None}}, False),
        ({"x": {"a": 1, "b": [1, 2]}, "y": None}, False),
        ({}, False),
    ],
    ids=["equal", "key order", "float", "bool", "order", "tuple", "null key", "null on top", "less"],
)
async def test_same_means_equal_json(session: Session, content: dict[str, Any], same: bool) -> None:  # noqa: FBT001
    """Content is the same when its JSON values are equal by type, whatever the order of keys."""
    await session.append_message(said("m1", x={"a": 1, "b": [1, 2]}))
    if same:
        assert not (await session.append_message(said("m1", **content))).inserted
    else:
        with pytest.raises(DuplicateMessageError):
            await session.append_message(said("m1", **content))
    assert await session.version() == 1


@pytest.mark.parametrize(("first", "then"), [(0.0, -0.0), (-0.0, 0), (1, 1.0), (0, False), (2**53, float(2**53))])
async def test_numbers_of_another_type_are_other_content(session: Session, first: object, then: object) -> None:
    """Numbers that are equal but not of one type are not the same content."""
    await session.append_message(said("m1", n=first))
    if type(first) is type(then):
        assert not (await session.append_message(said("m1", n=then))).inserted
    else:
        with pytest.raises(DuplicateMessageError):
            await session.append_message(said("m1", n=then))


async def test_big_numbers_are_the_same_again(session: Session) -> None:
    """Integers of any size are recognised to the last digit."""
    await session.append_message(said("m1", n=10**400))
    assert not (await session.append_message(said("m1", n=10**400))).inserted
    with pytest.raises(DuplicateMessageError):
        await session.append_message(said("m1", n=10**400 + 1))


async def test_own_time_is_content(session: Session) -> None:
    """Another own time is other content, and so is the same moment written otherwise."""
    await session.append_message(said("m1", createdAt="2025-01-01T00:00:00Z"))
    assert not (await session.append_message(said("m1", createdAt="2025-01-01T00:00:00Z"))).inserted
    for other in ({"createdAt": "2025-01-01T00:00:00+00:00"}, {}):
        with pytest.raises(DuplicateMessageError):
            await session.append_message(said("m1", **other))


async def test_parent_is_compared_with_the_one_first_given(session: Session) -> None:
    """A repeat that names no parent never conflicts, and one that names a parent must name the first one."""
    await chain(session, "m1", "m2")
    await session.append_message(said("r"), None)
    for message, parent in (("m2", "m1"), ("m1", None), ("r", None)):
        assert not (await session.append_message(said(message), parent)).inserted
    for message in ("m1", "m2", "r"):
        assert not (await session.append_message(said(message))).inserted
    for message, wrong in (("m2", None), ("m2", "r"), ("m2", "m2"), ("m2", "nope"), ("m1", "m2"), ("r", "m2")):
        with pytest.raises(DuplicateMessageError):
            await session.append_message(said(message), wrong)
    assert await session.version() == 3


async def test_repeat_does_not_move_the_tip(session: Session) -> None:
    """Appending a known message again leaves the latest leaf where it is."""
    await chain(session, "m1", "m2", "m3")
    await session.append_message(said("m1"))
    assert ids(await session.get_history()) == ["m1", "m2", "m3"]


@pytest.mark.parametrize("expected", [0, 1, 2, 3, 99])
async def test_repeat_is_recognised_before_the_version_is_judged(session: Session, expected: int) -> None:
    """A retry of an append whose outcome was unknown returns the first result, whatever version it expects (CON-4)."""
    first = await session.append_message(said("m1"), expected_version=0)
    await session.append_message(said("m2"))
    again = await session.append_message(said("m1"), expected_version=expected)
    assert (again.inserted, again.version) == (False, first.version)


async def test_changed_repeat_with_a_stale_version_is_refused(session: Session) -> None:
    """A known id with other content is never taken for a repeat, whatever version it expects (CON-4)."""
    await chain(session, "m1", "m2")
    for expected in (0, 2):
        with pytest.raises((DuplicateMessageError, VersionConflictError)):
            await session.append_message(said("m1", "changed"), expected_version=expected)


async def test_message_handed_out_is_the_same_again(session: Session) -> None:
    """A message that was read back can be appended again and is known."""
    await session.append_message(said("m1", meta={"b": 1, "a": [-0.0, None]}))
    message = await session.get_message("m1")
    assert message is not None
    assert not (await session.append_message(message)).inserted
    assert not (await session.append_message(message.to_dict())).inserted


async def test_repeat_is_known_after_reopening_and_with_surrogates(session: Session) -> None:
    """A repeat is compared as it would be stored, lone surrogates replaced."""
    await session.append_message(said("m\ud800", "a\udc00b"))
    assert not (await session.append_message(said("m\udfff", "a\ud800b"))).inserted
    assert not (await session.append_message(said("m\ufffd", "a\ufffdb"))).inserted
    assert ids(await session.get_history("m\udbff")) == ["m\ufffd"]


async def test_text_of_another_class_is_its_text(session: Session) -> None:
    """Ids and roles that are members of a text enumeration are stored and found by their value."""

    class Name(str, enum.Enum):  # noqa: UP042 - the kind whose str() is not its value
        ONE = "m1"
        ROLE = "user"

    message = {"id": Name.ONE, "role": Name.ROLE, "parts": []}
    assert (await session.append_message(message)).message.id == "m1"
    assert not (await session.append_message(message)).inserted
    assert not (await session.append_message({"id": "m1", "role": "user", "parts": []})).inserted
    await session.append_message(said("m2"), Name.ONE)
    assert ids(await session.get_branches(Name.ONE)) == ["m2"]


async def test_imported_message_is_the_same_again(session: Session) -> None:
    """An imported message is known again by its time, and as it is handed out; another time is other content."""
    moment = dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    east = moment.astimezone(dt.timezone(dt.timedelta(hours=5)))
    own = said("m1", createdAt="2001-02-03T04:05:06Z")
    for message, time in ((own, moment), (own, east), (said("m2"), moment), (said("m2"), east)):
        result = await session.import_message(message, None, time)
        assert result.message.created_at == moment
    assert await session.version() == 2
    first, second = [await session.get_message(name) for name in ("m1", "m2")]
    assert first is not None
    assert first.to_dict() == own
    assert second is not None
    assert second.to_dict() == {**said("m2"), "createdAt": "2001-02-03T04:05:06Z"}
    assert not (await session.append_message(second)).inserted
    await session.update_message(said("m2", "changed"))
    assert not (await session.append_message(second)).inserted
    for message in (said("m1"), own, said("m2")):
        with pytest.raises(DuplicateMessageError):
            await session.import_message(message, None, moment + dt.timedelta(microseconds=1))
    assert await session.version() == 3


async def test_append_that_cannot_be_read_any_more_is_no_repeat(url: str) -> None:
    """A known id whose first append was made unreadable is an IntegrityError, since nobody can tell what it was."""
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await chain(session, "m1", "m2")
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("UPDATE events SET payload = '{' WHERE version = 1")
            connection.commit()
        before = await log_of(store)
        with pytest.raises(IntegrityError, match="version 1"):
            await session.append_message(said("m1"))
        assert not (await session.append_message(said("m2"))).inserted
        assert await log_of(store) == before


async def test_unknown_parent_of_a_new_message_is_still_refused(session: Session) -> None:
    """A new id is no repeat, so that its parent must exist."""
    await session.append_message(said("m1"))
    with pytest.raises(ParentNotFoundError):
        await session.append_message(Message(id="m2", role="user", parts=[]), "m3")
