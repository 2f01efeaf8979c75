from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.importers import Conversation, Problem
from sessions.importers.ai_sdk import parse, recognises
from sessions.importers.document import read_document

TEXT = [{"type": "text", "text": "T"}]


def said(message_id: str | None, role: object = "user", parts: object = TEXT, **more: object) -> dict[str, Any]:
    """Return a message of version 5."""
    return {**({} if message_id is None else {"id": message_id}), "role": role, "parts": parts, **more}


def read_bytes(data: bytes) -> tuple[list[Conversation], list[Problem]]:
    """Return what a file holds."""
    found = list(parse(read_document("f.json", data)))
    conversations = [item for item in found if isinstance(item, Conversation)]
    return conversations, [item for item in found if isinstance(item, Problem)]


def read(value: object) -> Conversation:
    """Return the one conversation of a file."""
    (found,), problems = read_bytes(json.dumps(value).encode())
    assert problems == []
    return found


def parts(*given: object, **more: object) -> list[dict[str, Any]]:
    """Return what becomes of the parts of a message."""
    (message,) = read([said("m", "assistant", list(given), **more)]).messages
    found: list[dict[str, Any]] = message.message["parts"]
    return found


def test_message_of_version_5_stays_as_it_is() -> None:
    """A message of version 5 or 6 is stored as it stands, its parts in whatever state, and other keys with it."""
    call = {"type": "tool-read", "toolCallId": "c", "state": "approval-requested", "input": {}, "approval": {"id": "p"}}
    message = said(
        "m1", "assistant", [{"type": "step-start"}, call, {"type": "acme", "x": 1}], metadata={"n": 1}, extra=[1]
    )
    found = read([said("m0"), message])
    assert found.messages[1].message == message
    assert [(one.id, one.parent_id) for one in found.messages] == [("m0", None), ("m1", "m0")]
    assert (found.leaf_id, found.overlays, found.repaired_links) == ("m1", (), 0)


@pytest.mark.parametrize(
    ("more", "time"),
    [
        ({"createdAt": "2025-04-09T00:18:06.993Z"}, "2025-04-09T00:18:06.993Z"),
        ({"metadata": {"createdAt": 1_763_000_000_000}}, "2025-11-13T02:13:20.000Z"),
        ({"metadata": {"timestamp": 1_763_000_000}}, "2025-11-13T02:13:20.000Z"),
        ({"metadata": {"createdAt": 0, "timestamp": "2025-04-09"}}, None),
        ({}, None),
    ],
    ids=["own", "in the metadata", "timestamp", "unreadable", "none"],
)
def test_time_is_found(more: dict[str, object], time: str | None) -> None:
    """The time stands at the message or in its metadata, as text or number."""
    (message,) = read([said("m", **more)]).messages
    assert message.message.get("createdAt") == time


@pytest.mark.parametrize(
    ("role", "stored"),
    [("user", "user"), ("data", "system"), ("developer", "system"), (None, "system"), ([], "system")],
)
def test_roles(role: object, stored: str) -> None:
    """A role that is unknown or missing, and that of data, is system; what it was is kept."""
    (message,) = read([said("m", role)]).messages
    assert message.message["role"] == stored
    assert message.message.get("metadata", {"ai-sdk": {"role": role}}) == {"ai-sdk": {"role": role}}


def test_calls_of_version_4() -> None:
    """A call of version 4 becomes a part with the name of the tool, in the state that it was in."""
    told = [
        {"state": "result", "toolCallId": "1", "toolName": "read", "args": {"a": 1}, "result": [2], "step": 0},
        {"state": "call", "toolCallId": "2", "toolName": "read", "args": {}},
        {"state": "partial-call", "toolCallId": "3", "toolName": "read"},
        {"toolCallId": "4"},
        "no call",
    ]
    found = parts(*({"type": "tool-invocation", "toolInvocation": one} for one in told))
    assert found[0] == {
        "type": "tool-read",
        "toolCallId": "1",
        "state": "output-available",
        "input": {"a": 1},
        "output": [2],
        "callProviderMetadata": {"ai-sdk": {"step": 0}},
    }
    assert [part.get("state") for part in found[1:]] == ["input-available", "input-streaming", "input-available", None]
    assert [part["type"] for part in found] == ["tool-read"] * 3 + ["dynamic-tool", "data-ai-sdk-part"]


