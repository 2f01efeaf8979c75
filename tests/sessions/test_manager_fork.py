from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest

from eventstore import (
    MessageAppended,
    MessageNotFoundError,
    SessionDeletedError,
    SessionNotFoundError,
)
from eventstore.events import SessionForked
from replay import rebuild, verify
from sessions import SessionManager, Store
from tests.replay.dumps import dumps
from tests.sessions.talk import collect, ids, log_of, said


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a manager of the store."""
    return SessionManager(store)


async def contents(manager: SessionManager, session_id: str) -> list[dict[str, Any]]:
    """Return the messages of a session without what a fork has to change: their ids, and where they came from."""
    found = []
    for message in await manager.get_history(session_id):
        data = message.to_dict()
        del data["id"]
        data.get("metadata", {}).pop("forkedFrom", None)
        found.append({key: value for key, value in data.items() if key != "metadata" or value})
    return found


async def origins(manager: SessionManager, session_id: str) -> list[str]:
    """Return which messages a session's were copied from."""
    return [(message.metadata or {})["forkedFrom"] for message in await manager.get_history(session_id)]


async def ladder(manager: SessionManager, session_id: str, *names: str) -> None:
    """Create a session with a chain of messages, each with a text of its own."""
    await manager.create(f"Talk {session_id}", id=session_id, model="m", source="web")
    await manager.append_all(session_id, [said(name, f"text of {name}") for name in names])


async def test_forks_share_nothing_with_their_source(store: Store, manager: SessionManager) -> None:
    """A fork, and a fork of it while it is new, hold the inherited history once, whatever follows (TREE-7)."""
    await ladder(manager, "s", "m1", "m2", "m3", "m4")
    await manager.append("s", said("b3", "a branch"), "m2")
    f = await manager.fork("s", "m3", "F")
    tip = (await manager.get_history(f.id))[-1].id
    g = await manager.fork(f.id, tip, "G")
    expected = [{"role": "user", "parts": [{"type": "text", "text": f"text of m{n}"}]} for n in (1, 2, 3)]

    async def check() -> None:
        for fork in (f, g):
            assert await contents(manager, fork.id) == expected
            assert await manager.get_message_count(fork.id) == 3
            assert len(await collect(manager.get_session(fork.id).tree())) == 3
        known = [await manager.get(fork.id) for fork in (f, g)]
        assert [info and info.parent_session_id for info in known] == ["s", f.id]

    await check()
    await manager.append("s", said("m5", "more"), "m3")
    await manager.get_session("s").update_message(said("m1", "changed"))
    await manager.delete_messages("s", ["m2"])
    await check()
    await manager.clear_messages("s")
    await check()
    await manager.delete("s")
    await check()
    await manager.append(f.id, said("own"))
    await manager.delete_messages(f.id, [tip])
    assert await contents(manager, g.id) == expected
    await manager.delete(f.id)
    assert await contents(manager, g.id) == expected
    assert (await verify(store)).problems == []
    before = await dumps(store)
    await rebuild(store)
    assert await dumps(store) == before


async def test_fork_leaves_its_source_as_it_is(store: Store, manager: SessionManager) -> None:
    """What happens to a fork is not seen in its source, which gets no event from it (TREE-7)."""
    await ladder(manager, "s", "m1", "m2")
    before, info = await contents(manager, "s"), await manager.get("s")
    f = await manager.fork("s", "m2", "F")
    await manager.append(f.id, said("m3"))
    await manager.rename(f.id, "other")
    await manager.delete_messages(f.id, [(await manager.get_history(f.id))[0].id])
    await manager.delete(f.id)
    assert await contents(manager, "s") == before
    assert await manager.get("s") == info
    assert [kind for stream, _, kind in await log_of(store) if stream == "s"] == ["session_created"] + [
        "message_appended"
    ] * 2


