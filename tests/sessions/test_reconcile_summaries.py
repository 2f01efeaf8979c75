"""Summaries in a client's list of messages."""

from __future__ import annotations

from typing import Any

from replay import verify
from sessions import (
    CompactResult,
    Message,
    ReconcileResult,
    Session,
    Store,
)
from tests.sessions.clients import answered, twice
from tests.sessions.talk import chain, log_of, said, stored_parents


async def test_summary_that_comes_back(store: Store, session: Session) -> None:
    """A summary in a list is neither stored nor a change, and news behind it hang on real messages (CMP-1)."""
    await chain(session, *(f"m{n}" for n in range(1, 11)))
    await session.add_compaction("S", "m2", "m8")
    history: list[Any] = list(await session.get_history())
    assert [message.text for message in history[:3]] == ["hello", "S", "hello"]
    assert await twice(session, [*history, said("m11")]) == ReconcileResult(1, 0, 4)
    assert await twice(session, [*history[:2], said("b9", "other")]) == ReconcileResult(1, 0, 2)
    changed = {**history[1].to_dict(), "parts": []}
    assert await twice(session, [history[0], changed, said("c9", "another")]) == ReconcileResult(1, 0, 2)
    found = await stored_parents(session)
    assert (found["m11"], found["b9"], found["c9"]) == ("m10", "m8", "m8")
    await session.add_compaction("S again", "m2", "m10")
    shown = await session.get_history("m11")
    assert [message.text for message in shown] == ["hello", "S again", "hello"]
    assert await twice(session, [*history, *shown[1:]]) == ReconcileResult(0, 0, 6)
    assert await session.search("S") == []
    assert [node.message.id async for node in session.tree()] == [*(f"m{n}" for n in range(1, 12)), "b9", "c9"]
    assert (await verify(store)).problems == []


async def test_messages_around_a_summary_under_other_ids(session: Session) -> None:
    """What stands before and behind a summary is found under a client's ids, and by its own id within (CMP-1)."""
    await session.append_messages([said(f"m{n}", f"{n}") for n in range(1, 7)])
    await session.add_compaction("S", "m2", "m4")
    summary = (await session.get_history())[1]
    seen = [said("x1", "1"), summary, said("x5", "5"), said("x6", "6")]
    assert await twice(session, [*seen, said("m7", "7")]) == ReconcileResult(1, 0, 4)
    assert await twice(session, [said("s", "0"), summary, said("x5", "5")]) == ReconcileResult(1, 0, 2)
    unfolded = [*(said(f"m{n}", f"{n}") for n in range(1, 8)), said("m8", "8")]
    assert await twice(session, unfolded) == ReconcileResult(1, 0, 7)
    assert [message.text for message in await session.get_history()] == ["1", "S", "5", "6", "7", "8"]
    assert (await stored_parents(session))["s"] is None


async def test_summary_that_nobody_knows(store: Store, session: Session) -> None:
    """A summary of another session, or of messages that are gone, is nothing, and nothing hangs on it (CMP-1)."""
    unknown = answered("compaction_gone", "They met.")
    assert await twice(session, [unknown]) == ReconcileResult(0, 0, 1)
    assert await log_of(store) == []
    assert await twice(session, [unknown, said("m1"), unknown, said("m2")]) == ReconcileResult(2, 0, 2)
    assert await stored_parents(session) == {"m1": None, "m2": "m1"}


async def test_list_that_makes_a_history_too_long(store: Store) -> None:
    """News that make the view too long have it compacted, and the list of before is still known (CMP-1)."""

    async def shorten(messages: list[Message], _context: object) -> CompactResult:
        return CompactResult(messages[0].id, messages[-2].id, "short")

    session = Session.create(store).for_session("chat").on_compaction(shorten).compact_after(60)
    given: list[Any] = [said(f"m{n}", "many words that fill the view " * 3) for n in range(4)]
    assert await session.reconcile(given) == ReconcileResult(4, 0, 0)
    history = await session.get_history()
    assert [message.text for message in history[:-1]] == ["short"]
    assert await session.reconcile([*given, said("m4")]) == ReconcileResult(1, 0, 4)
    assert await session.reconcile([*history, said("m4")]) == ReconcileResult(0, 0, 3)
