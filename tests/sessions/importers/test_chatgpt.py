from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from sessions import Session, import_file, open_store
from sessions.importers import Problem
from sessions.importers.chatgpt import parse
from sessions.importers.document import read_document
from tests.sessions.exporters.exports import exported, imported, shape
from tests.sessions.importers.exports import (
    HIDDEN,
    PICTURE,
    Node,
    mapping_of,
    parts,
    read,
    read_value,
    said,
    thought,
    tree,
)

EDITED = mapping_of(
    ("root", None, None),
    ("s", "root", said("system", "", metadata=HIDDEN)),
    ("u1", "s", said("user", "first")),
    ("a1", "u1", said("assistant", "one", time=None)),
    ("a1b", "u1", said("assistant", "another")),
    ("u1b", "s", said("user", "text", PICTURE)),
    ("a2", "u1b", said("assistant", "two")),
)
EDITED_TREE = {"s": None, "u1": "s", "a1": "u1", "a1b": "u1", "u1b": "s", "a2": "u1b"}


def test_all_branches_are_kept() -> None:
    """Edited and regenerated turns are siblings, the null root is bridged, and the tip is the current node (IMP-7)."""
    conversation = read(EDITED, current_node="a2")
    assert tree(conversation) == EDITED_TREE
    assert (conversation.leaf_id, conversation.repaired_links) == ("a2", 0)


def test_parts_and_marks_are_kept() -> None:
    """A picture is a file part after its text, a hidden message is marked, no time is invented (IMP-7)."""
    messages = {item.id: item.message for item in read(EDITED).messages}
    assert [part["type"] for part in messages["u1b"]["parts"]] == ["text", "file"]
    assert messages["u1b"]["parts"][1]["url"] == "file-service://file-1"
    assert [key for key, message in messages.items() if message["metadata"].get("hidden")] == ["s"]
    assert [key for key, message in messages.items() if "createdAt" not in message] == ["a1"]


@pytest.mark.parametrize("current", [{}, {"current_node": None}, {"current_node": "gone"}, {"current_node": 7}])
def test_missing_current_node_means_the_newest_leaf(current: dict[str, object]) -> None:
    """Without a current node the tip is the leaf with the latest time, of equals the last in the file (IMP-7)."""
    assert read(EDITED, **current).leaf_id == "a2"
    later = EDITED | {"a1b": EDITED["a1b"] | {"message": said("assistant", "another", time=1_700_000_001)}}
    assert read(later, **current).leaf_id == "a1b"


def test_current_node_without_a_message_means_the_one_above() -> None:
    """A current node that was bridged or folded stands for the message that took its place."""
    nodes = (("u", None, said("user", "x")), ("c", "u", said("assistant", "y", recipient="web")))
    tail = (("t", "c", said("tool", "z")), ("n", "t", None))
    assert read(mapping_of(*nodes, *tail), current_node="n").leaf_id == "c"


async def test_branches_survive_an_export(tmp_path: Path) -> None:
    """Tree, ids, order and tip of a conversation are the same after it was exported and imported again (IMP-7)."""
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"conversation_id": "c1", "title": "T", "mapping": EDITED, "current_node": "a2"}]))
    async with open_store("sqlite://") as one, open_store("sqlite://") as other:
        assert (await import_file(one, path)).problems == []
        text = await exported(one, "chatgpt:c1", "json")
        assert (await imported(other, text)).problems == []
        before, after = await shape(one, "chatgpt:c1"), await shape(other, "json:chatgpt:c1")
        assert after == before
        for store, session_id in ((one, "chatgpt:c1"), (other, "json:chatgpt:c1")):
            session = Session.create(store).for_session(session_id)
            assert {node.message.id: node.parent_id async for node in session.tree()} == EDITED_TREE
            assert [message.id for message in await session.get_history()] == ["s", "u1b", "a2"]
            assert [message.id for message in await session.get_branches("u1")] == ["a1", "a1b"]


def test_empty_mapping_is_an_empty_conversation() -> None:
    """A conversation without nodes is a conversation without messages (IMP-7)."""
    conversation = read({}, title="")
    assert (conversation.messages, conversation.leaf_id, conversation.title) == ((), None, None)


def test_parents_win_over_lists_of_children() -> None:
    """A stated parent counts, and a list of children only fills in one that is missing (IMP-7)."""
    mapping = mapping_of(("root", None, None), ("u", "root", said("user", "x")), ("a", "u", said("assistant", "y"))) | {
        "late": {"message": said("user", "z"), "parent": None}
    }
    mapping["root"]["children"] = ["a", "u"]
    mapping["a"]["children"] = ["u", "late"]
    conversation = read(mapping)
    assert tree(conversation) == {"u": None, "a": "u", "late": "a"}
    assert conversation.repaired_links == 0


