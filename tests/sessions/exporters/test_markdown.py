from __future__ import annotations

from typing import Any

import pytest

from sessions import SessionManager, Store
from sessions.exporters.markdown import label, parts_to_markdown
from tests.sessions.exporters.exports import branching, exported
from tests.sessions.talk import said


async def test_transcript(store: Store) -> None:
    """A transcript has the session's name and id, then each message under its role and its time in UTC."""
    await SessionManager(store).create("A\nwalk", id="walk", model="m-1")
    session = SessionManager(store).get_session("walk")
    await session.append_message(said("u1", "Where to?", createdAt="2026-01-05T12:00:00+02:00"))
    await session.append_message({**said("a1", "The sea."), "role": "assistant", "createdAt": "2026-01-05T10:01:00Z"})
    text = await exported(store, "walk", "md")
    head, _, body = text.partition("\n\n## ")
    assert head.startswith("# A walk\n\n`walk` · m-1 · ")
    assert body == ("user · 2026-01-05 10:00 +0000\n\nWhere to?\n\n## assistant · 2026-01-05 10:01 +0000\n\nThe sea.\n")


async def test_summary_is_marked(store: Store) -> None:
    """A summary stands in place of what it covers, and its heading says that it is one."""
    await branching(store)
    text = await exported(store, "walk", "md")
    assert "## assistant · summary of what was said before · " in text
    assert "They met." in text
    assert "There." not in text


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("no fence", ""),
        ("```\ncode\n```", ""),
        ("a\n```py\nopen", "\n```"),
        ("`````\n```\nopen", "\n`````"),
        ("~~~ a `b`\nopen", "\n~~~"),
        ("```\n~~~\n```\nclosed", ""),
        ("```one``` line", ""),
        ("    ```\nindented", ""),
    ],
)
def test_open_fence_is_closed(text: str, added: str) -> None:
    """A block of code that a text leaves open ends with the text, so that it cannot take in what follows."""
    assert parts_to_markdown([{"type": "text", "text": text}]) == [text + added]


def test_fences_are_longer_than_what_they_hold() -> None:
    """Input and output of a tool stand in fences that are longer than any run of backticks in them."""
    part: dict[str, Any] = {"type": "tool-run", "input": {"a": "````"}, "output": "``` and ``````"}
    blocks = parts_to_markdown([part])
    assert blocks[1].splitlines()[0] == "`````json"
    assert blocks[3] == "```````\n``` and ``````\n```````"


def test_old_form_of_a_call() -> None:
    """A call that stands in an object of its own within the part is shown like any other."""
    inner = {"toolName": "find", "toolCallId": "c", "args": "x", "result": "y", "state": "result"}
    old = parts_to_markdown([{"type": "tool-invocation", "toolInvocation": inner}])
    assert old == parts_to_markdown([{"type": "tool-find", "input": "x", "output": "y"}])


def test_result_on_its_own() -> None:
    """A result that stands apart from its call is called one, of the tool that it names; it is no tool "result"."""
    bare = {"type": "tool-result", "toolCallId": "c", "result": "y"}
    assert parts_to_markdown([bare])[0] == "**tool result**"
    assert parts_to_markdown([bare | {"toolName": "find"}])[0] == "**tool result** `find`"
    assert parts_to_markdown([bare | {"input": {}}])[0] == "**tool** `result`"


def test_label_is_one_line() -> None:
    """A name keeps what can be seen, joined emoji too, and cannot break a line or turn the direction of text."""
    assert label("a 👩‍🚀 b") == "a 👩‍🚀 b"
    assert label("a\nb\x1b\u202e") == "a\ufffdb\ufffd\ufffd"
