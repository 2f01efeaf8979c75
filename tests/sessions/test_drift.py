"""Projections under change: what is derived never drifts from the log, however often events come."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventstore.envelope import Envelope
from eventstore.group import apply
from eventstore.ports import Projection, Tx
from projections import SearchIndex
from replay import rebuild, verify
from sessions import Session, Store, open_store
from tests.replay.dumps import dumps
from tests.sessions.processes import finish, start
from tests.sessions.talk import chain, collect, ids, said


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a database file."""
    return tmp_path / "chats.db"


def integrity(path: Path) -> None:
    """Have the text index and the database check themselves; they raise when something is wrong."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO assistant_fts (assistant_fts, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def found(session: Session, word: str) -> list[str]:
    """Return the ids of the hits, newest first."""
    return [hit.id for hit in await session.search(word, order="newest")]


async def test_index_follows_updates_and_deletions(path: Path) -> None:
    """No word of an earlier content or of a deleted message is found, and the index passes its check (FTS-6)."""
    async with open_store(f"sqlite:///{path}", synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await session.append_message(said("m1", "alpha"))
        await session.update_message(said("m1", "beta"))
        assert (await found(session, "alpha"), await found(session, "beta")) == ([], ["m1"])
        integrity(path)
        await session.delete_messages(["m1"])
        assert await found(session, "beta") == []
        await session.append_message(said("m1b", "alpha"))
        assert (await found(session, "alpha"), await found(session, "beta")) == (["m1b"], [])
        for text in ("alpha alpha beta", "", "beta", '" *', "gamma alpha", ""):
            await session.update_message(said("m1b", text))
            for word in ("alpha", "beta", "gamma"):
                assert await found(session, word) == (["m1b"] if word in text else [])
        integrity(path)
        before = await dumps(store)
        await rebuild(store, ["search_index"])
        assert await dumps(store) == before
        assert (await verify(store)).problems == []
    integrity(path)


async def test_broken_index_is_made_again_without_touching_messages(path: Path) -> None:
    """An index that lost its rows is filled from the log alone, updates and deletions included (FTS-6)."""
    async with open_store(f"sqlite:///{path}", synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await session.append_messages([said(f"m{n}", f"alpha {n}") for n in range(20)])
        await session.update_message(said("m3", "beta"))
        await session.delete_messages(["m4", "m5"])
        await store.log.database.write(SearchIndex().catch_up)
        before = await dumps(store)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("INSERT INTO assistant_fts (assistant_fts) VALUES ('delete-all')")
            connection.commit()
        assert not (await verify(store)).ok
        await rebuild(store, ["search_index"])
        assert await dumps(store) == before
        assert await found(session, "beta") == ["m3"]
        assert len(await found(session, "alpha")) == 17
    integrity(path)


async def test_index_of_a_file_that_many_open_at_once(path: Path) -> None:
    """Five processes that open a fresh file at once leave an index that passes its check and finds all (FTS-6)."""
    url = f"sqlite:///{path}"
    writers = [{"name": f"p{n}", "sessions": ["new"], "count": 4, "together": False} for n in range(5)]
    finish(await asyncio.to_thread(start, url, writers, wait_until_open=False))
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("new")
        for n in range(5):
            assert sorted(await found(session, f"p{n}")) == [f"p{n}-{k}" for k in range(4)]
        before = await dumps(store)
        await rebuild(store, ["search_index"])
        assert await dumps(store) == before
        assert (await verify(store)).problems == []
    integrity(path)


async def test_clearing_empties_the_index(store: Store, session: Session) -> None:
    """After a session is cleared none of its words is found, and those of others are (FTS-6)."""
    other = Session.create(store).for_session("other")
    for one in (session, other):
        await one.append_messages([said(f"m{n}", "alpha") for n in range(3)])
    await session.update_message(said("m1", "beta"))
    await session.clear_messages()
    for word in ("alpha", "beta"):
        assert await found(session, word) == []
    assert await found(other, "alpha") == ["m2", "m1", "m0"]
    await session.append_message(said("m1", "beta"))
    assert await found(session, "beta") == ["m1"]
    assert (await verify(store)).problems == []


async def test_updates_of_a_streaming_answer_are_one_message(store: Store, session: Session) -> None:
    """Three hundred updates of an answer, a question in between, leave one row with the last content (LOG-6)."""
    await chain(session, "u1", "a1")
    text = ""
    for n in range(300):
        text += f"word{n} "
        await session.update_message({"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": text}]})
        if n == 150:
            await session.append_message(said("u2", "in the middle"))
    for _ in range(2):
        history = await session.get_history()
        assert ids(history) == ["u1", "a1", "u2"]
        assert history[1].text == text
        assert await session.get_path_length() == 3
        assert [node.message.id for node in await collect(session.tree())] == ["u1", "a1", "u2"]
        assert await found(session, "word0 word150 word299") == ["a1"]
        await rebuild(store)
    rows = (await dumps(store))["message_tree"]
    assert len([row for row in rows if row[0] == "assistant_messages"]) == 3
    assert (await verify(store)).problems == []


async def redelivered(store: Store, count: int) -> None:
    """Hand the last events of the log to every projection once more."""
    log: list[Envelope] = [envelope async for envelope in store.log.read_all()]

    def again(projection: Projection) -> Callable[[Tx], None]:
        return lambda tx: apply(tx, projection, log[-count:])

    for projection in store.log.projections:
        await store.log.database.write(again(projection))


@pytest.mark.parametrize("count", [1, 2, 3, 50])
async def test_events_that_come_again_change_nothing(store: Store, session: Session, count: int) -> None:
    """A projection that is given events a second time is as it was (LOG-6)."""
    await chain(session, "m1", "m2", "m3", "m4", "m5")
    changes: list[Callable[[], Any]] = [
        lambda: session.append_message(said("x", "other"), "m2"),
        lambda: session.update_message(said("m3", "changed")),
        lambda: session.add_compaction("S", "m2", "m4"),
        lambda: session.update_message(said("m3", "changed again")),
        lambda: session.delete_messages(["m4", "m5"]),
        lambda: session.select_leaf("m3"),
        lambda: session.delete_messages(["x"]),
        lambda: session.upsert_message(said("y")),
        session.clear_messages,
        lambda: session.append_message(said("m1", "anew")),
    ]
    for change in changes:
        await change()
        before = await dumps(store)
        await redelivered(store, count)
        assert await dumps(store) == before
    assert (await verify(store)).problems == []


async def test_change_that_failed_between_event_and_projection_is_not_there(url: str) -> None:
    """When a projection fails, neither the event nor what the others made of it is there (LOG-6)."""

    class Failing:
        name = "failing"
        revision = 1
        handles = ("message_updated", "messages_deleted", "messages_cleared", "compaction_added")

        def create(self, tx: Tx) -> None: ...

        def drop(self, tx: Tx) -> None: ...

        def reset(self, tx: Tx) -> None: ...

        def apply(self, tx: Tx, envelopes: Any) -> None:  # noqa: ARG002 - as the log calls it
            raise ValueError("on purpose")

    async with open_store(url, synchronous="normal", projections=[Failing()]) as store:
        session = Session.create(store).for_session("chat")
        await session.append_messages([said(f"m{n}") for n in range(5)])
        before = await dumps(store)
        outcomes = await asyncio.gather(
            session.update_message(said("m1", "changed")),
            session.append_message(said("m5")),
            session.delete_messages(["m2"]),
            session.add_compaction("S", "m1", "m2"),
            session.clear_messages(),
            return_exceptions=True,
        )
        assert [type(outcome).__name__ for outcome in outcomes] == [
            "ProjectionError",
            "AppendResult",
            *["ProjectionError"] * 3,
        ]
        await session.delete_messages(["nope"])
        assert len(await session.get_history()) == await session.version() == 6
        assert (await dumps(store)) != before
        assert (await verify(store)).problems == []
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await session.update_message(said("m1", "changed"))
        assert await found(session, "changed") == ["m1"]
        assert (await verify(store)).problems == []
