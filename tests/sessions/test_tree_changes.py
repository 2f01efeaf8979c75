"""What deleting, updating and importing leave of a tree, and where whatever comes later may hang."""

from __future__ import annotations

import datetime as dt

import pytest

from eventstore import (
    DuplicateMessageError,
    MessageDeletedError,
    MessageNotFoundError,
    ParentNotFoundError,
)
from replay import rebuild, verify
from sessions import Session, Store, open_store
from tests.sessions.talk import chain, collect, ids, log_of, said

MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


async def latest(session: Session) -> str | None:
    """Return the id of the latest leaf."""
    found = await session.get_latest_leaf()
    return None if found is None else found.id


async def parents(session: Session) -> dict[str, str | None]:
    """Return the parent of every message, as the tree has it, in log order."""
    return {node.message.id: node.parent_id for node in await collect(session.tree())}


@pytest.mark.parametrize("parent", ["nope", "m2_", "z1", "gone", "new", "", "compaction_nope", "compaction_", "M2"])
async def test_unknown_parent_is_refused_by_every_door(store: Store, session: Session, parent: str) -> None:
    """A parent that is unknown, deleted, foreign, the message itself or no summary is refused everywhere (TREE-1)."""
    await chain(session, "m1", "m2", "gone")
    await session.delete_messages(["gone"])
    await Session.create(store).for_session("s2").append_message(said("z1"))
    before = await log_of(store)
    for attempt in (
        session.append_message(said("new"), parent),
        session.append_messages([said("new"), said("newer")], parent),
        session.upsert_message(said("new"), parent),
        session.import_message(said("new"), parent, MOMENT),
    ):
        with pytest.raises(ParentNotFoundError) as raised:
            await attempt
        assert (raised.value.session_id, raised.value.parent_id) == ("chat", parent)
    assert await log_of(store) == before
    assert ids(await session.get_history()) == ["m1", "m2"]
    await session.upsert_message(said("new"))
    await session.import_message(said("root"), None, MOMENT)
    assert await parents(session) == {"m1": None, "m2": "m1", "new": "m2", "root": None}


async def test_overlay_of_another_session_is_no_parent(store: Store, session: Session) -> None:
    """A summary is a parent in its own session only (TREE-1)."""
    await chain(session, "m1", "m2")
    compaction = await session.add_compaction("S", "m1", "m2")
    other = Session.create(store).for_session("s2")
    await chain(other, "m1", "m2")
    with pytest.raises(ParentNotFoundError):
        await other.append_message(said("m3"), f"compaction_{compaction.id}")
    assert await other.version() == 2


@pytest.mark.parametrize(
    ("gone", "left", "tip"),
    [
        ("m3", "m1 m2 m4 m5", "m5"),
        ("m5", "m1 m2 m3 m4", "m4"),
        ("m1", "m2 m3 m4 m5", "m5"),
        ("m2 m3 m4", "m1 m5", "m5"),
        ("m5 m4 m3", "m1 m2", "m2"),
        ("m1 m5", "m2 m3 m4", "m4"),
        ("m1 m2 m3 m4", "m5", "m5"),
        ("m1 m2 m3 m4 m5", "", None),
    ],
)
async def test_deleting_in_a_chain_leaves_a_chain(url: str, gone: str, left: str, tip: str | None) -> None:
    """Whatever is deleted of a chain, the rest is one chain with the right tip, also when reopened (TREE-2)."""

    async def check(session: Session) -> None:
        names = left.split()
        assert ids(await session.get_history()) == ids(await collect(session.history())) == names
        assert await session.get_path_length() == len(names)
        assert await parents(session) == dict(zip(names, [None, *names], strict=False))
        assert await latest(session) == tip
        for above, below in zip(names, [*names[1:], ""], strict=False):
            assert ids(await session.get_branches(above)) == ([below] if below else [])
        for message in gone.split():
            assert await session.get_message(message) is None
            assert await session.get_branches(message) == []
            with pytest.raises(MessageNotFoundError):
                await session.get_history(message)

    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await chain(session, "m1", "m2", "m3", "m4", "m5")
        assert await session.delete_messages(gone.split()) == len(gone.split())
        await check(session)
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await check(session)
        await rebuild(store)
        await check(session)
        await session.append_message(said("next"))
        assert ids(await session.get_history()) == [*left.split(), "next"]
        assert (await verify(store)).problems == []


async def test_selected_tip_that_is_deleted_is_replaced_before_reopening(url: str) -> None:
    """A selected message that is deleted leaves the newest leaf below its nearest surviving ancestor (TREE-2)."""
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await chain(session, "u1", "a1", "u2")
        await session.append_message(said("a1x"), "u1")
        await session.append_message(said("r"), None)
        await session.select_leaf("u2")
        await session.delete_messages(["u2", "a1"])
        assert await latest(session) == "a1x"
        await session.select_leaf("u1")
        await session.delete_messages(["u1"])
        assert await latest(session) == "r"
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        assert await latest(session) == "r"
        assert await parents(session) == {"a1x": None, "r": None}
        assert ids(await session.get_history("a1x")) == ["a1x"]


async def test_spliced_children_stand_in_log_order(session: Session) -> None:
    """The children of deleted siblings become their grandparent's, all in log order, and none is lost (TREE-2)."""
    await chain(session, "u")
    for reply in ("a", "b", "c"):
        await session.append_message(said(reply), "u")
    for reply in ("b1", "a1", "b2", "c1", "a2"):
        await session.append_message(said(reply), reply[0])
    await session.delete_messages(["b", "a"])
    assert ids(await session.get_branches("u")) == ["c", "b1", "a1", "b2", "a2"]
    await session.delete_messages(["u"])
    assert list((await parents(session)).items()) == [
        ("c", None),
        ("b1", None),
        ("a1", None),
        ("b2", None),
        ("c1", "c"),
        ("a2", None),
    ]
    await session.append_message(said("b3"), "b1")
    assert ids(await session.get_history()) == ["b1", "b3"]
    assert ids(await session.get_history("c1")) == ["c", "c1"]