async def test_fork_is_told_in_full(manager: SessionManager) -> None:
    """A fork has its source's model and source, its lineage, no usage, and new ids beside the old ones (TREE-7)."""
    await ladder(manager, "s", "m1", "m2")
    await manager.add_usage("s", 5, 6, 0.5)
    f = await manager.fork("s", "m2", "F")
    assert (f.name, f.parent_session_id, f.model, f.source) == ("F", "s", "m", "web")
    assert (f.input_tokens, f.output_tokens, f.estimated_cost, f.end_reason) == (0, 0, 0.0, None)
    assert f.created_at == f.updated_at
    assert await manager.get(f.id) == f
    assert (await manager.list())[0] == f
    assert await origins(manager, f.id) == ["m1", "m2"]
    copied = ids(await manager.get_history(f.id))
    assert len({*copied, "m1", "m2"}) == 4
    events = await collect(manager.get_session(f.id).events())
    assert [envelope.type for envelope in events] == ["session_created", "session_forked"] + ["message_appended"] * 2
    assert events[1].event == SessionForked(session_id="s", version=4, message_id="m2")
    g = await manager.fork(f.id, copied[1], "G")
    assert await origins(manager, g.id) == copied


async def test_fork_takes_the_path_to_its_message_alone(manager: SessionManager) -> None:
    """A fork at an inner message, or on a side branch, holds the path to it and goes on from its end (TREE-7)."""
    await ladder(manager, "s", "m1", "m2", "m3")
    await manager.append_all("s", [said("b2"), said("b3")], "m1")
    await manager.get_session("s").select_leaf("m3")
    for at, path in {"m1": ["m1"], "b3": ["m1", "b2", "b3"], "m2": ["m1", "m2"]}.items():
        fork = await manager.fork("s", at, "F")
        assert await origins(manager, fork.id) == path
        copied = ids(await manager.get_history(fork.id))
        await manager.append(fork.id, said("next"))
        assert ids(await manager.get_history(fork.id)) == [*copied, "next"]


@pytest.mark.parametrize("at", ["nope", "", "compaction_nope", "gone", "elsewhere"])
async def test_fork_at_an_unknown_message_creates_nothing(store: Store, manager: SessionManager, at: str) -> None:
    """A fork at a message that is not there, or in another session, raises and writes nothing (TREE-7)."""
    await ladder(manager, "s", "m1", "gone")
    await manager.append("other", said("elsewhere"))
    await manager.delete_messages("s", ["gone"])
    before, log = await manager.list(), await log_of(store)
    with pytest.raises(MessageNotFoundError) as raised:
        await manager.fork("s", at, "F")
    assert (raised.value.session_id, raised.value.message_id) == ("s", at)
    assert await manager.list() == before
    assert await log_of(store) == log


async def test_fork_and_split_of_an_unknown_session_create_nothing(store: Store, manager: SessionManager) -> None:
    """A session that is unknown, or deleted, is neither forked nor split (TREE-7)."""
    await ladder(manager, "gone", "m1")
    await manager.delete("gone")
    log = await log_of(store)
    wanted: list[tuple[str, type[Exception]]] = [("nope", SessionNotFoundError), ("gone", SessionDeletedError)]
    for session_id, error in wanted:
        for call in (manager.fork(session_id, "m1", "F"), manager.compact_and_split(session_id, "S")):
            with pytest.raises(error):
                await call
    assert await log_of(store) == log
    assert await manager.list() == []


async def test_fork_makes_overlays_ordinary_messages(manager: SessionManager) -> None:
    """In a fork a summary is a message like others: it is edited, deleted and found, and hides nothing (TREE-7)."""
    await ladder(manager, "s", "m1", "m2", "m3", "m4")
    compaction = await manager.add_compaction("s", "penguins in short", "m2", "m3")
    overlay = f"compaction_{compaction.id}"
    f = await manager.fork("s", "m4", "F")
    assert await manager.get_compactions(f.id) == []
    history = await manager.get_history(f.id)
    assert [message.text for message in history] == ["text of m1", "penguins in short", "text of m4"]
    assert [message.role for message in history] == ["user", "assistant", "user"]
    assert await origins(manager, f.id) == ["m1", overlay, "m4"]
    assert history[1].created_at == compaction.created_at
    assert not history[1].id.startswith("compaction_")
    assert [(hit.session_id, hit.id) for hit in await manager.search("penguins")] == [(f.id, history[1].id)]
    assert await manager.get_message_count(f.id) == 3
    await manager.delete_messages(f.id, [history[1].id])
    assert await origins(manager, f.id) == ["m1", "m4"]
    assert len(await manager.get_compactions("s")) == 1


