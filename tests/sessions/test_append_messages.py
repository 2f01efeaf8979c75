from __future__ import annotations

import asyncio

import pytest

from eventstore import (
    DuplicateMessageError,
    InvalidArgumentError,
    InvalidMessageError,
    LimitExceededError,
    ParentNotFoundError,
)
from sessions import Message, Session, Store, StoredSession, open_store
from tests.sessions.talk import chain, collect, ids, log_of, said, stored_parents


async def test_messages_are_chained(session: Session) -> None:
    """Messages are appended each under the one before it, the first under the latest leaf."""
    await session.append_message(said("m0"))
    results = await session.append_messages([said("m1"), Message(id="m2", role="assistant", parts=[]), said("m3")])
    assert [(r.message.id, r.inserted, r.version, r.position) for r in results] == [
        ("m1", True, 2, 2),
        ("m2", True, 3, 3),
        ("m3", True, 4, 4),
    ]
    assert ids(await session.get_history()) == ["m0", "m1", "m2", "m3"]


async def test_messages_under_a_parent_or_as_a_root(session: Session) -> None:
    """Only the first message goes under the parent that is given."""
    await chain(session, "m1", "m2")
    await session.append_messages([said("b1"), said("b2")], "m1")
    await session.append_messages([said("r1"), said("r2")], None)
    parents = await stored_parents(session)
    assert parents == {"m1": None, "m2": "m1", "b1": "m1", "b2": "b1", "r1": None, "r2": "r1"}


async def test_no_messages_are_nothing(session: Session) -> None:
    """An empty list writes nothing and returns nothing."""
    assert await session.append_messages([]) == []
    assert await session.version() == 0


async def test_any_iterable_will_do(session: Session) -> None:
    """Messages may come as a tuple or one by one."""
    await session.append_messages((said("m1"), said("m2")))
    await session.append_messages(said(name) for name in ("m3", "m4"))  # type: ignore[arg-type]
    assert await session.get_path_length() == 4


@pytest.mark.parametrize("messages", [None, 5, "m1", b"m1", said("m1"), Message(role="user", parts=[])])
async def test_what_is_no_list_is_refused(session: Session, messages: object) -> None:
    """One message, a text, or anything else that is no list of messages is refused."""
    with pytest.raises(InvalidArgumentError):
        await session.append_messages(messages)  # type: ignore[arg-type]


async def test_one_bad_message_fails_all(store: Store, session: Session) -> None:
    """When one message of a list cannot be stored, none is."""
    await session.append_message(said("m0"))
    bad = [
        ({"id": "x", "role": "user"}, InvalidMessageError),
        ({"id": "x", "role": "user", "parts": [{"type": "text", "text": {1}}]}, InvalidMessageError),
        (said("x" * 600), LimitExceededError),
        (said("m0", "changed"), DuplicateMessageError),
        (said("m1", "again, otherwise"), DuplicateMessageError),
        (None, InvalidMessageError),
    ]
    for message, error in bad:
        with pytest.raises(error):
            await session.append_messages([said("m1"), said("m2"), message, said("m3")])  # type: ignore[list-item]
    with pytest.raises(ParentNotFoundError):
        await session.append_messages([said("m1"), said("m2")], "nope")
    assert await log_of(store) == [("chat", 1, "message_appended")]
    assert await session.search("again") == []


async def test_list_again_is_known(store: Store, session: Session) -> None:
    """The same list again writes nothing and returns the first results."""
    messages = [said("m1"), said("m2"), said("m3")]
    first = await session.append_messages(messages)
    again = await session.append_messages(messages)
    assert [(r.message.id, r.inserted, r.version, r.position) for r in again] == [
        (r.message.id, False, r.version, r.position) for r in first
    ]
    assert len(await log_of(store)) == 3


async def test_whole_conversation_sent_back_with_more(session: Session) -> None:
    """In a list of known and new messages the new ones go under the known one before them."""
    await session.append_messages([said("u1"), said("a1")])
    results = await session.append_messages([said("u1"), said("a1"), said("u2"), said("a2")])
    assert [(r.inserted, r.version) for r in results] == [(False, 1), (False, 2), (True, 3), (True, 4)]
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2"]


