from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given

from eventstore import InvalidMessageError
from sessions import Message, sanitize_tool_pairs
from sessions.pairs import STUB_RESULT
from tests.sessions.talk import ids, said
from tests.sessions.tool_talk import Parts, call, conversations, halves, message, result, text

TIME = dt.datetime(2030, 1, 2, tzinfo=dt.UTC)


@given(conversations())
def test_no_half_is_left(messages: list[Message]) -> None:
    """Whatever the conversation, each result left comes after its call, and each call has one result (CTX-8)."""
    assert halves(sanitize_tool_pairs(messages)) == []


@given(conversations())
def test_again_changes_nothing(messages: list[Message]) -> None:
    """What was mended is whole, so mending it again gives the same messages."""
    once = sanitize_tool_pairs(messages)
    assert sanitize_tool_pairs(once) == once


@given(conversations())
def test_what_is_whole_stays(messages: list[Message]) -> None:
    """Everything but results without a call stays as it was and in its order, and nothing but stubs is added."""
    mended = [one for one in sanitize_tool_pairs(messages) if not one.id.startswith("stub-")]
    by_id = {one.id: one for one in messages}
    assert ids(mended) == [one for one in ids(messages) if one in set(ids(mended))]
    for one in mended:
        taken_out = list(by_id[one.id].parts)
        for part in one.parts:
            taken_out.remove(part)
        assert all(part["type"] == "tool-result" for part in taken_out)
        others = [[part for part in some.parts if part["type"] != "tool-result"] for some in (one, by_id[one.id])]
        assert others[0] == others[1]


@given(conversations())
def test_given_messages_are_not_changed(messages: list[Message]) -> None:
    """The messages that are given stay as they are, however much is mended."""
    before = [one.to_dict() for one in messages]
    sanitize_tool_pairs(messages)
    assert [one.to_dict() for one in messages] == before
    assert [one.parts for one in messages] == [data["parts"] for data in before]


@pytest.mark.parametrize("last", range(1, 5))
def test_every_window(last: int) -> None:
    """The end of a history, however short, is given without an output whose call was cut off (CTX-8)."""
    history = [
        message("m1", "user", text("look")),
        message("m2", "assistant", call("c1")),
        message("m3", "tool", result("c1")),
        message("m4", "assistant", text("here it is")),
    ]
    kept = {1: ["m4"], 2: ["m4"], 3: ["m2", "m3", "m4"], 4: ["m1", "m2", "m3", "m4"]}
    assert ids(sanitize_tool_pairs(history[-last:])) == kept[last]


@pytest.mark.parametrize(
    "outcome",
    [
        {"output": "x"},
        {"output": None},
        {"result": []},
        {"state": "output-error", "errorText": "no"},
        {"state": "output-denied"},
    ],
)
def test_outcome_in_the_call(outcome: dict[str, Any]) -> None:
    """A call that holds an output, a result, an error or a refusal needs no stub."""
    assert ids(sanitize_tool_pairs([message("m1", "assistant", call("c1", **outcome))])) == ["m1"]


@pytest.mark.parametrize("outcome", [{"output": 1}, {"result": None}])
@pytest.mark.parametrize("role", ["tool", "user", "assistant"])
def test_outcome_in_another_message(role: str, outcome: dict[str, Any]) -> None:
    """An `output` and a `result` both answer a call, in a message of whichever role."""
    part = {"type": "tool-result", "toolCallId": "c1", **outcome}
    messages = [message("m1", "assistant", call("c1")), message("m2", role, part)]
    assert sanitize_tool_pairs(messages) == messages


def test_id_used_again() -> None:
    """Where each turn counts its calls anew, a call is not answered by the result of an earlier turn."""
    messages = [
        message("m1", "assistant", call("call_0")),
        message("m2", "tool", result("call_0")),
        message("m3", "assistant", call("call_0")),
        message("m4", "user", text("go on")),
    ]
    assert ids(sanitize_tool_pairs(messages)) == ["m1", "m2", "m3", "stub-call_0", "m4"]


