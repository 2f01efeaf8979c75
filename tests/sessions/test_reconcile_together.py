"""Lists of several clients at once, and beside other changes: decided where they are written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventstore import MessageDeletedError
from replay import rebuild, verify
from sessions import ReconcileResult, Session, Store, open_store
from tests.replay.dumps import dumps
from tests.sessions.clients import answered, talked
from tests.sessions.processes import finish, start
from tests.sessions.talk import collect, ids, said
from tests.sessions.test_reconcile_outputs import answer, asked, done, parts_of, tool
from tests.sessions.tool_talk import text

RECONCILER = Path(__file__).with_name("reconcilers.py")


@pytest.fixture
async def pair(url: str) -> AsyncIterator[tuple[Session, Session]]:
    """Return one session of two stores on one file, as two processes have it."""
    async with open_store(url, synchronous="normal") as one, open_store(url, synchronous="normal") as two:
        yield Session.create(one).for_session("chat"), Session.create(two).for_session("chat")


async def test_one_list_many_times_at_once(store: Store, session: Session) -> None:
    """A list that comes many times at the same moment is stored once, also without ids of its own (CON-4, TREE-6)."""
    known = await talked(session)
    unnamed: dict[str, Any] = {"role": "user", "parts": [text("more and more")]}
    results = await asyncio.gather(*(session.reconcile([*known, unnamed, answered("a3")]) for _ in range(9)))
    assert sorted(result.inserted for result in results) == [*[0] * 8, 2]
    assert await session.get_path_length() == 6
    assert (await verify(store)).problems == []


async def test_lists_beside_other_changes_in_a_group(session: Session) -> None:
    """Lists that are written in one group with other changes see what those before them did, and are seen by others."""
    outcomes = await asyncio.gather(
        session.append_messages([said("u1"), answer("a1", tool("c1"))]),
        session.reconcile([said("u1"), answer("x", done("c1")), said("u2")]),
        session.append_message(answer("a2", tool("c2"))),
        session.update_message(answer("a2", done("c2"))),
        session.reconcile([said("u1"), answer("a1", tool("c1")), said("u2"), answer("y", tool("c2")), said("u3")]),
        session.delete_messages(["u2"]),
        session.reconcile(
            [said("u1"), answer("a1", done("c1")), said("u2"), answer("a2", done("c2")), said("u4", "or")]
        ),
        session.append_message(said("u2")),
        session.clear_messages(),
        session.reconcile([said("u2"), said("u1")]),
        return_exceptions=True,
    )
    assert outcomes[1] == ReconcileResult(1, 1, 1)
    assert outcomes[4] == ReconcileResult(1, 0, 4)
    assert outcomes[6] == ReconcileResult(1, 0, 4)
    assert isinstance(outcomes[7], MessageDeletedError)
    assert outcomes[9] == ReconcileResult(2, 0, 0)
    assert ids(await session.get_history()) == ["u2", "u1"]


async def test_list_from_before_another_process_wrote(pair: tuple[Session, Session]) -> None:
    """What another process stored since the client read stands, whatever the client's copy of it says (TREE-6)."""
    mine, theirs = pair
    question = await asked(mine, tool("c1"), tool("c2"))
    stale = [question, answer("a1", tool("c1"), done("c2", "mine")), said("u2")]
    await theirs.update_message(answer("a1", done("c1", "theirs"), tool("c2"), text("Four.")))
    await theirs.append_message(said("v2", "and?"))
    assert await mine.reconcile(stale) == ReconcileResult(1, 1, 1)
    assert await theirs.reconcile(stale) == ReconcileResult(0, 0, 3)
    for session in pair:
        assert await parts_of(session) == [done("c1", "theirs"), done("c2", "mine"), text("Four.")]
        assert ids(await session.get_branches("a1")) == ["v2", "u2"]
        assert ids(await session.get_history()) == ["u1", "a1", "u2"]


async def test_cancelled_list_is_stored_or_not(pair: tuple[Session, Session]) -> None:
    """A list cancelled after any number of ticks is there whole or not at all, and blocks nobody (SQL-1)."""
    mine, theirs = pair
    for n in range(20):
        known = [said(f"r{n}"), answered(f"s{n}")]
        await mine.append_messages(known, None)
        writing = asyncio.ensure_future(mine.reconcile([known[0], answered(f"s{n}", "No"), said(f"t{n}")]))
        for _ in range(n):
            await asyncio.sleep(0.0001)
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing
        async with asyncio.timeout(1):
            await theirs.append_message(said(f"other{n}"), f"s{n}")
        changed = await theirs.get_message(f"s{n}")
        assert changed is not None
        assert (changed.text == "No") == (await theirs.get_message(f"t{n}") is not None)


@pytest.mark.parametrize(
    ("processes", "count"), [(2, 4), pytest.param(6, 40, marks=pytest.mark.soak)], ids=["few", "many"]
)
async def test_processes_that_send_lists(url: str, processes: int, count: int) -> None:
    """Lists of several processes become branches of one session in which nothing is lost or twice (CON-1)."""
    clients = [{"name": f"p{n}", "session_id": "chat", "count": count} for n in range(processes)]
    finish(await asyncio.to_thread(start, url, clients, script=RECONCILER))
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        assert len(await collect(session.tree())) == 1 + processes * count * 2
        for n in range(processes):
            history = await session.get_history(f"p{n}-a{count - 1}")
            assert ids(history) == ["u", *(f"p{n}-{role}{k}" for k in range(count) for role in "ua")]
            assert [part["output"] for message in history[2::2] for part in message.parts] == [*range(count)]
        before = await dumps(store)
        await rebuild(store)
        assert await dumps(store) == before
        assert (await verify(store)).problems == []
