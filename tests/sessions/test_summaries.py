"""Summaries in a tree: shown once, on the paths they belong to, in the order of the log."""

from __future__ import annotations

import datetime as dt

import pytest

from eventstore import InvalidCompactionError, MessageDeletedError, ReservedIdError
from replay import rebuild, verify
from sessions import Message, Session, Store, StoredSession, open_store
from tests.sessions.talk import chain, collect, ids, log_of, said, stored_parents

NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


def texts(messages: list[Message]) -> list[str]:
    """Return the ids of messages, and of summaries what they say."""
    return [message.text if message.id.startswith("compaction_") else message.id for message in messages]


async def test_summary_that_comes_back_is_not_stored(store: Store, session: Session) -> None:
    """A history with a summary in it can be sent back without the summary becoming a message (CMP-1)."""
    await chain(session, *(f"m{n}" for n in range(1, 11)))
    compaction = await session.add_compaction("S", "m2", "m8")
    history = await session.get_history()
    assert texts(history) == ["m1", "S", "m9", "m10"]
    before = await log_of(store)
    for message in history:
        for call in (session.append_message, session.upsert_message):
            if message.id.startswith("compaction_"):
                with pytest.raises(ReservedIdError):
                    await call(message)
            else:
                result = await call(message)
                assert result.inserted is False
    with pytest.raises(ReservedIdError):
        await session.append_messages(history)
    assert await log_of(store) == before
    await session.append_message(said("m11"))
    await session.append_message(said("m12"), f"compaction_{compaction.id}")
    found = await stored_parents(session)
    assert (found["m11"], found["m12"]) == ("m10", "m8")
    assert texts(await session.get_history()) == ["m1", "S", "m12"]
    assert texts(await session.get_history("m11")) == ["m1", "S", "m9", "m10", "m11"]
    await session.add_compaction("S again", "m2", "m10")
    for _ in range(2):
        assert texts(await session.get_history("m11")) == ["m1", "S again", "m11"]
        assert texts(await session.get_history("m12")) == ["m1", "S", "m12"]
        assert await session.search("S") == []
        assert [node.message.id for node in await collect(session.tree())] == [f"m{n}" for n in range(1, 13)]
        await rebuild(store)
    assert (await verify(store)).problems == []


async def test_append_below_a_summary_can_be_repeated(session: Session) -> None:
    """A retry of an append below a summary is the same append, by the summary's id or the message's (CMP-1)."""
    await chain(session, "m1", "m2", "m3", "m4")
    overlay = f"compaction_{(await session.add_compaction('S', 'm1', 'm3')).id}"
    first = await session.append_message(said("x"), overlay)
    for parent in (overlay, "m3"):
        again = await session.append_message(said("x"), parent)
        assert (again.inserted, again.version) == (False, first.version)
    await session.delete_messages(["m3"])
    await session.append_message(said("y"), overlay)
    assert (await stored_parents(session))["y"] == "m2"


async def test_summaries_of_two_branches_do_not_meet(session: Session, store: Store) -> None:
    """A newer summary of a sibling branch hides neither the older one nor the messages that both share (CMP-2)."""
    await chain(session, *(f"m{n}" for n in range(1, 6)))
    for branch in "ab":
        await session.append_messages([said(f"m{n}{branch}") for n in (6, 7, 8)], "m5")
    await session.add_compaction("SA", "m2", "m7a")
    await session.add_compaction("SB", "m2", "m7b")
    for _ in range(2):
        assert texts(await session.get_history("m8a")) == ["m1", "SA", "m8a"]
        assert texts(await session.get_history("m8b")) == ["m1", "SB", "m8b"]
        assert ids(await session.get_history("m5")) == ["m1", "m2", "m3", "m4", "m5"]
        assert ids(await session.get_history("m6a")) == ["m1", "m2", "m3", "m4", "m5", "m6a"]
        await rebuild(store)


async def test_the_newest_of_overlapping_summaries_is_shown(session: Session) -> None:
    """Of summaries that overlap on a path only the newest is applied, whole or in part covered (CMP-2)."""
    await chain(session, *(f"m{n}" for n in range(1, 9)))
    await session.add_compaction("old", "m2", "m4")
    await session.add_compaction("apart", "m7", "m7")
    await session.add_compaction("new", "m4", "m6")
    assert texts(await session.get_history()) == ["m1", "m2", "m3", "new", "apart", "m8"]
    await session.add_compaction("newest", "m3", "m7")
    assert texts(await session.get_history()) == ["m1", "m2", "newest", "m8"]
    assert texts(await session.get_history("m6")) == ["m1", "m2", "m3", "new"]
    assert texts(await session.get_history("m4")) == ["m1", "old"]


