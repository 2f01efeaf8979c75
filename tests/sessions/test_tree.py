from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

from eventstore import MessageNotFoundError
from replay import rebuild
from sessions import Session, Store, TreeNode, open_store
from tests.sessions.processes import ROOT
from tests.sessions.talk import chain, collect, ids, log_of, said

READER = """
import asyncio, json, sys
from replay import rebuild
from sessions import Session, open_store

async def main(url):
    async with open_store(url) as store:
        session = Session.create(store).for_session("chat")
        for _ in range(2):
            print(json.dumps([[one.id for one in await read] for read in
                (session.get_history(), session.get_branches("u1"), session.get_branches("a1x"))]))
            await rebuild(store)

asyncio.run(main(sys.argv[1]))
"""


async def branching(session: Session) -> None:
    """Append a small tree: two roots, and under the first one two branches, one of which forks again."""
    await chain(session, "u1", "a1", "u2")
    await session.append_message(said("a1x"), "u1")
    await session.append_message(said("u2x"), "a1x")
    await session.append_message(said("u2y"), "a1x")
    await session.append_message(said("r2"), None)


async def test_history_of_every_leaf(session: Session) -> None:
    """The history of a message is the path from its root down to it, whatever was appended elsewhere."""
    await branching(session)
    paths = {
        "u1": "u1",
        "a1": "u1 a1",
        "u2": "u1 a1 u2",
        "a1x": "u1 a1x",
        "u2x": "u1 a1x u2x",
        "u2y": "u1 a1x u2y",
        "r2": "r2",
    }
    for leaf, path in paths.items():
        assert ids(await session.get_history(leaf)) == path.split()
        assert ids(await collect(session.history(leaf))) == path.split()
        assert await session.get_path_length(leaf) == len(path.split())
    assert ids(await session.get_history()) == ids(await collect(session.history())) == ["r2"]
    assert await session.get_path_length() == 1


async def test_branches_are_the_children_in_log_order(session: Session) -> None:
    """Branches are all children of a message in the order they were appended, and none for an unknown id."""
    await branching(session)
    children = {"u1": "a1 a1x", "a1": "u2", "a1x": "u2x u2y", "u2": "", "r2": "", "nope": "", "": ""}
    for message, names in children.items():
        assert ids(await session.get_branches(message)) == names.split()


async def test_tree_gives_every_message_once(session: Session) -> None:
    """The tree is every message of every branch with its parent's id, in log order."""
    await branching(session)
    nodes = await collect(session.tree())
    assert all(isinstance(node, TreeNode) for node in nodes)
    assert [(node.message.id, node.parent_id) for node in nodes] == [
        ("u1", None),
        ("a1", "u1"),
        ("u2", "a1"),
        ("a1x", "u1"),
        ("u2x", "a1x"),
        ("u2y", "a1x"),
        ("r2", None),
    ]


async def test_empty_session(session: Session) -> None:
    """A session of which nothing is stored reads as empty everywhere."""
    assert await session.get_history() == []
    assert await collect(session.history()) == []
    assert await collect(session.tree()) == []
    assert await collect(session.events()) == []
    assert await session.get_branches("m1") == []
    assert await session.get_message("m1") is None
    assert await session.get_latest_leaf() is None
    assert await session.get_path_length() == await session.version() == 0
    assert await session.search("hello") == []


@pytest.mark.parametrize("leaf", ["nope", "", "M1", "m1 ", "other", "compaction_m1"])
async def test_unknown_leaf_is_refused(store: Store, session: Session, leaf: str) -> None:
    """A leaf id that is not a message of the session is an error wherever one goes in, the empty id too."""
    await session.append_message(said("m1"))
    await Session.create(store).for_session("s2").append_message(said("other"))
    before = await log_of(store)
    attempts = (
        session.get_history(leaf),
        collect(session.history(leaf)),
        session.get_path_length(leaf),
        session.select_leaf(leaf),
    )
    for attempt in attempts:
        with pytest.raises(MessageNotFoundError) as raised:
            await attempt
        assert (raised.value.session_id, raised.value.message_id) == ("chat", leaf)
    assert await session.get_message(leaf) is None
    assert await session.get_branches(leaf) == []
    assert await log_of(store) == before


async def test_selected_leaf_is_the_latest(session: Session) -> None:
    """A message that was selected is the latest leaf until another one is appended or selected."""
    await branching(session)
    await session.select_leaf("u2")
    latest = await session.get_latest_leaf()
    assert latest is not None
    assert latest.id == "u2"
    assert ids(await session.get_history()) == ["u1", "a1", "u2"]
    await session.append_message(said("a2"))
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2"]
    await session.append_message(said("b"), "u1")
    assert ids(await session.get_history()) == ["u1", "b"]


async def test_inner_message_can_be_selected(session: Session) -> None:
    """Any message can be selected, and the next one without a parent starts a branch there."""
    await chain(session, "m1", "m2", "m3")
    await session.select_leaf("m1")
    assert ids(await session.get_history()) == ["m1"]
    await session.append_message(said("x"))
    assert ids(await session.get_branches("m1")) == ["m2", "x"]


