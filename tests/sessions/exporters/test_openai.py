from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sessions import Store, StoredSession
from tests.sessions.exporters.exports import exported

SAID: dict[str, Any] = {"type": "text", "text": "hello"}
PNG = "data:image/png;base64,AAAA"


def call(name: str, **other: Any) -> dict[str, Any]:
    """Return a part that is a call of a tool."""
    return {"type": f"tool-{name}", "toolCallId": f"id-{name}", **other}


def made(name: str, arguments: str = "{}") -> dict[str, Any]:
    """Return a call as chat completions have it."""
    return {"id": f"id-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("role", "parts", "expected"),
    [
        ("user", [SAID, SAID], [{"role": "user", "content": "hello\nhello"}]),
        ("system", [SAID], [{"role": "system", "content": "hello"}]),
        ("tool", [SAID], [{"role": "user", "content": "hello"}]),
        ("user", [], [{"role": "user", "content": ""}]),
        ("assistant", [], [{"role": "assistant", "content": ""}]),
        ("assistant", [{"type": "reasoning", "text": "hm"}, SAID], [{"role": "assistant", "content": "hello"}]),
        (
            "assistant",
            [
                {"type": "step-start"},
                SAID,
                call("a", input={"q": 1}, output={"n": 2}),
                call("b", input="raw", errorText="no"),
                {"type": "step-start"},
                call("c"),
                SAID,
            ],
            [
                {"role": "assistant", "content": "hello", "tool_calls": [made("a", '{"q":1}'), made("b", "raw")]},
                {"role": "tool", "tool_call_id": "id-a", "content": '{"n":2}'},
                {"role": "tool", "tool_call_id": "id-b", "content": "no"},
                {"role": "assistant", "content": None, "tool_calls": [made("c")]},
                {"role": "tool", "tool_call_id": "id-c", "content": "(no result)"},
                {"role": "assistant", "content": "hello"},
            ],
        ),
        (
            "assistant",
            [{"type": "dynamic-tool", "toolName": "x", "output": ""}],
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "x", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": ""},
            ],
        ),
        (
            "user",
            [
                SAID,
                {"type": "file", "mediaType": "image/png", "url": PNG},
                {"type": "file", "mediaType": "audio/mpeg", "url": "data:audio/mpeg;base64,BBBB"},
                {"type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "url": "data:x;base64,CC"},
                {"type": "file", "mediaType": "image/png", "filename": "b.png", "url": "file-service://b"},
            ],
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "hello"},
                        {"type": "image_url", "image_url": {"url": PNG}},
                        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:x;base64,CC"}},
                        {"type": "text", "text": "[b.png](file-service://b)"},
                    ],
                }
            ],
        ),
        (
            "user",
            [SAID, call("a", input={"q": 1}, output="found")],
            [
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": None, "tool_calls": [made("a", '{"q":1}')]},
                {"role": "tool", "tool_call_id": "id-a", "content": "found"},
            ],
        ),
        (
            "user",
            [call("a", input={}, output="found")],
            [
                {"role": "assistant", "content": None, "tool_calls": [made("a")]},
                {"role": "tool", "tool_call_id": "id-a", "content": "found"},
            ],
        ),
        (
            "assistant",
            [call("a", output="x"), {"type": "step-start"}],
            [
                {"role": "assistant", "content": None, "tool_calls": [made("a")]},
                {"role": "tool", "tool_call_id": "id-a", "content": "x"},
            ],
        ),
        (
            "assistant",
            [{"type": "file", "mediaType": "image/png", "url": PNG}],
            [{"role": "assistant", "content": "[image/png]"}],
        ),
    ],
)
async def test_message_as_chat(store: Store, role: str, parts: list[Any], expected: list[dict[str, Any]]) -> None:
    """Texts and files are content, calls and results are messages, and every call is answered before what follows."""
    await StoredSession(store, "s").append_message({"id": "m", "role": role, "parts": parts})
    assert msgspec.json.decode(await exported(store, "s", "openai")) == expected
