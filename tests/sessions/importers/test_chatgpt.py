from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.importers import Conversation, Problem
from sessions.importers.chatgpt import parse
from sessions.importers.document import read_document

Node = dict[str, Any]


def said(role: str, *parts: object, time: object = 1_700_000_000, **more: object) -> Node:
    """Return a message of an export."""
    content = {"content_type": "text", "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "create_time": time, "recipient": "all", **more}


def mapping_of(*nodes: tuple[str, str | None, Node | None]) -> dict[str, Node]:
    """Return a mapping of nodes, each given by its id, its parent and its message, with the lists of children."""
    mapping: dict[str, Node] = {}
    for key, parent, message in nodes:
        mapping[key] = {"id": key, "message": message, "parent": parent, "children": []}
    for key, parent, _ in nodes:
        if parent in mapping:
            mapping[parent]["children"].append(key)
    return mapping


def read(mapping: object, **more: object) -> Conversation:
    """Return the conversation that an export with this mapping holds."""
    return read_value({"conversation_id": "c1", "mapping": mapping, **more})


def read_value(value: object) -> Conversation:
    """Return the one conversation of an export."""
    (found,) = parse(read_document("export.json", json.dumps([value]).encode()))
    assert isinstance(found, Conversation)
    return found


def tree(conversation: Conversation) -> dict[str, str | None]:
    """Return the parent of every message, in log order."""
    return {item.id: item.parent_id for item in conversation.messages}


def parts(conversation: Conversation, key: str) -> list[dict[str, Any]]:
    """Return the parts of one message."""
    (found,) = (item.message["parts"] for item in conversation.messages if item.id == key)
    assert isinstance(found, list)
    return found


HIDDEN = {"is_visually_hidden_from_conversation": True}
PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 2}

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
    """Edited and regenerated turns are siblings, the null root is bridged, and the tip is the current node."""
    conversation = read(EDITED, current_node="a2")
    assert tree(conversation) == EDITED_TREE
    assert (conversation.leaf_id, conversation.repaired_links) == ("a2", 0)


def test_parts_and_marks_are_kept() -> None:
    """A picture is a file part after its text, a hidden message is marked, and a missing time is not invented."""
    messages = {item.id: item.message for item in read(EDITED).messages}
    assert [part["type"] for part in messages["u1b"]["parts"]] == ["text", "file"]
    assert messages["u1b"]["parts"][1]["url"] == "file-service://file-1"
    assert [key for key, message in messages.items() if message["metadata"].get("hidden")] == ["s"]
    assert [key for key, message in messages.items() if "createdAt" not in message] == ["a1"]


@pytest.mark.parametrize("current", [{}, {"current_node": None}, {"current_node": "gone"}, {"current_node": 7}])
def test_missing_current_node_means_the_newest_leaf(current: dict[str, object]) -> None:
    """Without a current node the tip is the leaf with the latest time, of equals the last in the file."""
    assert read(EDITED, **current).leaf_id == "a2"
    later = EDITED | {"a1b": EDITED["a1b"] | {"message": said("assistant", "another", time=1_700_000_001)}}
    assert read(later, **current).leaf_id == "a1b"


def test_current_node_without_a_message_means_the_one_above() -> None:
    """A current node that was bridged or folded stands for the message that took its place."""
    nodes = (("u", None, said("user", "x")), ("c", "u", said("assistant", "y", recipient="web")))
    tail = (("t", "c", said("tool", "z")), ("n", "t", None))
    assert read(mapping_of(*nodes, *tail), current_node="n").leaf_id == "c"


def test_empty_mapping_is_an_empty_conversation() -> None:
    """A conversation without nodes is a conversation without messages."""
    conversation = read({}, title="")
    assert (conversation.messages, conversation.leaf_id, conversation.title) == ((), None, None)


def test_parents_win_over_lists_of_children() -> None:
    """Where the two disagree a stated parent counts, and a list of children only fills in a parent that is missing."""
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


