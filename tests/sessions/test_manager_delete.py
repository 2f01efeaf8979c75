from __future__ import annotations

import asyncio
import collections
import datetime as dt
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eventstore import InvalidArgumentError, ProjectionError, SessionDeletedError
from eventstore.envelope import Envelope
from eventstore.events import SessionDeleted
from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.statements import Row
from projections import Projection
from replay import rebuild, verify
from sessions import SessionManager, Store, import_file, open_store
from tests.replay.dumps import dumps
from tests.sessions.talk import collect, ids, log_of, said

WORD = "ZQX7"


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a manager of the store."""
    return SessionManager(store)


async def tell(manager: SessionManager, session_id: str) -> None:
    """Create a session that says the word wherever something can be said."""
    await manager.create(f"About {WORD}", id=session_id, model=WORD, source=WORD)
    session = manager.get_session(session_id)
    tool = {"type": "tool-look", "toolCallId": "1", "input": {"q": WORD}, "output": {"found": [WORD]}}
    await session.append_messages([said("m1", WORD), said("m2", "so"), said("m3"), said("m4", f"said {WORD}")])
    await session.append_message({"id": "x", "role": WORD, "parts": [tool, {"type": "text", "text": WORD}]}, "m1")
    await session.append_message(said("root"), None)
    await session.update_message(said("m2", f"so {WORD}"))
    await session.delete_messages(["m3"])
    await session.add_compaction(f"{WORD} in short", "m1", "m2")
    await manager.add_usage(session_id, 1, 2, 0.5)


async def rows_with(store: Store, *texts: str) -> list[Row]:
    """Return the rows of all projections in which one of some texts stands, whatever its case."""
    found = [row for rows in (await dumps(store)).values() for row in rows]
    return [row for row in found if any(text.lower() in str(cell).lower() for cell in row for text in texts)]


async def rows_of(store: Store, session_id: str) -> list[Row]:
    """Return all rows of projections that belong to the stream of a session."""
    stream_no, _ = await store.log.read(lambda tx: find_stream(tx, session_id))
    own = [projection for projection in store.log.projections if isinstance(projection, Projection)]
    return await store.log.read(lambda tx: [row for one in own for row in one.dump(tx, stream_no)])


def check_marks(rows: list[Row]) -> None:
    """Check that what is left of a session are marks: a row of numbers in each table, at the most."""
    tables = [row[0] for row in rows]
    assert {"deleted_sessions", "message_trees"} <= set(tables)
    assert len(tables) == len(set(tables))
    assert all(type(cell) is int for row in rows for cell in row[1:])


async def test_deletion_leaves_nothing_that_is_derived(store: Store, manager: SessionManager) -> None:
    """After a deletion nothing of the session is found or stored but in the log, and a mark that it is gone (PRV-1)."""
    await tell(manager, "s")
    await manager.create("other", id="t")
    await manager.append("t", said("m1", "other words"))
    others, kept = await rows_of(store, "t"), await manager.get("t")
    assert await manager.search(WORD) != []
    await manager.delete("s")
    assert await manager.search(WORD) == await manager.get_session("s").search(WORD) == []
    assert await manager.search("so") == []
    assert await rows_with(store, WORD) == []
    check_marks(await rows_of(store, "s"))
    assert await manager.get("s") is None
    assert await manager.list() == [kept]
    assert await rows_of(store, "t") == others
    assert [hit.session_id for hit in await manager.search("other")] == ["t"]
    assert (await log_of(store))[-1] == ("s", 12, "session_deleted")
    assert (await verify(store)).problems == []
    before = await dumps(store)
    for name in before:
        await rebuild(store, [name])
        assert await dumps(store) == before
    await rebuild(store)
    assert await dumps(store) == before
    assert (await verify(store)).problems == []


async def test_a_deleted_session_reads_as_an_empty_one(manager: SessionManager) -> None:
    """Reading a deleted session gives what reading an unknown one gives."""
    await tell(manager, "s")
    await manager.delete("s")
    for name in ("s", "nope"):
        session = manager.get_session(name)
        assert await session.get_history() == await manager.get_history(name) == await collect(session.tree()) == []
        assert await manager.get_message_count(name) == 0
        assert await manager.get_compactions(name) == await manager.get_branches(name, "m1") == []
        assert (await session.get_message("m1"), await session.get_latest_leaf()) == (None, None)
    assert [envelope.type for envelope in await collect(manager.get_session("s").events())][-1] == "session_deleted"


Write = Callable[[SessionManager], Awaitable[Any]]
LONG_AGO = dt.datetime(2001, 2, 3, tzinfo=dt.UTC)
WRITES: dict[str, Write] = {
    "create": lambda manager: manager.create("new", id="s"),
    "rename": lambda manager: manager.rename("s", "new"),
    "rename to the old name": lambda manager: manager.rename("s", f"About {WORD}"),
    "add_usage": lambda manager: manager.add_usage("s", 1, 1, 1.0),
    "fork": lambda manager: manager.fork("s", "m1", "F"),
    "compact_and_split": lambda manager: manager.compact_and_split("s", "S"),
    "append": lambda manager: manager.append("s", said("new")),
    "append again": lambda manager: manager.append("s", said("m1", WORD)),
    "append below": lambda manager: manager.append("s", said("new"), "m1"),
    "append as a root": lambda manager: manager.append("s", said("new"), None),
    "append all": lambda manager: manager.append_all("s", [said("new"), said("newer")]),
    "upsert": lambda manager: manager.upsert("s", said("m1", "new")),
    "upsert new": lambda manager: manager.upsert("s", said("new")),
    "delete_messages": lambda manager: manager.delete_messages("s", ["m1"]),
    "clear_messages": lambda manager: manager.clear_messages("s"),
    "add_compaction": lambda manager: manager.add_compaction("s", "S", "m1", "m2"),
    "append_message": lambda manager: manager.get_session("s").append_message(said("new")),
    "append_messages": lambda manager: manager.get_session("s").append_messages([said("new"), said("newer")]),
    "update_message": lambda manager: manager.get_session("s").update_message(said("m1", "new")),
    "upsert_message": lambda manager: manager.get_session("s").upsert_message(said("new")),
    "import_message": lambda manager: manager.get_session("s").import_message(said("new"), None, LONG_AGO),
    "select_leaf": lambda manager: manager.get_session("s").select_leaf("m1"),
    "expected version": lambda manager: manager.get_session("s").append_message(said("new"), expected_version=12),
}
"""Every call that writes to the session "s"."""


@pytest.mark.parametrize("call", WRITES)
async def test_id_of_a_deleted_session_refuses_every_write(store: Store, manager: SessionManager, call: str) -> None:
    """Every write under the id of a deleted session raises and leaves nothing (PRV-1)."""
    await tell(manager, "s")
    await manager.delete("s")
    before, log = await dumps(store), await log_of(store)
    with pytest.raises(SessionDeletedError) as raised:
        await WRITES[call](manager)
    assert raised.value.session_id == "s"
    assert await log_of(store) == log
    assert await dumps(store) == before


async def test_writes_are_refused_in_every_store(url: str) -> None:
    """A deletion is seen by stores that were open before and by those that open later (PRV-1)."""
    async with open_store(url, synchronous="normal") as other:
        session = SessionManager(other).get_session("s")
        await session.append_message(said("m1"))
        async with open_store(url, synchronous="normal") as store:
            await SessionManager(store).delete("s")
        for store in (other, await open_store(url, synchronous="normal")):
            for name, write in WRITES.items():
                if name != "expected version":
                    with pytest.raises(SessionDeletedError):
                        await write(SessionManager(store))
        await store.close()
        assert len(await log_of(other)) == 2


async def test_writes_of_the_same_moment(store: Store, manager: SessionManager) -> None:
    """What is written in one group with a deletion is there before it, and refused after it."""
    await tell(manager, "s")
    outcomes = await asyncio.gather(
        manager.append("s", said("before", WORD)),
        manager.delete("s"),
        manager.append("s", said("after", WORD)),
        manager.create("again", id="s"),
        manager.delete("s"),
        manager.append("t", said("m1", "other")),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == [
        *("AppendResult", "NoneType", "SessionDeletedError", "SessionDeletedError", "NoneType", "AppendResult"),
    ]
    assert await rows_with(store, WORD) == []
    assert [info.id for info in await manager.list()] == ["t"]
    assert (await verify(store)).problems == []


async def test_deleting_again_does_nothing(store: Store, manager: SessionManager) -> None:
    """Deleting a session again, or an unknown one, writes nothing, and an unknown id stays free (PRV-1)."""
    await manager.append("s", said("m1"))
    await asyncio.gather(manager.delete("s"), manager.delete("s"), manager.delete("nope"))
    log = await log_of(store)
    assert [kind for _, _, kind in log] == ["message_appended", "session_deleted"]
    for name in ("s", "nope", "", "S"):
        await manager.delete(name)
    assert await log_of(store) == log
    assert (await manager.create("new", id="nope")).id == "nope"
    await manager.append("S", said("m1"))


async def test_session_without_messages_is_deleted(store: Store, manager: SessionManager) -> None:
    """A session of which only a name is known, or whose messages were cleared, is deleted as well."""
    await manager.create(WORD, id="s")
    await manager.append("t", said("m1"))
    await manager.clear_messages("t")
    for name in ("s", "t"):
        await manager.delete(name)
        with pytest.raises(SessionDeletedError):
            await manager.append(name, said("m1"))
    assert await rows_with(store, WORD) == []
    assert await manager.list() == []


async def test_relatives_stay(manager: SessionManager) -> None:
    """Forks and children of a deleted session stay, and still name it as their parent (PRV-1)."""
    await tell(manager, "s")
    fork = await manager.fork("s", "m4", "F")
    rest = await manager.compact_and_split("s", f"{WORD} again", "Rest")
    child = await manager.create("child", parent_session_id="s")
    before = [ids(await manager.get_history(one.id)) for one in (fork, rest)]
    await manager.delete("s")
    assert [await manager.get(one.id) for one in (fork, rest, child)] == [fork, rest, child]
    assert {one.parent_session_id for one in (fork, rest, child)} == {"s"}
    assert [ids(await manager.get_history(one.id)) for one in (fork, rest)] == before
    assert {hit.session_id for hit in await manager.search(WORD)} == {fork.id, rest.id}


class Failing(Projection):
    """A projection that cannot fold the deletion of a session."""

    name = "failing"
    handles = (SessionDeleted,)

    def apply(self, _tx: Tx, _envelopes: Sequence[Envelope]) -> None:
        """Fail, after the built-in projections have folded the events."""
        raise RuntimeError("no")


async def test_deletion_is_one_transaction() -> None:
    """A deletion that fails at its last step leaves everything as it was: event, rows and search (PRV-1)."""
    async with open_store("sqlite://", projections=[Failing()]) as store:
        manager = SessionManager(store)
        await tell(manager, "s")
        before, log, hits = await dumps(store), await log_of(store), await manager.search(WORD)
        with pytest.raises(ProjectionError):
            await manager.delete("s")
        assert (await dumps(store), await log_of(store), await manager.search(WORD)) == (before, log, hits)
        await manager.append("s", said("more"))


async def test_no_reader_sees_half_a_deletion(url: str) -> None:
    """A reader sees a session with all of its rows or none of them (PRV-1)."""
    async with open_store(url, synchronous="normal") as store, open_store(url, synchronous="normal") as other:
        manager = SessionManager(store)
        for number in range(20):
            name = f"s{number}"
            await manager.append_all(name, [said(f"m{n}", WORD) for n in range(20)])
            deleting = asyncio.ensure_future(manager.delete(name))
            while not deleting.done():
                rows = await rows_of(other, name)
                tables = collections.Counter(row[0] for row in rows)
                whole = (tables["assistant_messages"], tables["assistant_sessions"]) == (20, 1)
                if not whole:
                    check_marks(rows)
            await deleting


async def test_import_does_not_bring_a_deleted_session_back(
    store: Store, manager: SessionManager, tmp_path: Path
) -> None:
    """A file that holds a deleted session again is refused, and nothing of it is written (PRV-1)."""
    _export(tmp_path / "conversations.json")
    (session,) = (await import_file(store, tmp_path / "conversations.json")).sessions
    assert len(await manager.search(WORD)) == 1
    await manager.delete(session.session_id)
    before, log = await dumps(store), await log_of(store)
    with pytest.raises(SessionDeletedError):
        await import_file(store, tmp_path / "conversations.json", strict=True)
    report = await import_file(store, tmp_path / "conversations.json")
    assert (report.messages, report.sessions, len(report.problems)) == (0, [], 1)
    assert (await dumps(store), await log_of(store)) == (before, log)


@pytest.mark.parametrize("wrong", [5, None, b"s", ["s"], "context:x", "search:x", "a\0b"])
async def test_wrong_ids_are_refused(store: Store, manager: SessionManager, wrong: Any) -> None:
    """What can be no session's id is no session to delete."""
    with pytest.raises(InvalidArgumentError):
        await manager.delete(wrong)
    assert await log_of(store) == []


def _export(path: Path) -> None:
    content = {"content_type": "text", "parts": [WORD]}
    message = {"id": "n1", "author": {"role": "user"}, "create_time": 1.0, "content": content}
    mapping: dict[str, Any] = {"n1": {"id": "n1", "parent": None, "children": [], "message": message}}
    chat = {"title": WORD, "conversation_id": "c1", "id": "c1", "mapping": mapping, "current_node": "n1"}
    path.write_text(json.dumps([chat]), encoding="utf-8")
