from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sessions import Store, StoredSession
from sessions.exporters.ai_sdk import to_ui_message
from tests.sessions.exporters.exports import exported
from tests.sessions.talk import said

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