async def test_selecting_is_an_event_once(store: Store, session: Session) -> None:
    """Selecting a message is recorded, and selecting the one that is the latest already is not."""
    await chain(session, "m1", "m2")
    await session.select_leaf("m2")
    assert len(await log_of(store)) == 2
    await session.select_leaf("m1")
    await session.select_leaf("m1")
    assert await log_of(store) == [
        ("chat", 1, "message_appended"),
        ("chat", 2, "message_appended"),
        ("chat", 3, "leaf_selected"),
    ]


async def test_calls_handed_in_together_see_each_other(session: Session) -> None:
    """Of selections and appends that are written in one group, each sees the latest leaf that those before it made."""
    await chain(session, "m1", "m2", "m3")
    await asyncio.gather(
        session.select_leaf("m1"),
        session.append_message(said("a")),
        session.select_leaf("m2"),
        session.select_leaf("a"),
        session.append_message(said("b")),
        session.select_leaf("b"),
        session.select_leaf("m3"),
        session.append_message(said("c")),
    )
    nodes = [(node.message.id, node.parent_id) async for node in session.tree()]
    assert nodes[3:] == [("a", "m1"), ("b", "a"), ("c", "m3")]
    assert await session.version() == 10
    await asyncio.gather(session.append_message(said("d"), "m1"), session.select_leaf("d"))
    assert await session.version() == 11


async def answer_again(session: Session) -> None:
    """Append a question with three answers, and go on below the second one."""
    await session.append_message(said("u1"))
    for reply in ("a1", "a1x", "a1y"):
        await session.append_message(said(reply), "u1")
    await session.select_leaf("a1x")
    await session.append_message(said("u2"))


async def test_selected_branch_survives_and_no_message_disappears(url: str) -> None:
    """A picked branch survives reopening and a rebuild, and children are always all siblings in log order (TREE-9)."""

    async def check(session: Session, tip: str) -> None:
        latest = await session.get_latest_leaf()
        assert latest is not None
        assert latest.id == tip
        assert ids(await session.get_branches("u1")) == ["a1", "a1x", "a1y"]
        assert ids(await session.get_branches("a1x")) == ["u2"]
        assert [node.message.id for node in await collect(session.tree())] == ["u1", "a1", "a1x", "a1y", "u2"]

    async with open_store(url) as store:
        session = Session.create(store).for_session("chat")
        await answer_again(session)
        assert ids(await session.get_history()) == ["u1", "a1x", "u2"]
        await session.select_leaf("a1y")
        await check(session, "a1y")
        await session.select_leaf("u2")
        await check(session, "u2")
        await session.select_leaf("a1x")
        await check(session, "a1x")
    for _ in range(2):
        async with open_store(url) as store:
            session = Session.create(store).for_session("chat")
            await check(session, "a1x")
            await rebuild(store)
            await check(session, "a1x")
            assert ids(await session.get_history()) == ["u1", "a1x"]


async def test_selected_branch_is_seen_by_another_process(url: str) -> None:
    """A branch that was picked, left and picked again is the one that a process started later goes on with (TREE-9)."""
    async with open_store(url) as store:
        session = Session.create(store).for_session("chat")
        await answer_again(session)
        await session.select_leaf("a1y")
        await session.select_leaf("u2")
        command = [sys.executable, "-W", "error", "-c", READER, url]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        read = await asyncio.to_thread(subprocess.run, command, env=environment, check=True, capture_output=True)
    seen = [["u1", "a1x", "u2"], ["a1", "a1x", "a1y"], ["u2"]]
    assert [json.loads(line) for line in read.stdout.splitlines()] == [seen, seen]


async def test_two_handles_share_one_latest_leaf(store: Store) -> None:
    """The latest leaf belongs to the session, not to the object that appended it."""
    one, two = (Session.create(store).for_session("chat") for _ in range(2))
    await one.append_message(said("m1"))
    await two.append_message(said("m2"))
    await one.append_message(said("m3"))
    assert ids(await two.get_history()) == ["m1", "m2", "m3"]


async def test_path_of_a_stream_is_fixed_at_its_first_item(session: Session) -> None:
    """What is appended or selected while a history is read one by one does not change it."""
    await session.append_messages([said(f"m{n}") for n in range(1200)])
    read = session.history()
    first = await anext(read)
    await session.append_message(said("late"))
    await session.select_leaf("m3")
    rest = await collect(read)
    assert ids([first, *rest]) == [f"m{n}" for n in range(1200)]


async def test_streams_can_be_left(session: Session) -> None:
    """A history, a tree or events that are not read to their end hold nothing up."""
    await session.append_messages([said(f"m{n}") for n in range(1200)])
    for stream in (session.history(), session.tree(), session.events()):
        async for _ in stream:
            break
    await session.append_message(said("next"))
    assert await session.get_path_length() == 1201
