from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sessions import Store, StoredSession
from sessions.exporters.ai_sdk import to_ui_message
from tests.sessions.exporters.exports import exported
from tests.sessions.talk import said
from tests.sessions.tool_talk import call, message, result

TEXT = {"type": "text", "text": "hello"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "id": "m", "parts": [TEXT]}, {"role": "user", "id": "m", "parts": [TEXT]}),
        (
            {"id": "m", "role": "user", "metadata": {"a": 1}, "parts": []},
            {"id": "m", "role": "user", "metadata": {"a": 1}, "parts": []},
        ),
        ({"id": "m", "role": "user", "parts": [], "metadata": None}, None),
        ({"id": "m", "role": "user", "parts": [], "metadata": [1]}, None),
        (
            {"id": "m", "role": "user", "createdAt": "2026-01-05", "parts": [], "metadata": {"a": 1}},
            {"id": "m", "role": "user", "parts": [], "metadata": {"createdAt": "2026-01-05", "a": 1}},
        ),
        (
            {"id": "m", "role": "user", "parts": [], "x": 1, "metadata": [1]},
            {"id": "m", "role": "user", "parts": [], "metadata": {"x": 1, "metadata": [1]}},
        ),
        (
            {"id": "m", "role": "user", "parts": [], "x": 1, "metadata": {"x": 2}},
            {"id": "m", "role": "user", "parts": [], "metadata": {"x": 2}},
        ),
        (
            {"id": "m", "role": "tool", "parts": [TEXT]},
            {"id": "m", "role": "assistant", "parts": [TEXT], "metadata": {"role": "tool"}},
        ),
        (
            {"id": "m", "role": "assistant", "parts": [{"type": "tool-call", "toolName": "look", "args": {"q": 1}}]},
            {
                "id": "m",
                "role": "assistant",
                "parts": [{"type": "dynamic-tool", "state": "input-available", "input": {"q": 1}, "toolName": "look"}],
            },
        ),
        (
            {"id": "m", "role": "narrator", "parts": []},
            {"id": "m", "role": "system", "parts": [], "metadata": {"role": "narrator"}},
        ),
    ],
)
def test_message_as_ui_message(message: dict[str, Any], expected: dict[str, Any] | None) -> None:
    """A `UIMessage` comes out as it went in; what it has no place for is in its metadata, which has the last word."""
    assert list(to_ui_message(message).items()) == list((expected or message).items())


async def test_list_is_the_path_verbatim(store: Store) -> None:
    """The export is a JSON array of the messages of the path, a message a line, keys and values in their order."""
    given = [said("m1", "one"), {"parts": [{"n": 1.0, "type": "data-x"}], "role": "assistant", "id": "m2"}]
    await StoredSession(store, "s").append_messages(given)
    text = await exported(store, "s", "ai-sdk")
    assert text.splitlines() == [
        "[",
        '{"id":"m1","role":"user","parts":[{"type":"text","text":"one"}]},',
        '{"parts":[{"n":1.0,"type":"data-x"}],"role":"assistant","id":"m2"}',
        "]",
    ]
    assert msgspec.json.decode(text) == given


async def test_results_are_in_their_calls(store: Store) -> None:
    """A result in a message of its own comes out in the part of its call; one of no call is data."""
    lone, gone = result("gone"), result("c", result=2)
    told = [
        message("m1", "assistant", call("c"), call("d"), call("e")),
        message("m2", "tool", result("d", result="no", isError=True), result("c", result=1)),
        message("m3", "tool", lone, gone),
        message("m4", "tool", {"type": "tool-result", "toolCallId": "e", "errorText": "off"}, TEXT),
    ]
    await StoredSession(store, "s").append_messages(told)
    called, others, last = msgspec.json.decode(await exported(store, "s", "ai-sdk"))
    assert called["parts"] == [
        call("c", state="output-available", output=1),
        call("d", state="output-error", errorText="no"),
        call("e", state="output-error", errorText="off"),
    ]
    assert others["parts"] == [{"type": "data-tool-result", "data": part} for part in (lone, gone)]
    assert (last["id"], last["role"], last["parts"]) == ("m4", "assistant", [TEXT])


async def test_result_of_a_call_in_the_old_form(store: Store) -> None:
    """The result of a call that stands in an object of its own goes into that object."""
    inner = {"toolName": "look", "toolCallId": "c", "args": {}, "state": "call"}
    told = [
        message("m1", "assistant", {"type": "tool-invocation", "toolInvocation": inner}),
        message("m2", "tool", result("c")),
    ]
    await StoredSession(store, "s").append_messages(told)
    (called,) = msgspec.json.decode(await exported(store, "s", "ai-sdk"))
    assert called["parts"][0]["toolInvocation"] == inner | {"state": "result", "result": "found"}