async def test_fork_inside_a_compacted_range(manager: SessionManager) -> None:
    """A fork at a message that a summary covers has the messages up to it, without the summary (TREE-7)."""
    await ladder(manager, "s", "m1", "m2", "m3", "m4")
    await manager.add_compaction("s", "S", "m2", "m4")
    assert await origins(manager, (await manager.fork("s", "m3", "F")).id) == ["m1", "m2", "m3"]


async def test_fork_at_an_overlay(manager: SessionManager) -> None:
    """A fork at a summary's id ends with the summary, whatever is left of its range (TREE-7)."""
    await ladder(manager, "s", "m1", "m2", "m3", "m4")
    overlay = f"compaction_{(await manager.add_compaction('s', 'S', 'm2', 'm3')).id}"
    f = await manager.fork("s", overlay, "F")
    assert await origins(manager, f.id) == ["m1", overlay]
    events = await collect(manager.get_session(f.id).events())
    assert events[1].event == SessionForked(session_id="s", version=6, message_id="m3")
    await manager.delete_messages("s", ["m3"])
    g = await manager.fork("s", overlay, "G")
    assert await origins(manager, g.id) == ["m1", overlay]
    await manager.delete_messages("s", ["m2"])
    with pytest.raises(MessageNotFoundError):
        await manager.fork("s", overlay, "H")


async def test_copies_keep_every_key_in_its_place(store: Store, manager: SessionManager) -> None:
    """A copy has its message's keys and values in their order, and says whose copy it is (TREE-7)."""
    first = {
        "zeta": {"b": 1, "a": [None, True, -0.0, 1.5, 2**90]},
        "role": "user",
        "id": "m1",
        "metadata": {"y": 1, "x": {"q": []}},
        "parts": [{"type": "file", "url": "data:,x", "more": {"k": "NUL \0 and é"}}, {"type": "text", "text": ""}],
        "alpha": "",
        "createdAt": "2001-02-03T04:05:06Z",
    }
    odd: list[Any] = ["a text", 5, [1, {"k": 2}], False, None]
    messages = [first, *(said(f"m{n}", metadata=value, last=n) for n, value in enumerate(odd, start=2))]
    await manager.append_all("s", messages)
    f = await manager.fork("s", f"m{len(messages)}", "F")
    copies = [message.to_dict() for message in await manager.get_history(f.id)]
    assert [list(copy) for copy in copies[:1]] == [list(first)]
    assert list(copies[0]["metadata"]) == ["y", "x", "forkedFrom"]
    expected = {**first, "id": copies[0]["id"], "metadata": {"y": 1, "x": {"q": []}, "forkedFrom": "m1"}}
    assert repr(copies[0]) == repr(expected)
    for copy, given in zip(copies[1:5], messages[1:5], strict=True):
        assert copy == {**given, "id": copy["id"], "forkedFrom": given["id"]}
        assert list(copy) == [*given, "forkedFrom"]
    assert copies[5] == {**messages[5], "id": copies[5]["id"], "metadata": {"forkedFrom": "m6"}}
    assert (await manager.get_history(f.id))[0].created_at == dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    appended = [e.event async for e in store.log.read_stream(f.id) if isinstance(e.event, MessageAppended)]
    assert [one.message for one in appended] == copies


async def test_fork_sees_what_came_before_it_in_its_group(store: Store, manager: SessionManager) -> None:
    """A fork that is asked for at once with the append of its message, or with its deletion, finds it as it then is."""
    await ladder(manager, "s", "m1")
    _, f, _, refused = await asyncio.gather(
        manager.append("s", said("m2", "new")),
        manager.fork("s", "m2", "F"),
        manager.delete("s"),
        manager.fork("s", "m2", "G"),
        return_exceptions=True,
    )
    assert not isinstance(f, BaseException)
    assert await origins(manager, f.id) == ["m1", "m2"]
    assert isinstance(refused, SessionDeletedError)
    assert [info.id for info in await manager.list()] == [f.id]
    assert (await verify(store)).problems == []


@pytest.mark.parametrize("count", [0, 1_500])
async def test_forks_of_any_length(manager: SessionManager, count: int) -> None:
    """A fork is whole however many messages it copies, in one transaction."""
    await manager.append_all("s", [said(f"m{n}") for n in range(count + 1)])
    f = await manager.fork("s", f"m{count}", "F")
    assert await origins(manager, f.id) == [f"m{n}" for n in range(count + 1)]
