from __future__ import annotations

import pytest

from tests.sessions.importers.exports import (
    PICTURE,
    Node,
    mapping_of,
    parts,
    read,
    said,
    thought,
    tree,
)


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


@pytest.mark.parametrize("known", [{}, {"id": ""}, {"id": None}, {"id": 5}])
def test_attachment_without_an_id_is_a_file_of_its_own(known: dict[str, object]) -> None:
    """An attachment that no pointer can name is a file by its name, and gives that to no other."""
    message = said("user", PICTURE, metadata={"attachments": [{**known, "name": "a.png"}]})
    files = [part for part in parts(read(mapping_of(("u", None, message))), "u") if part["type"] == "file"]
    assert [file.get("filename") for file in files] == [None, "a.png"]


@pytest.mark.parametrize("text", ["{not json", "[1, 2", '{"a": 1} and more', "[" * 100_000])
def test_arguments_that_are_no_json_stay_text(text: str) -> None:
    """The input of a call that begins like JSON and is none stays the text that it is."""
    call = said("assistant", text, recipient="python")
    (found,) = parts(read(mapping_of(("u", None, said("user", "x")), ("c", "u", call))), "c")
    assert found["input"] == text


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
        (
            {"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "spoken"}]},
            [
                {
                    "type": "text",
                    "text": "spoken",
                    "providerMetadata": {"chatgpt": {"content_type": "audio_transcription"}},
                }
            ],
        ),
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