async def test_new_messages_go_under_the_known_one_not_the_tip(session: Session) -> None:
    """A list that begins with a known message continues from that one, wherever the latest leaf is."""
    await chain(session, "u1", "a1", "u2", "a2")
    await session.append_messages([said("u1"), said("a1x")])
    assert await stored_parents(session) == {"u1": None, "a1": "u1", "u2": "a1", "a2": "u2", "a1x": "u1"}
    assert ids(await session.get_history()) == ["u1", "a1x"]


async def test_known_message_in_another_place_is_refused(store: Store, session: Session) -> None:
    """A known message that stands in a list after another than its parent is refused with the whole list."""
    await chain(session, "u1", "a1", "u2")
    for messages in ([said("new"), said("a1")], [said("u2"), said("u1")], [said("u1"), said("u2")]):
        with pytest.raises(DuplicateMessageError):
            await session.append_messages(messages)
    assert len(await log_of(store)) == 3


async def test_repeat_inside_a_list_is_refused(store: Store, session: Session) -> None:
    """An id that is twice in one list is refused whole, with equal content too (CON-4)."""
    for twice in (said("m1"), said("m1", "other")):
        with pytest.raises(DuplicateMessageError):
            await session.append_messages([said("m1"), said("m2"), twice])
    assert await log_of(store) == []


async def test_list_again_is_known_whatever_version_it_expects(url: str) -> None:
    """A list again is the first result, with the old and the right version, after a restart and a summary (CON-4)."""
    messages = [said("e1"), said("e2")]
    async with open_store(url) as store:
        first = await StoredSession(store, "s").append_messages(messages, expected_version=0)
    async with open_store(url) as store:
        session = StoredSession(store, "s")
        for summarised in (False, True):
            if summarised:
                await session.add_compaction("S", "e1", "e2")
            before = await log_of(store)
            for expected in (0, await session.version(), None):
                again = await session.append_messages(messages, expected_version=expected)
                assert [(r.inserted, r.version, r.position) for r in again] == [
                    (False, r.version, r.position) for r in first
                ]
            assert await log_of(store) == before


async def test_partial_overlap_with_other_content_is_refused(store: Store, session: Session) -> None:
    """A retried list whose known part has changed is refused whole, also after a restart (CON-4)."""
    await session.append_messages([said("e1"), said("e2")])
    for messages in ([said("e1"), said("e2", "e3")], [said("e1", "e0"), said("e2")], [said("e0"), said("e2")]):
        with pytest.raises(DuplicateMessageError):
            await session.append_messages(messages)
    assert len(await log_of(store)) == 2


async def test_repeat_is_known_after_a_restart_and_elsewhere_unknown(url: str) -> None:
    """Ids are remembered as long as their session, across restarts, and mean nothing in another session (CON-4)."""
    messages = [said("e1"), said("e2")]
    async with open_store(url) as store:
        first = await Session.create(store).for_session("s").append_messages(messages)
    async with open_store(url) as store:
        again = await Session.create(store).for_session("s").append_messages(messages)
        assert [(r.inserted, r.position) for r in again] == [(False, r.position) for r in first]
        other = await Session.create(store).for_session("t").append_messages([said("e2"), said("e1")])
        assert all(result.inserted for result in other)


async def test_messages_without_ids_get_new_ones(session: Session) -> None:
    """Messages without ids are all new, each time they are given."""
    one = {"role": "user", "parts": []}
    first = await session.append_messages([one, one])
    second = await session.append_messages([one, one])
    assert len({result.message.id for result in first + second}) == 4
    assert await session.get_path_length() == 4
    assert "id" not in one


async def test_many_appends_in_one_group_see_each_other(session: Session) -> None:
    """A message can be the parent of, and a repeat is known to, appends that are written in the same group."""
    count = 200
    names = [f"m{number}" for number in range(count)]
    appends = [session.append_message(said(name), names[at - 1] if at else None) for at, name in enumerate(names)]
    repeats = [session.append_message(said(name)) for name in names]
    results = await asyncio.gather(*appends, *repeats)
    assert [result.inserted for result in results] == [True] * count + [False] * count
    assert [result.version for result in results] == [*range(1, count + 1)] * 2
    assert ids(await session.get_history()) == names
    assert len(await collect(session.events())) == count
