from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions import Message, build_summary_prompt, compute_summary_budget, estimate_message_tokens
from sessions.characters import utf16_length
from tests.sessions.tool_talk import Parts, conversations, message, text


def told(*parts: dict[str, Any], role: str = "assistant") -> str:
    """Return how the prompt tells one message."""
    prompt = build_summary_prompt([message("m1", role, *parts)], None, 250)
    return prompt.partition("<transcript>\n")[2].removesuffix("\n</transcript>")


def test_transcript() -> None:
    """Messages stand in the prompt in their order, each under its role, and parted from one another."""
    messages = [message("1", "user", text("Hi"), text("there")), message("2", "assistant", text("Hello {you}"))]
    assert "[user]\nHi\nthere\n\n---\n\n[assistant]\nHello {you}" in build_summary_prompt(messages, None, 250)


def test_tools() -> None:
    """A tool stands after the text, with its name, what went in as JSON, and what came out."""
    part = {"type": "tool-map", "toolCallId": "c", "toolName": "map", "input": "fountain", "output": "found"}
    assert told(part, text("Looking")) == '[assistant]\nLooking\n[Tool: map]\nInput: "fountain"\nOutput: found'


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ({"at": [12, 34.0], "ü": None}, 'Output: {"at":[12,34],"ü":null}'),
        ([1, [2, {"x": 1}]], 'Output: [1,[2,{"x":1}]]'),
        ("line\nbreak", "Output: line\nbreak"),
        (True, "Output: true"),
        (0, "Output: 0"),
        ("", "Output: "),
    ],
)
def test_output(output: object, line: str) -> None:
    """An output is told as it is when it is a text, else as compact JSON: nothing of an object is lost."""
    assert told({"type": "tool-map", "output": output}) == f"[assistant]\n\n[Tool: map]\n{line}"


def test_other_outcomes() -> None:
    """A result counts where there is no output, and an error is told as one."""
    parts: Parts = [
        {"type": "tool-result", "toolName": "a", "result": {"z": 1}},
        {"type": "dynamic-tool", "output": None, "result": "r"},
        {"type": "tool-b", "errorText": "no such file"},
    ]
    assert told(*parts, role="tool") == (
        '[tool]\n\n[Tool: a]\nOutput: {"z":1}\n[Tool: unknown]\nOutput: r\n[Tool: b]\nError: no such file'
    )


@given(st.lists(st.sampled_from(["x", "😀", "京", "e\u0301", "👨\u200d👩"]), min_size=200, max_size=600).map("".join))
def test_long_values_are_cut(value: str) -> None:
    """Of what went in and came out 500 characters are told, as JavaScript counts them, and no half of an emoji."""
    lines = told({"type": "tool-a", "input": {"s": value}, "output": value}).split("\n")
    given_in, came_out = lines[3].removeprefix("Input: "), lines[4].removeprefix("Output: ")
    assert value.startswith(came_out)
    assert f'{{"s":"{value}"}}'.startswith(given_in)
    assert utf16_length(value) <= 500 or 490 < utf16_length(came_out) <= 500
    assert not came_out.endswith("\u200d")


def test_text_is_never_cut() -> None:
    """What was said is told whole, however long."""
    assert "x" * 100_000 in build_summary_prompt([message("m1", "user", text("x" * 100_000))], None, 100)


def test_earlier_summary() -> None:
    """An earlier summary stands in the prompt before the transcript; none, or an empty one, is not spoken of."""
    messages = [message("m1", "user", text("And then?"))]
    prompt = build_summary_prompt(messages, "They met at {the} fountain.", 250)
    assert prompt.index("They met at {the} fountain.") < prompt.index("And then?")
    assert build_summary_prompt(messages, "", 250) == build_summary_prompt(messages, None, 250)
    assert "earlier" not in build_summary_prompt(messages, None, 250).lower()


def test_budget_is_named() -> None:
    """The prompt says how long the summary may be."""
    assert "12345 tokens" in build_summary_prompt([], None, 12_345)


@given(conversations())
def test_budget(messages: list[Message]) -> None:
    """A summary may have a fifth of the tokens that it stands for, rounded down, and never less than 100."""
    assert compute_summary_budget(messages) == max(100, estimate_message_tokens(messages) // 5)


def test_budget_of_a_long_talk() -> None:
    """However long the conversation, the share stays a fifth."""
    assert compute_summary_budget([message("m1", "user", text("x" * 4_000))] * 50) == 10_040
