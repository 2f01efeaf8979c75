from __future__ import annotations

from collections.abc import Callable

import pytest

from replay.cli.markdown import to_markdown
from sessions import Message, SessionManager
from tests.cli.running import Fill, eventstore, terminal


def test_transcript_of_the_current_branch(url: str) -> None:
    """The transcript is Markdown: the name, then the messages from the root to the current leaf under their roles."""
    lines = eventstore("show", "walk", "--store", url).lines
    assert lines[0] == "# A walk by the sea"
    assert lines[2] == "`walk` · 5 messages, 2 branches"
    assert [line.split(" · ")[0] for line in lines if line.startswith("## ")] == [
        "## user",
        "## assistant",
        "## user",
        "## assistant",
    ]
    assert "Ten miles." in lines
    assert "By bus?" not in lines


@pytest.mark.parametrize("options", [["--raw"], ["--ndjson"]])
def test_raw_is_a_message_per_line(url: str, options: list[str]) -> None:
    """With --raw the messages are printed as they are stored, one per line."""
    records = eventstore("show", "walk", "--store", url, *options).records
    assert [record["id"] for record in records] == ["m1", "m2", "m3", "m4"]
    assert records[0] == {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Where to?"}]}


def test_json_is_one_array(url: str) -> None:
    """With --json the messages are one JSON array."""
    assert len(eventstore("show", "walk", "--store", url, "--json").value) == 4


def test_empty_session(url: str) -> None:
    """A session without messages has a transcript of its name alone."""
    ran = eventstore("show", "empty", "--store", url)
    assert (ran.code, ran.lines) == (0, ["# Nothing yet", "", "`empty` · 0 messages"])


def test_stored_text_cannot_steer_a_terminal(make_store: Callable[[Fill], str]) -> None:
    """Control characters of a message reach a pipe as they are, and a terminal only made visible."""

    async def fill(manager: SessionManager) -> None:
        parts = [{"type": "text", "text": "red \x1b[31m text"}]
        await manager.get_session("s").append_message({"id": "m", "role": "user", "parts": parts})

    url = make_store(fill)
    assert "red \x1b[31m text" in eventstore("show", "s", "--store", url).out
    shown = terminal("show", "s", "--store", url).out
    assert "red ␛[31m text" in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": "as *it* is"}, "as *it* is"),
        ({"type": "reasoning", "text": "first\n\nthen"}, "> *reasoning*\n>\n> first\n>\n> then"),
        ({"type": "step-start"}, ""),
        (
            {"type": "tool-find", "toolCallId": "c", "state": "output-available", "input": {"q": 1}, "output": "found"},
            '**tool** `find`\n\n```json\n{\n  "q": 1\n}\n```\n\n*output*\n\n```\nfound\n```',
        ),
        (
            {"type": "dynamic-tool", "toolName": "run", "state": "output-error", "input": "x", "errorText": "no"},
            "**tool** `run`\n\n```\nx\n```\n\n*error*\n\n```\nno\n```",
        ),
        (
            {"type": "dynamic-tool", "toolName": "run", "input": "a ````` b"},
            "**tool** `run`\n\n``````\na ````` b\n``````",
        ),
        (
            {"type": "file", "mediaType": "image/png", "url": "https://example.org/a b.png", "filename": "a b.png"},
            "[a b.png](<https://example.org/a b.png>) (image/png)",
        ),
        (
            {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{'A' * 100}"},
            "*file* (image/png, 122 characters inline)",
        ),
        (
            {"type": "source-url", "url": "https://example.org", "title": "A page"},
            "source: [A page](<https://example.org>)",
        ),
        ({"type": "data-weather", "data": {"rain": True}}, '*data-weather*\n\n```json\n{\n  "rain": true\n}\n```'),
        ({"type": "marker"}, "*marker*"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else None,
)
def test_part_as_markdown(part: dict[str, object], expected: str) -> None:
    """Each kind of part has its form in Markdown, and one that nobody foresaw is shown as data."""
    heading, _, body = to_markdown(Message(id="m", role="user", parts=[part])).partition("\n")
    assert (heading, body.strip("\n")) == ("## user", expected)


def test_hidden_message_says_so() -> None:
    """A message that its source did not show to a person is marked as hidden."""
    message = Message(id="m", role="system", parts=[], metadata={"hidden": True})
    assert to_markdown(message) == "## system · hidden\n"
