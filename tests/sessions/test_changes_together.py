"""Changes and versions: conflicts, retries, and calls that are written in one group."""

from __future__ import annotations

import asyncio

import pytest

from eventstore import (
    DuplicateMessageError,
    EventStoreError,
    InvalidCompactionError,
    MessageDeletedError,
    ParentNotFoundError,
    VersionConflictError,
)
from replay import rebuild, verify
from sessions import Session, SessionManager, Store
from tests.replay.dumps import dumps
from tests.sessions.talk import chain, collect, ids, log_of, said


async def test_changes_count_towards_the_expected_version(store: Store, session: Session) -> None:
    """An append that expects the version before an update, a deletion or a summary is refused (CON-3)."""
    await chain(session, "m1", "m2", "m3")
    for change in (
        lambda: session.update_message(said("m1", "changed")),
        lambda: session.delete_messages(["m2"]),
        lambda: session.add_compaction("S", "m1", "m3"),
        lambda: session.select_leaf("m1"),
        lambda: session.upsert_message(said("m1", "changed again")),
        session.clear_messages,
    ):
        seen = await session.version()
        await change()
        assert await session.version() == seen + 1
        before = await log_of(store)
        for expected in (seen, seen + 2):
            with pytest.raises(VersionConflictError) as raised:
                await session.append_message(said("x"), expected_version=expected)
            assert (raised.value.expected, raised.value.actual) == (expected, seen + 1)
        assert await log_of(store) == before


async def test_chained_versions_never_conflict_between_changes(session: Session) -> None:
    """A writer that passes on the version it saw last never conflicts, whatever it does in between (CON-3)."""
    version = 0
    for n in range(30):
        result = await session.append_message(said(f"m{n}"), expected_version=version)
        assert result.version == version + 1
        await session.update_message(said(f"m{n}", "changed"))
        await session.update_message(said(f"m{n}", "changed"))
        await session.update_message(said("unknown"))
        await session.delete_messages([f"m{n - 1}", "unknown"])
        version = result.version + (1 if n == 0 else 2)
    assert ids(await session.get_history()) == ["m29"]


async def test_what_is_told_of_a_session_counts_as_a_version(store: Store, session: Session) -> None:
    """A name, usage, a block and a frozen prompt move the version too, and the handle that saw it goes on (CON-3)."""
    manager = SessionManager(store).with_context("memory").with_cached_prompt()
    await manager.create("Chat", id="chat")
    handle = manager.get_session("chat")
    await handle.append_message(said("m0"))
    told = (
        lambda: manager.rename("chat", "Trip"),
        lambda: manager.add_usage("chat", 10, 5, 0.5),
        lambda: handle.replace_context_block("memory", "likes tea"),
        handle.freeze_system_prompt,
    )
    for number, tell in enumerate(told):
        seen = await handle.version()
        await tell()
        with pytest.raises(VersionConflictError) as raised:
            await handle.append_message(said("late"), expected_version=seen)
        assert (raised.value.expected, raised.value.actual) == (seen, seen + 1)
        result = await handle.append_message(said(f"n{number}"), expected_version=seen + 1)
        await manager.rename("chat", "Trip")
        assert await handle.version() == result.version
    assert ids(await session.get_history()) == ["m0", "n0", "n1", "n2", "n3"]


async def test_retry_after_a_change_is_still_the_first_append(store: Store, session: Session) -> None:
    """A retried append is recognised after updates, summaries and deletions of others, whatever it expects (CON-4)."""
    first = await session.append_message(said("m1"), expected_version=0)
    batch = await session.append_messages([said("m2"), said("m3")])
    await session.update_message(said("m1", "changed"))
    await session.delete_messages(["m3"])
    await session.add_compaction("S", "m1", "m2")
    before = await log_of(store)
    for expected in (0, 1, 6, 99):
        again = await session.append_message(said("m1"), expected_version=expected)
        assert (again.inserted, again.version, again.position) == (False, first.version, first.position)
    with pytest.raises(MessageDeletedError):
        await session.append_messages([said("m2"), said("m3")])
    (again,) = await session.append_messages([said("m2")])
    assert (again.inserted, again.version) == (False, batch[0].version)
    await rebuild(store)
    assert not (await session.append_message(said("m1"))).inserted
    assert await log_of(store) == before


async def test_retry_of_the_parent_first_given_survives_its_deletion(session: Session) -> None:
    """A repeat names the parent that it was first given, also when that was deleted meanwhile (CON-4)."""
    await chain(session, "m1", "m2", "m3")
    await session.delete_messages(["m2"])
    assert not (await session.append_message(said("m3"), "m2")).inserted
    assert not (await session.append_message(said("m3"))).inserted
    with pytest.raises(DuplicateMessageError):
        await session.append_message(said("m3"), None)


async def test_repeated_changes_are_changes_once(store: Store, session: Session) -> None:
    """An update, an upsert, a deletion or a clearing that is retried writes nothing the second time (CON-4)."""
    await chain(session, "m1", "m2")
    for change in (
        lambda: session.update_message(said("m1", "changed")),
        lambda: session.upsert_message(said("m2", "changed")),
        lambda: session.upsert_message(said("m3")),
        lambda: session.delete_messages(["m1", "m2"]),
    ):
        await change()
        before = await log_of(store)
        await change()
        assert await log_of(store) == before
    assert ids(await session.get_history()) == ["m3"]


