from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from replay.cli.show import Depth, parts_at
from sessions import Message, SessionManager
from sessions.exporters.markdown import to_markdown
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


def test_branch_up_to_a_message(url: str) -> None:
    """With --leaf the branch up to that message is shown, whatever is the current one."""
    ids = [record["id"] for record in eventstore("show", "walk", "--leaf", "m5", "--raw", "--store", url).records]
    assert ids == ["m1", "m2", "m5"]
    assert "By bus?" in eventstore("show", "walk", "--leaf", "m5", "--store", url).lines


def test_leaf_by_its_beginning(make_store: Callable[[Fill], str]) -> None:
    """A message is named by a beginning of its id that no other id of the session has, else the failure says why."""

    async def fill(manager: SessionManager) -> None:
        for name in ("s", "other"):
            for message_id in ("abc1", "abc2", "b_d%", "b"):
                message: dict[str, object] = {"id": message_id, "role": "user", "parts": []}
                await manager.get_session(name).append_message(message, None)

    url = make_store(fill)

    def shown(leaf: str) -> list[str] | tuple[int, str]:
        ran = eventstore("show", "s", "--leaf", leaf, "--raw", "--store", url)
        return [record["id"] for record in ran.records] or (ran.code, ran.err.splitlines()[0])

    assert [shown(leaf) for leaf in ("abc1", "abc2", "b_", "b")] == [["abc1"], ["abc2"], ["b_d%"], ["b"]]
    assert shown("abc") == (2, "error: 'abc' stands for more than one message: abc1, abc2")
    hint = eventstore("show", "s", "--leaf", "abc", "--store", url).err.splitlines()[1]
    assert hint == f"hint: give more of the id: `eventstore graph s --store {url}` shows them"
    assert shown("") == (2, "error: the id of a message is empty")
    for leaf in ("ABC1", "c", "_", "%"):
        assert shown(leaf) == (3, f"error: session 's' has no message {leaf!r}")


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        ("user", {"u": ["text"]}),
        ("assistant", {"u": ["text"], "a": ["text"]}),
        ("tool", {"u": ["text"], "a": ["tool-find", "text"], "c": ["dynamic-tool"], "t": ["text"]}),
        (
            "all",
            {
                "y": ["text"],
                "u": ["text", "data-place"],
                "a": ["reasoning", "tool-find", "text"],
                "c": ["dynamic-tool"],
                "t": ["text"],
            },
        ),
    ],
)
def test_depth(depth: str, expected: dict[str, list[str]]) -> None:
    """Each depth shows what those before it do and more: the user, the assistant's words, calls of tools, all."""
    text = {"type": "text", "text": "said"}
    conversation: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "y": ("system", [text]),
        "u": ("user", [text, {"type": "data-place", "data": 1}]),
        "a": ("assistant", [{"type": "reasoning", "text": "thought"}, {"type": "tool-find"}, text]),
        "c": ("assistant", [{"type": "dynamic-tool", "toolName": "run"}]),
        "t": ("tool", [text]),
    }
    messages = [Message(id=name, role=role, parts=parts) for name, (role, parts) in conversation.items()]
    shown = {message.id: parts_at(Depth(depth), message) for message in messages}
    assert {name: [part["type"] for part in parts] for name, parts in shown.items() if parts is not None} == expected


def test_depth_of_a_transcript(url: str) -> None:
    """A transcript has the messages of its depth alone, and raw ones are chosen likewise but kept whole."""
    assert "Along the cliffs." not in eventstore("show", "walk", "--depth", "user", "--store", url).lines
    raw = eventstore("show", "walk", "--depth", "user", "--raw", "--store", url).records
    assert [record["id"] for record in raw] == ["m1", "m3"]


def test_compaction_stands_for_messages(changed: str) -> None:
    """A summary stands for the messages it covers and says so; with --compaction off they are shown themselves."""
    lines = eventstore("show", "s", "--store", changed).lines
    assert lines[4].startswith("## assistant · summary of what was said before · ")
    assert "What was said at first." in lines
    assert "one" not in lines
    raw = eventstore("show", "s", "--raw", "--store", changed).records
    assert [record["id"].partition("_")[0] for record in raw] == ["compaction", "m4", "m5"]
    off = eventstore("show", "s", "--compaction", "off", "--raw", "--store", changed).records
    assert [record["id"] for record in off] == ["m1", "m2", "m4", "m5"]
    assert "new lines" in eventstore("show", "s", "--compaction", "off", "--store", changed).lines


def test_covered_messages_are_pointed_to(changed: str) -> None:
    """For people a line on stderr says how the messages that a summary stands for are shown, and for programs none."""
    ran = eventstore("show", "s", "--table", "--store", changed)
    (line,) = ran.err.splitlines()
    assert line.startswith("1 summary stands for messages: `eventstore show s --compaction off ")
    off = eventstore(*shlex.split(line.split("`")[1])[1:], "--table")
    assert ("two" in off.lines, "new lines" in off.lines, off.err) == (True, True, "")
    leaf = eventstore("show", "s", "--leaf", "m4", "--table", "--store", changed).err
    assert "eventstore show s --leaf m4 --compaction off " in leaf
    for options in ([], ["--raw"], ["--json"], ["--ndjson"], ["--raw", "--table"]):
        assert eventstore("show", "s", *options, "--store", changed).err == ""
    assert eventstore("show", "s", "--leaf", "m1", "--table", "--store", changed).err == ""


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