def test_filled_in_link_closes_no_cycle() -> None:
    """A node that lists its own ancestor as a child does not become that ancestor's parent."""
    mapping = mapping_of(("u", None, said("user", "x")), ("a", "u", said("assistant", "y")))
    mapping["a"]["children"] = ["u"]
    conversation = read(mapping)
    assert (tree(conversation), conversation.repaired_links) == ({"u": None, "a": "u"}, 0)


def test_mapping_without_links_is_a_chain() -> None:
    """Nodes that state neither parents nor children follow each other in file order."""
    conversation = read({key: {"message": said("user", key)} for key in ("b", "a", "c")})
    assert tree(conversation) == {"b": None, "a": "b", "c": "a"}


def test_broken_links_are_repaired_and_counted() -> None:
    """An unknown parent, a node as its own parent and a cycle each make a root, and nothing is lost."""
    nodes = [("lost", "gone"), ("self", "self"), ("x", "z"), ("y", "x"), ("z", "y"), ("w", "z")]
    conversation = read(mapping_of(*((key, parent, said("user", key)) for key, parent in nodes)))
    assert tree(conversation) == {"lost": None, "self": None, "x": None, "y": "x", "z": "y", "w": "z"}
    assert conversation.repaired_links == 3
    assert conversation.messages[0].message["metadata"]["chatgpt"]["parent"] == "gone"


def test_order_in_the_file_does_not_matter() -> None:
    """Children that stand before their parents in the file come after them in the log, siblings stay in file order."""
    nodes = [("c", "b"), ("b2", "a"), ("a", None), ("b", "a")]
    conversation = read(mapping_of(*((key, parent, said("user", key)) for key, parent in nodes)))
    assert list(tree(conversation)) == ["a", "b2", "b", "c"]


def test_wrapped_conversation_is_found() -> None:
    """A conversation that a capture tool wrapped is read, and what the wrapper says is kept."""
    payload = {"id": "inner", "mapping": EDITED}
    conversation = read_value({"captured_by": "tool", "raw_provider_payload": payload})
    assert (conversation.source_id, tree(conversation)) == ("inner", EDITED_TREE)
    assert conversation.metadata is not None
    assert conversation.metadata["chatgpt"]["wrapper"] == {"captured_by": "tool"}


def test_conversation_without_an_id_gets_the_same_one_again() -> None:
    """The id of a conversation that has none is made from its content, whatever the order of its keys."""
    first = read_value({"title": "t", "mapping": EDITED})
    again = read_value({"mapping": EDITED, "title": "t"})
    assert first.source_id == again.source_id != read_value({"mapping": EDITED}).source_id


def test_model_is_the_one_that_answered_last() -> None:
    """The model of a conversation is its last message's, else the conversation's default."""
    one, two = (said("assistant", "x", metadata={"model_slug": slug}) for slug in ("one", "two"))
    assert read(mapping_of(("a", None, one), ("b", "a", two)), default_model_slug="auto").model == "two"
    assert read({}, default_model_slug="auto").model == "auto"


@pytest.mark.parametrize("value", [None, 3, "x", [], {"mapping": []}, {"title": "gone"}])
def test_entry_without_a_mapping_is_reported(value: object) -> None:
    """What is no conversation is skipped, with its place in the file and the reason."""
    (problem,) = parse(read_document("export.json", json.dumps([value]).encode()))
    assert isinstance(problem, Problem)
    assert (problem.index, problem.skipped, problem.file) == (0, True, "export.json")


@pytest.mark.parametrize("linked_by", ["parents", "children", "order"])
def test_long_chains_are_read(linked_by: str) -> None:
    """A chain of twenty thousand nodes is read whole, however its links are stated."""
    keys = [f"n{number}" for number in range(20_000)]
    mapping: dict[str, Node] = {key: {"message": said("user", key)} for key in keys}
    for key, child in pairwise(keys) if linked_by != "order" else ():
        mapping[key if linked_by == "children" else child] |= (
            {"children": [child]} if linked_by == "children" else {"parent": key}
        )
    conversation = read(dict(reversed(mapping.items())) if linked_by == "parents" else mapping)
    assert list(tree(conversation).items()) == list(zip(keys, [None, *keys], strict=False))


def test_long_reasoning_is_read() -> None:
    """Ten thousand thoughts in a row fold into the answer at their end."""
    keys = [f"t{number}" for number in range(10_000)]
    chain = ((key, above, thought()) for key, above in zip(keys, [None, *keys], strict=False))
    conversation = read(mapping_of(*chain, ("a", keys[-1], said("assistant", "x"))))
    assert tree(conversation) == {"a": None}
    assert len(parts(conversation, "a")) == 10_001