def test_calls_that_stand_twice_count_once() -> None:
    """The list of calls beside the parts is read only where there are no parts."""
    call = {"state": "result", "toolCallId": "1", "toolName": "read", "args": {}, "result": 1}
    part = {"type": "tool-invocation", "toolInvocation": call}
    assert len(parts(part, toolInvocations=[call])) == 1
    (message,) = read([{"id": "m", "role": "assistant", "content": "C", "toolInvocations": [call]}]).messages
    assert [part["type"] for part in message.message["parts"]] == ["text", "tool-read"]


def test_other_parts_of_version_4() -> None:
    """Reasoning, files, sources and attachments of version 4 take the shapes of today."""
    source = {"sourceType": "url", "id": "s", "url": "https://a.example", "title": "A"}
    found = parts(
        {"type": "reasoning", "reasoning": "R", "details": [1]},
        {"type": "file", "mimeType": "image/png", "data": "QUJD"},
        {"type": "source", "source": source},
        {"type": "source"},
        "bare",
        {"no": "type"},
        experimental_attachments=[{"name": "a.txt", "contentType": "text/plain", "url": "data:,a"}, 7],
    )
    assert found == [
        {"type": "reasoning", "text": "R", "providerMetadata": {"ai-sdk": {"details": [1]}}},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QUJD"},
        {"type": "source-url", "sourceId": "s", "url": "https://a.example", "title": "A"},
        {"type": "data-ai-sdk-part", "data": {"type": "source"}},
        {"type": "text", "text": "bare"},
        {"type": "data-ai-sdk-part", "data": {"no": "type"}},
        {"type": "file", "mediaType": "text/plain", "url": "data:,a", "filename": "a.txt"},
        {"type": "data-ai-sdk-part", "data": 7},
    ]


def test_messages_with_one_id_are_all_stored() -> None:
    """Messages with the same id, or with none, get ids of their own, the same each time."""
    listed = [said("m"), said("m"), said("m-2"), said(None), said(None), said("a\0b")]
    first, again = read(listed), read(listed)
    names = [one.id for one in first.messages]
    assert names == [one.id for one in again.messages]
    assert names[:3] == ["m", "m-2", "m-2-2"]
    assert len(set(names)) == 6
    assert first.messages[1].message["metadata"] == {"ai-sdk": {"id": "m"}}


def test_list_that_has_grown_is_known_again() -> None:
    """A list with ids that are surely its own keeps its id when it grows; one without has that of its content."""
    own = [said("m1"), said("msg-0123456789abcdef"), said("msg-fedcba9876543210")]
    assert read(own[:2]).source_id == read(own).source_id == "msg-0123456789abcdef"
    short = [said("m1"), said("m2")]
    assert read(short).source_id == read(short).source_id
    assert read(short[:1]).source_id != read(short).source_id


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (json.dumps([said("a"), said("b")]), [("", ["a", "b"])]),
        ("\n".join(json.dumps(said(name)) for name in "ab"), [("", ["a", "b"])]),
        (json.dumps(said("a")), [("", ["a"])]),
        (json.dumps({"id": "c", "messages": [said("a")]}), [("c", ["a"])]),
        ("\n".join(json.dumps({"id": name, "messages": [said("a")]}) for name in "cd"), [("c", ["a"]), ("d", ["a"])]),
        (json.dumps([{"id": "c", "messages": []}, {"id": "d", "messages": [said("a")]}]), [("c", []), ("d", ["a"])]),
        (json.dumps([[said("a")], [said("b")]]), [("", ["a"]), ("", ["b"])]),
    ],
    ids=["list", "lines", "one message", "wrapped", "wrapped in lines", "list of wrapped", "list of lists"],
)
def test_lists_are_found(data: str, found: list[tuple[str, list[str]]]) -> None:
    """A list of messages is one conversation, bare or wrapped, and so are messages that stand in lines."""
    conversations, problems = read_bytes(data.encode())
    ids = [
        (one.source_id if name else "", [m.id for m in one.messages])
        for (name, _), one in zip(found, conversations, strict=True)
    ]
    assert (ids, problems) == (found, [])