def test_tool_results_fold_into_their_call() -> None:
    """A call takes in the tool nodes below it, in a chain or side by side, and what follows hangs on the call."""
    conversation = read(
        mapping_of(
            ("u", None, said("user", "draw")),
            ("call", "u", said("assistant", '{"n": 2}', recipient="dalle.text2im")),
            ("t1", "call", said("tool", PICTURE)),
            ("t2", "t1", said("tool", "done")),
            ("t3", "call", said("tool", "again")),
            ("a", "t2", said("assistant", "here")),
        )
    )
    assert tree(conversation) == {"u": None, "call": "u", "a": "call"}
    assert parts(conversation, "call") == [
        {
            "type": "dynamic-tool",
            "toolName": "dalle.text2im",
            "toolCallId": "call",
            "state": "output-available",
            "input": {"n": 2},
            "output": [[PICTURE], "done", "again"],
        }
    ]
    kept = conversation.messages[1].message["metadata"]["chatgpt"]["results"]
    assert [result["node"] for result in kept] == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ({"content_type": "execution_output", "text": "1"}, "1"),
        ({"content_type": "text", "parts": ["a"]}, "a"),
        ({"content_type": "text", "parts": ["a", "b"]}, ["a", "b"]),
        ({"content_type": "multimodal_text", "parts": [PICTURE]}, [PICTURE]),
        (
            {"content_type": "tether_quote", "text": "a", "url": "b"},
            {"content_type": "tether_quote", "text": "a", "url": "b"},
        ),
        (None, ""),
    ],
)
def test_output_is_text_or_the_blocks_as_they_are(content: object, output: object) -> None:
    """A result that is one text becomes a string, and any other stays as it is."""
    tool = said("tool") | {"content": content}
    (call,) = parts(read(mapping_of(("c", None, said("assistant", "x", recipient="web")), ("t", "c", tool))), "c")
    assert (call["input"], call["output"]) == ("x", output)


def test_failed_tool_is_an_error() -> None:
    """A call whose result is an error of the system ends in an error."""
    error = said("tool") | {"content": {"content_type": "system_error", "name": "Timeout", "text": "too late"}}
    (call,) = parts(read(mapping_of(("c", None, said("assistant", "x", recipient="web")), ("t", "c", error))), "c")
    assert (call["state"], call["errorText"]) == ("output-error", "too late")


def test_call_without_a_result_waits() -> None:
    """A call that nothing answers has an input and no output."""
    (call,) = parts(read(mapping_of(("c", None, said("assistant", "x", recipient="web")))), "c")
    assert (call["state"], "output" in call) == ("input-available", False)


def test_tool_node_without_a_call_is_a_message() -> None:
    """A tool node below no call keeps its role, its text and its files."""
    conversation = read(mapping_of(("u", None, said("user", "x")), ("t", "u", said("tool", "y", PICTURE))))
    assert conversation.messages[1].message["role"] == "tool"
    assert [part["type"] for part in parts(conversation, "t")] == ["text", "file"]


def thought(kind: str = "thoughts") -> Node:
    """Return a message that is reasoning."""
    content = {"content_type": kind, "thoughts": [{"summary": "S", "content": "C"}], "content": None}
    return said("assistant") | {"content": content}


def test_reasoning_folds_into_the_answer() -> None:
    """Reasoning and its recap become parts of the one answer below them, first things first."""
    recap = said("assistant") | {"content": {"content_type": "reasoning_recap", "content": "Thought"}}
    conversation = read(
        mapping_of(
            ("u", None, said("user", "x")), ("t", "u", thought()), ("r", "t", recap), ("a", "r", said("assistant", "y"))
        ),
        current_node="r",
    )
    assert (tree(conversation), conversation.leaf_id) == ({"u": None, "a": "u"}, "a")
    assert [(part["type"], part["text"]) for part in parts(conversation, "a")] == [
        ("reasoning", "S\nC"),
        ("reasoning", "Thought"),
        ("text", "y"),
    ]