def test_result_before_its_call() -> None:
    """A result that comes before its call is nobody's: it goes, and the call gets a stub."""
    messages = [message("m1", "tool", result("c1")), message("m2", "assistant", call("c1"))]
    assert ids(sanitize_tool_pairs(messages)) == ["m2", "stub-c1"]


def test_second_result() -> None:
    """Of two results of one call the first stays."""
    messages = [
        message("m1", "assistant", call("c1")),
        message("m2", "tool", result("c1", result=1), result("c1", result=2), text("both")),
    ]
    assert sanitize_tool_pairs(messages)[1].parts == [result("c1", result=1), text("both")]


def test_message_without_parts_stays() -> None:
    """A message is left out only when a result was all it held; one that was empty stays."""
    messages = [message("m1", "assistant"), message("m2", "tool", result("gone"))]
    assert ids(sanitize_tool_pairs(messages)) == ["m1"]


def test_stub() -> None:
    """A stub stands after the call's message, names the tool by its part's type if need be, and has the call's time."""
    parts = [call("c1"), {"type": "dynamic-tool", "toolCallId": "c2", "toolName": "find"}]
    parts += [{"type": "dynamic-tool", "toolCallId": "c3"}]
    calling = Message(id="m1", role="assistant", parts=parts, created_at=TIME)
    stubs = sanitize_tool_pairs([calling, said("m2")])[1:4]
    names = [stub.parts[0]["toolName"] for stub in stubs]
    assert names == ["look", "find", "unknown"]
    assert {(stub.role, stub.created_at, stub.parts[0]["result"]) for stub in stubs} == {
        ("assistant", TIME, STUB_RESULT)
    }


def test_same_in_same_out() -> None:
    """A stub for a call without a time has no time of the clock's, so that the same messages give the same."""
    messages = [said("m1"), {"id": "m2", "role": "assistant", "parts": [call("c1")]}]
    assert sanitize_tool_pairs(messages) == sanitize_tool_pairs(messages)


@pytest.mark.parametrize("own", [{"state": "output-available"}, {"input": {}}])
def test_tool_that_is_named_result(own: dict[str, Any]) -> None:
    """A call of a tool whose name is "result" is no result."""
    messages = [message("m1", "assistant", {"type": "tool-result", "toolCallId": "c1", "output": 1, **own})]
    assert sanitize_tool_pairs(messages) == messages


def test_parts_of_nobody() -> None:
    """Tool parts without a call id, or with one that is no text, are left alone."""
    parts: Parts = [
        {"type": "tool-look"},
        {"type": "dynamic-tool", "toolCallId": 7},
        {"type": "tool", "toolCallId": "c1"},
    ]
    messages = [message("m1", "assistant", *parts), message("m2", "tool", *parts)]
    assert sanitize_tool_pairs(messages) == messages


def test_what_a_message_holds_survives() -> None:
    """A message that loses a part keeps all other keys and values, in their order and with its time."""
    data: dict[str, Any] = {
        "parts": [result("gone"), {"type": "data-x", "n": 10**40, "z": -0.0}],
        "metadata": {"a": 1},
        "role": "tool",
        "id": "m1",
        "createdAt": "2030-01-02T00:00:00Z",
    }
    (kept,) = sanitize_tool_pairs([data])
    assert list(kept.to_dict().items()) == list({**data, "parts": data["parts"][1:]}.items())
    assert kept.created_at == TIME


def test_not_a_message() -> None:
    """What has not the shape of a message is refused, with the place of what is wrong."""
    with pytest.raises(InvalidMessageError) as raised:
        sanitize_tool_pairs([{"id": "m1", "role": "user", "parts": [{"text": "no type"}]}])
    assert raised.value.path == "parts[0].type"


@pytest.mark.parametrize("state", [["output-error"], {}, 1, None, True])
def test_state_that_is_no_text(state: object) -> None:
    """A call whose state is no text at all is a call without an outcome, and gets a stub."""
    part = {"type": "tool-x", "toolCallId": "1", "input": {}, "state": state}
    mended = sanitize_tool_pairs([message("a", "assistant", part)])
    assert [one.id.startswith("stub-") for one in mended] == [False, True]