async def test_deleting_counts_what_was_there(store: Store, session: Session) -> None:
    """Unknown, repeated and deleted ids are not counted, and when none is left there is no event (TREE-2)."""
    await chain(session, "m1", "m2", "m3")
    assert await session.delete_messages(["nope", "m2", "m2", ""]) == 1
    before = await log_of(store)
    for nothing in ([], ["nope"], ["m2"], ["m2", "m2", "compaction_x"]):
        assert await session.delete_messages(nothing) == 0
    assert await log_of(store) == before


async def test_the_same_id_in_two_sessions_is_two_messages(store: Store, session: Session) -> None:
    """Updates and deletes in one session leave the message of the same id in another alone (TREE-6)."""
    other = Session.create(store).for_session("s2")
    await session.append_message(said("msg-1", "hello"))
    await other.append_message(said("msg-1", "other"))
    await session.update_message(said("msg-1", "changed"))
    found = await other.get_message("msg-1")
    assert found is not None
    assert found.text == "other"
    assert await session.delete_messages(["msg-1"]) == 1
    assert ids(await other.get_history()) == ["msg-1"]
    assert [hit.session_id for hit in await other.search("other")] == ["s2"]
    for text in ("hello", "changed", "other"):
        assert await session.search(text) == []
    assert (await other.append_message(said("msg-1", "other"))).inserted is False
    await session.clear_messages()
    assert ids(await other.get_history()) == ["msg-1"]
    assert (await verify(store)).problems == []


async def test_repeat_is_known_by_its_first_and_by_its_present_content(store: Store, session: Session) -> None:
    """After an update a repeat is what was first appended or what is stored now, and nothing in between (TREE-6)."""
    await session.append_message(said("m1", "first"))
    await session.update_message(said("m1", "second"))
    await session.update_message(said("m1", "third"))
    before = await log_of(store)
    for text in ("first", "third"):
        result = await session.append_message(said("m1", text))
        assert (result.inserted, result.version) == (False, 1)
    for attempt in (session.append_message(said("m1", "second")), session.append_message(said("m1", "first"), "m1")):
        with pytest.raises(DuplicateMessageError):
            await attempt
    assert await log_of(store) == before
    found = await session.get_message("m1")
    assert found is not None
    assert found.text == "third"


async def test_deleted_id_is_spent_until_the_session_is_cleared(url: str) -> None:
    """The id of a deleted message is refused, after reopening and a rebuild too, until everything goes (TREE-6)."""
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await chain(session, "m1", "m2")
        await session.delete_messages(["m2"])
    for _ in range(2):
        async with open_store(url, synchronous="normal") as store:
            session = Session.create(store).for_session("chat")
            before = await log_of(store)
            for attempt in (
                session.append_message(said("m2")),
                session.append_message(said("m2"), None),
                session.append_message(said("m2"), "m1"),
                session.append_messages([said("m3"), said("m2")]),
                session.upsert_message(said("m2")),
                session.import_message(said("m2"), None, MOMENT),
            ):
                with pytest.raises(MessageDeletedError) as raised:
                    await attempt
                assert (raised.value.session_id, raised.value.message_id) == ("chat", "m2")
            assert await session.update_message(said("m2", "changed")) is None
            assert await log_of(store) == before
            assert ids(await session.get_history()) == ["m1"]
            await rebuild(store)
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await session.clear_messages()
        assert await session.get_history() == []
        assert (await session.append_message(said("m2"))).inserted
        assert (await session.append_message(said("m1"))).inserted
        assert await parents(session) == {"m2": None, "m1": "m2"}
        assert (await verify(store)).problems == []


async def test_updates_keep_the_place_and_the_chosen_branch(url: str) -> None:
    """Updating a message anywhere moves neither it, nor its children, nor the branch that was picked (TREE-9)."""

    async def check(session: Session) -> None:
        assert await latest(session) == "a1x"
        assert ids(await session.get_branches("u1")) == ["a1", "a1x", "a1y"]
        assert list(await parents(session)) == ["u1", "a1", "a1x", "a1y", "u2"]
        assert [message.text for message in await session.get_history("u2")] == ["changed u1", "changed a1y", "hello"]
        assert ids(await session.get_history()) == ["u1", "a1x"]

    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await session.append_message(said("u1"))
        for reply in ("a1", "a1x", "a1y"):
            await session.append_message(said(reply), "u1")
        await session.append_message(said("u2"), "a1y")
        await session.select_leaf("a1x")
        for message in ("u1", "a1y"):
            await session.update_message(said(message, f"changed {message}"))
        await session.upsert_message(said("a1", "changed too"), "u2")
        await check(session)
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        await check(session)
        await rebuild(store)
        await check(session)


async def test_branches_survive_the_deletion_of_the_picked_one(session: Session) -> None:
    """When the picked branch is deleted its siblings stay, and the next message goes on from the newest (TREE-9)."""
    await session.append_message(said("u1"))
    for reply in ("a1", "a1x", "a1y"):
        await session.append_message(said(reply), "u1")
    await session.select_leaf("a1x")
    await session.delete_messages(["a1x"])
    assert ids(await session.get_branches("u1")) == ["a1", "a1y"]
    assert await latest(session) == "a1y"
    await session.append_message(said("u2"))
    assert ids(await session.get_history()) == ["u1", "a1y", "u2"]