@pytest.mark.parametrize(
    "below",
    [
        [],
        [("a", "t", said("assistant", "y")), ("b", "t", said("assistant", "z"))],
        [("a", "t", said("user", "y"))],
    ],
    ids=["none", "two", "a person's"],
)
def test_reasoning_without_one_answer_is_a_message(below: list[tuple[str, str, Node]]) -> None:
    """Reasoning that no single answer follows is an assistant message with one reasoning part."""
    conversation = read(mapping_of(("u", None, said("user", "x")), ("t", "u", thought()), *below))
    assert tree(conversation) == {"u": None, "t": "u"} | {key: parent for key, parent, _ in below}
    assert [part["type"] for part in parts(conversation, "t")] == ["reasoning"]


def test_attachments_are_files_once() -> None:
    """An attachment that a pointer shows gives the pointer its name, and any other is a file of its own."""
    attachments = [
        {"id": "file-1", "name": "a.png", "mime_type": "image/png"},
        {"id": "file-12", "name": "b.pdf", "mime_type": "application/pdf"},
        {"id": "file-", "name": "c"},
    ]
    voice = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_a"}
    video = {
        "content_type": "real_time_user_audio_video_asset_pointer",
        "audio_asset_pointer": {"asset_pointer": "sediment://file_b"},
    }
    message = said("user", PICTURE, voice, video, "look", metadata={"attachments": attachments})
    files = [part for part in parts(read(mapping_of(("u", None, message))), "u") if part["type"] == "file"]
    assert [(file["mediaType"], file["url"], file.get("filename")) for file in files] == [
        ("image/png", "file-service://file-1", "a.png"),
        ("audio/*", "sediment://file_a", None),
        ("video/*", "sediment://file_b", None),
        ("application/pdf", "file-service://file-12", "b.pdf"),
        ("application/octet-stream", "file-service://file-", "c"),
    ]


def test_citations_are_sources_once() -> None:
    """Each address that a message cites is one source part, whichever list names it."""
    metadata = {
        "citations": [{"metadata": {"url": "https://a.example", "title": "A"}}, {"metadata": None}, "odd"],
        "content_references": [
            {"type": "hidden"},
            {"type": "webpage", "url": "https://a.example", "title": "A again"},
            {"type": "nav_list", "items": [{"url": "https://b.example"}]},
            {"type": "sources_footnote", "sources": [{"url": "https://c.example", "title": "C"}]},
        ],
    }
    found = parts(read(mapping_of(("a", None, said("assistant", "x", metadata=metadata)))), "a")
    assert [(part["url"], part.get("title")) for part in found if part["type"] == "source-url"] == [
        ("https://a.example", "A"),
        ("https://b.example", None),
        ("https://c.example", "C"),
    ]


def test_nothing_of_the_source_is_lost() -> None:
    """Unknown parts become data parts, and what no part says stays in the metadata as it was."""
    odd = {"content_type": "hologram", "x": 1}
    record = said("assistant", "a", odd, None, weight=0, channel="final", id="m1", metadata={"new": [1]})
    node = {"message": record, "parent": None, "flag": True}
    conversation = read({"n": node}, gizmo_id="g")
    message = conversation.messages[0].message
    assert message["parts"][1:] == [
        {"type": "data-chatgpt-hologram", "data": odd},
        {"type": "data-chatgpt-part", "data": None},
    ]
    assert message["metadata"] == {
        "chatgpt": {
            "message": {key: value for key, value in record.items() if key != "content"},
            "node": {"flag": True},
        },
        "hidden": True,
    }
    assert conversation.metadata is not None
    assert conversation.metadata["chatgpt"]["gizmo_id"] == "g"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, [{"type": "text", "text": ""}]),
        ({}, [{"type": "text", "text": ""}]),
        ({"content_type": "text", "parts": []}, [{"type": "text", "text": ""}]),
        ("plain", [{"type": "text", "text": "plain"}]),
        ({"parts": ["a", "b"]}, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ({"content_type": "code", "language": "c", "text": "x"}, [{"type": "text", "text": "x"}]),
        ({"content_type": "user_editable_context", "user_profile": "p"}, [{"type": "text", "text": "p"}]),
        ({"content_type": "new", "x": 1}, [{"type": "data-chatgpt-new", "data": {"content_type": "new", "x": 1}}]),
        ([1], [{"type": "data-chatgpt-content", "data": [1]}]),
    ],
)
def test_every_content_makes_parts(content: object, found: list[dict[str, object]]) -> None:
    """Whatever the content is, the message has parts that say it."""
    assert parts(read({"n": {"message": said("user") | {"content": content}}}), "n") == found