async def test_order_is_by_the_log_when_the_clock_stands_still(url: str) -> None:
    """With a frozen clock two summaries of one range, replies and pages come in log order on every read (ORD-1)."""
    async with open_store(url, clock=lambda: NOON, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        names = [f"{who}{n}" for n in range(200) for who in "ua"]
        await session.append_messages([said(name) for name in names])
        for reply in ("x", "y", "z"):
            await session.append_message(said(reply), "u100")
        await session.select_leaf("a199")
        first = await session.add_compaction("first", "u1", "a9")
        second = await session.add_compaction("second", "u1", "a9")
        assert first.created_at == second.created_at == NOON
        for _ in range(3):
            history = await session.get_history()
            assert texts(history) == ["u0", "a0", "second", *names[20:]]
            assert texts(await session.get_history(limit=5)) == names[-5:]
            assert texts(await collect(session.history(newest_first=True))) == texts(history)[::-1]
            assert [one.id for one in await session.get_compactions()] == [first.id, second.id]
            assert ids(await session.get_branches("u100")) == ["a100", "x", "y", "z"]
            latest = await session.get_latest_leaf()
            assert latest is not None
            assert latest.id == "a199"
            await rebuild(store)


@pytest.mark.parametrize(
    ("first", "last", "summary"),
    [
        ("m3", "m1", "S"),
        ("m1", "x", "S"),
        ("x", "m2", "S"),
        ("m2", "r", "S"),
        ("nope", "m2", "S"),
        ("m1", "nope", "S"),
        ("gone", "m3", "S"),
        ("m1", "gone", "S"),
        ("m1", "m2", ""),
        ("m1", "m2", "   "),
        ("m1", "m2", " \n\t\u3000"),
    ],
)
async def test_summary_that_fits_nothing_is_refused(
    store: Store, session: Session, first: str, last: str, summary: str
) -> None:
    """A blank summary, or one whose ends are unknown, gone, reversed or on two branches, is no event (CMP-6)."""
    await chain(session, "m1", "m2", "m3", "gone")
    await session.append_message(said("x"), None)
    await session.append_message(said("r"), "m1")
    await session.delete_messages(["gone"])
    before = await log_of(store)
    with pytest.raises(InvalidCompactionError) as raised:
        await session.add_compaction(summary, first, last)
    assert raised.value.session_id == "chat"
    assert await log_of(store) == before
    assert await session.get_compactions() == []


async def test_summary_stands_for_what_is_left(store: Store, session: Session) -> None:
    """Deleting an end or a member of a summarised range keeps the summary, and deleting all of it removes it."""
    await chain(session, *(f"m{n}" for n in range(1, 8)))
    await session.add_compaction("S", "m2", "m6")
    for gone in ("m2", "m6", "m4"):
        await session.delete_messages([gone])
        assert texts(await session.get_history()) == ["m1", "S", "m7"]
        assert ids(await session.get_history("m3")) == ["m1", "m3"]
    assert await session.get_path_length() == 4
    await session.delete_messages(["m3", "m5"])
    assert texts(await session.get_history()) == ["m1", "m7"]
    await session.delete_messages(["m7", "m1"])
    assert await session.get_history() == []
    await rebuild(store)
    assert await session.get_history() == []


async def test_update_inside_marks_the_summary_stale(store: Store, session: Session) -> None:
    """A changed message marks every summary that it was part of, and nothing else does."""
    await chain(session, *(f"m{n}" for n in range(1, 8)))
    for summary, first, last in (("one", "m1", "m3"), ("two", "m3", "m5")):
        await session.add_compaction(summary, first, last)
    await session.update_message(said("m6", "changed"))
    await session.update_message(said("m2", "hello"))
    await session.delete_messages(["m4"])
    assert [one.stale for one in await session.get_compactions()] == [False, False]
    await session.update_message(said("m2", "changed"))
    assert [one.stale for one in await session.get_compactions()] == [True, False]
    await session.upsert_message(said("m3", "changed"))
    assert [one.stale for one in await session.get_compactions()] == [True, True]
    await session.add_compaction("three", "m1", "m3")
    for _ in range(2):
        assert [one.stale for one in await session.get_compactions()] == [True, True, False]
        assert texts(await session.get_history()) == ["three", "m5", "m6", "m7"]
        await rebuild(store)


async def test_clearing_takes_the_summaries_along(store: Store, session: Session) -> None:
    """After a session is cleared no summary is left, and none comes back for messages of the same ids."""
    await chain(session, "m1", "m2", "m3")
    await session.add_compaction("S", "m1", "m2")
    await session.clear_messages()
    assert await session.get_compactions() == []
    await chain(session, "m1", "m2", "m3")
    assert ids(await session.get_history()) == ["m1", "m2", "m3"]
    assert await StoredSession(store, "chat").token_estimate() == 3 * 6
    assert (await verify(store)).problems == []


async def test_raw_messages_stay_readable(store: Store, session: Session) -> None:
    """What is summarised is still there by its id, in the tree and in a history without overlays."""
    await chain(session, "m1", "m2", "m3")
    await session.add_compaction("S", "m1", "m2")
    raw = StoredSession(store, "chat")
    assert ids(await collect(raw.history(overlays=False))) == ["m1", "m2", "m3"]
    assert ids(await collect(raw.history(overlays=False, newest_first=True))) == ["m3", "m2", "m1"]
    assert (await session.get_message("m1")) is not None
    assert [node.message.id for node in await collect(session.tree())] == ["m1", "m2", "m3"]
    assert [hit.id for hit in await session.search("hello", order="newest")] == ["m3", "m2", "m1"]


async def test_spent_id_stays_spent_behind_a_summary(session: Session) -> None:
    """A summary that stands for a deleted message does not free its id."""
    await chain(session, "m1", "m2", "m3")
    await session.add_compaction("S", "m1", "m2")
    await session.delete_messages(["m1"])
    with pytest.raises(MessageDeletedError):
        await session.append_message(said("m1"))
    assert texts(await session.get_history()) == ["S", "m3"]