def test_torn_list_is_read_up_to_the_tear() -> None:
    """The messages before the tear of a list are a conversation, and the tear is told."""
    text = json.dumps([said("m0"), said("m1")]).removesuffix("]") + ',{"id"'
    (conversation,), (problem,) = read_bytes(text.encode())
    assert [one.id for one in conversation.messages] == ["m0", "m1"]
    assert problem.index == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"parts": None, "content": ["one", {"type": "text", "text": "two"}]}, [("text", "one"), ("text", "two")]),
        ({"parts": None, "content": None}, [("text", "")]),
        ({"parts": None}, [("text", "")]),
        ({"parts": None, "content": 7}, [("data-ai-sdk-part", 7)]),
        ({"parts": None, "content": "", "toolInvocations": "odd", "experimental_attachments": 5}, [("text", "")]),
        ({"parts": None, "content": "a", "experimental_attachments": [3]}, [("text", "a"), ("data-ai-sdk-part", 3)]),
    ],
    ids=range(6),
)
def test_content_of_any_shape_makes_parts(given: dict[str, Any], expected: list[tuple[str, Any]]) -> None:
    """Whatever stands for the content of a message becomes parts, and what is not understood is kept as data."""
    (message,) = read([{"id": "m", "role": "user", **given}]).messages
    found = [(part["type"], part.get("text", part.get("data"))) for part in message.message["parts"]]
    assert found == expected


def test_time_that_cannot_be_read_is_kept() -> None:
    """A time that is none stays with the message as it was written, and the message has no time of its own."""
    (message,) = read([said("m", createdAt="yesterday")]).messages
    assert message.message["metadata"] == {"ai-sdk": {"createdAt": "yesterday"}}
    assert "createdAt" not in message.message


def test_attachments_and_sources_without_names() -> None:
    """An attachment without a name, or a type, and a source without a title have none, and nothing is made up."""
    file, source = parts(
        {"type": "source", "source": {"id": "s", "url": "https://example.com"}},
        experimental_attachments=[{"url": "data:,x"}],
    )[::-1]
    assert file == {"type": "file", "mediaType": "application/octet-stream", "url": "data:,x"}
    assert source == {"type": "source-url", "sourceId": "s", "url": "https://example.com"}


def test_what_is_no_message_is_told() -> None:
    """An entry that is no message and holds none is skipped and told; what is odd in a list is kept as data."""
    conversations, problems = read_bytes(json.dumps([said("a"), 7, {"id": "c"}]).encode())
    assert [(problem.index, problem.skipped) for problem in problems] == [(1, True), (2, True)]
    assert [one.id for one in conversations[0].messages] == ["a"]
    odd = read({"id": "c", "messages": [said("a"), 7, {"role": "user", "content": {"x": 1}}]})
    assert [one.message["parts"][0]["type"] for one in odd.messages] == ["text", "data-ai-sdk-part", "data-ai-sdk-part"]


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (said("a"), True),
        ({"role": "assistant", "toolInvocations": []}, True),
        ({"messages": [{"role": "user", "content": "x"}, said("a")]}, True),
        ([said("a")], True),
        ({"messages": [{"role": "user", "content": "x"}]}, False),
        ({"messages": 3}, False),
        ({"toolInvocations": []}, False),
        (7, False),
    ],
)
def test_format_is_recognised(value: object, known: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """Any message with parts, or with a role and a list of calls, makes a file one of this format."""
    assert recognises(value) == known