async def test_changes_handed_in_together_see_each_other(store: Store, session: Session) -> None:
    """Of changes that are written in one group each sees what those before it did."""
    outcomes = await asyncio.gather(
        session.append_messages([said("m1"), said("m2"), said("m3")]),
        session.update_message(said("m2", "changed")),
        session.update_message(said("m2", "changed")),
        session.append_message(said("m2", "hello")),
        session.append_message(said("m2", "changed")),
        session.append_message(said("m2", "neither")),
        session.add_compaction("S", "m1", "m2"),
        session.update_message(said("m1", "changed")),
        session.delete_messages(["m3", "m3", "nope"]),
        session.append_message(said("m3")),
        session.update_message(said("m3", "changed")),
        session.delete_messages(["m3"]),
        session.append_message(said("m4")),
        session.append_message(said("m5"), "m3"),
        session.upsert_message(said("m4", "changed")),
        session.upsert_message(said("m6")),
        session.add_compaction("T", "m4", "m3"),
        session.select_leaf("m4"),
        session.delete_messages(["m4"]),
        session.append_message(said("m7")),
        return_exceptions=True,
    )
    refused = {index: type(one) for index, one in enumerate(outcomes) if isinstance(one, BaseException)}
    assert refused == {
        5: DuplicateMessageError,
        9: MessageDeletedError,
        13: ParentNotFoundError,
        16: InvalidCompactionError,
    }
    assert (outcomes[8], outcomes[10], outcomes[11], outcomes[18]) == (1, None, 0, 1)
    assert [node.message.id for node in await collect(session.tree())] == ["m1", "m2", "m6", "m7"]
    assert [node.parent_id for node in await collect(session.tree())] == [None, "m1", "m2", "m6"]
    assert [message.text for message in await session.get_history()] == ["S", "hello", "hello"]
    assert [one.stale for one in await session.get_compactions()] == [True]
    assert [type_ for _, _, type_ in await log_of(store)] == [
        *["message_appended"] * 3,
        "message_updated",
        "compaction_added",
        "message_updated",
        "messages_deleted",
        "message_appended",
        "message_updated",
        "message_appended",
        "leaf_selected",
        "messages_deleted",
        "message_appended",
    ]
    await _as_replayed(store)


async def test_session_that_is_created_with_its_messages(store: Store) -> None:
    """Of a session that is created and appended to in one group the messages are one chain."""
    manager = SessionManager(store)
    made, *_ = await asyncio.gather(
        manager.create("Chat", id="new"),
        manager.append("new", said("m1")),
        manager.append("new", said("m2")),
        manager.append_all("new", [said("m3"), said("m4")]),
    )
    assert made.name == "Chat"
    assert ids(await manager.get_history("new")) == ["m1", "m2", "m3", "m4"]
    await _as_replayed(store)


async def test_clearing_in_the_middle_of_a_group(store: Store, session: Session) -> None:
    """What is handed in behind a clearing finds an empty session, with every id free again."""
    await chain(session, "m1", "m2")
    await session.delete_messages(["m1"])
    outcomes = await asyncio.gather(
        session.append_message(said("m3")),
        session.clear_messages(),
        session.append_message(said("m1", "new")),
        session.append_message(said("m2", "new"), "m3"),
        session.update_message(said("m3", "new")),
        session.append_message(said("m3", "new")),
        session.delete_messages(["m1"]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[3], ParentNotFoundError)
    assert [type(one) for one in outcomes if isinstance(one, EventStoreError)] == [ParentNotFoundError]
    assert (outcomes[4], outcomes[6]) == (None, 1)
    assert [(node.message.id, node.parent_id) for node in await collect(session.tree())] == [("m3", None)]
    assert [hit.id for hit in await session.search("new")] == ["m3"]
    await _as_replayed(store)


async def test_many_sessions_change_in_one_group(store: Store) -> None:
    """Changes of many sessions that are written together stay apart."""
    sessions = [Session.create(store).for_session(f"s{n}") for n in range(40)]
    await asyncio.gather(*(session.append_messages([said(f"m{n}") for n in range(5)]) for session in sessions))
    await asyncio.gather(
        *(
            call
            for n, session in enumerate(sessions)
            for call in (
                session.update_message(said("m2", f"changed {n}")),
                session.delete_messages([f"m{n % 5}"]),
                session.add_compaction(f"S{n}", f"m{(n + 1) % 5}", f"m{max((n + 1) % 5, (n + 2) % 5)}"),
            )
        ),
        return_exceptions=True,
    )
    for n, session in enumerate(sessions):
        assert [node.message.id for node in await collect(session.tree())] == [f"m{k}" for k in range(5) if k != n % 5]
    await _as_replayed(store)


async def _as_replayed(store: Store) -> None:
    """Check that one event after the other gives what the group gave."""
    before = await dumps(store)
    await rebuild(store)
    assert await dumps(store) == before
    assert (await verify(store)).problems == []