@pytest.mark.parametrize(
    ("author", "role"),
    [
        ({"role": "developer"}, "system"),
        ({"role": "critic"}, "system"),
        ({}, "system"),
        (None, "system"),
        ({"role": "tool"}, "tool"),
    ],
)
def test_roles_are_the_four(author: object, role: str) -> None:
    """A role that is unknown, missing or the developer's is stored as system."""
    assert read({"n": {"message": said("user") | {"author": author}}}).messages[0].message["role"] == role


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


KEYS = st.sampled_from([f"k{number}" for number in range(6)])
SCALARS: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JUNK = SCALARS | st.lists(SCALARS | st.dictionaries(KEYS, SCALARS, max_size=2), max_size=2)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return objects in which any field may be missing or be something else."""
    return st.fixed_dictionaries({}, optional={name: values | JUNK for name, values in fields.items()}) | JUNK


CONTENT = maybe(
    content_type=st.sampled_from(
        ["text", "thoughts", "reasoning_recap", "code", "image_asset_pointer", "system_error"]
    ),
    parts=st.lists(JUNK | maybe(content_type=st.just("image_asset_pointer"), asset_pointer=JUNK), max_size=3),
    thoughts=st.lists(maybe(summary=JUNK, content=JUNK), max_size=2),
    content=JUNK,
    text=JUNK,
)
MESSAGES = maybe(
    author=maybe(role=st.sampled_from(["user", "assistant", "tool", "system"])),
    content=CONTENT,
    recipient=st.sampled_from(["all", "web"]),
    metadata=maybe(
        attachments=st.lists(maybe(id=JUNK, name=JUNK), max_size=2),
        citations=st.lists(maybe(metadata=maybe(url=JUNK, title=JUNK)), max_size=2),
        content_references=JUNK,
    ),
    create_time=JUNK,
    weight=JUNK,
)
MAPPINGS = st.dictionaries(
    KEYS, maybe(message=st.none() | MESSAGES, parent=st.none() | KEYS, children=st.lists(KEYS, max_size=3)), max_size=6
)


def is_log_order(links: Iterable[tuple[str, str | None]]) -> bool:
    """Tell whether every parent stands before its children."""
    seen: set[str | None] = {None}
    return all(parent in seen and not seen.add(key) for key, parent in links)  # type: ignore[func-returns-value]


@given(mapping=MAPPINGS, current=KEYS | JUNK)
def test_any_mapping_makes_a_tree(mapping: dict[str, Any], current: object) -> None:
    """Any mapping is read to a tree whose tip is one of its messages, and every message has parts."""
    data = json.dumps({"mapping": mapping, "current_node": current}, allow_nan=True).encode()
    for found in parse(read_document("export.json", data)):
        if isinstance(found, Problem):
            assert b"NaN" in data or b"Infinity" in data
            continue
        links = tree(found)
        assert is_log_order(links.items())
        assert (found.leaf_id in links) == bool(links)
        assert all(item.message["parts"] for item in found.messages)
