from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore import InvalidArgumentError
from sessions import Message, truncate_older_messages
from sessions.characters import utf16_length
from tests.sessions.talk import ids
from tests.sessions.tool_talk import call, message, text

CHARACTERS = ["x", "京", "😀", "🇩🇪", "👨\u200d👩\u200d👧", "e\u0301"]

texts = st.lists(st.sampled_from(CHARACTERS), max_size=60).map("".join)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.sampled_from([0.5, -2.25]), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(st.sampled_from("abcdef"), inner)),
    max_leaves=30,
)
parts = st.one_of(
    texts.map(text),
    st.builds(lambda name, value: call("c", **{name: value}), st.sampled_from(["output", "result"]), values),
    texts.map(lambda words: {"type": "reasoning", "text": words, "signature": "s"}),
)
conversations = st.lists(st.lists(parts, max_size=3), max_size=8).map(
    lambda all_parts: [message(f"m{at}", "assistant", *some) for at, some in enumerate(all_parts)]
)
limits = st.integers(0, 150)


def truncated_output(output: Any, most: int, name: str = "output") -> Any:
    """Return what is left of an output."""
    (left,) = truncate_older_messages(
        [message("m1", "assistant", call("c", **{name: output}))], keep_recent=0, max_tool_output_chars=most
    )
    return left.parts[0][name]


def size(value: Any) -> int:
    """Return the length of a value's compact JSON, or of a text itself."""
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return utf16_length(plain)


@given(conversations, st.integers(0, 9), limits, limits)
def test_messages_stay(messages: list[Message], keep: int, outputs: int, words: int) -> None:
    """No message is dropped, moved or renamed, no part is either, and the recent ones are the ones given."""
    left = truncate_older_messages(messages, keep_recent=keep, max_tool_output_chars=outputs, max_text_chars=words)
    assert ids(left) == ids(messages)
    older = max(len(messages) - keep, 0)
    assert all(one is given_one for one, given_one in zip(left[older:], messages[older:], strict=True))
    for one, given_one in zip(left, messages, strict=True):
        shapes = [[(part["type"], list(part)) for part in some.parts] for some in (one, given_one)]
        assert shapes[0] == shapes[1]


@given(texts, limits)
def test_text_is_cut_between_characters(words: str, most: int) -> None:
    """A text keeps as many whole characters as it may have, and says how long it was."""
    (left,) = truncate_older_messages([message("m1", "user", text(words))], keep_recent=0, max_text_chars=most)
    if utf16_length(words) <= most:
        assert left.text == words
        return
    kept = left.text.removesuffix(f"... [truncated {utf16_length(words)} chars]")
    assert kept != left.text
    whole = [words[:at] for at in range(len(words) + 1) if is_between(words, at) and utf16_length(words[:at]) <= most]
    assert kept == whole[-1]


def is_between(words: str, at: int) -> bool:
    """Tell whether a place in a text of `CHARACTERS` is between two of them."""
    rest = words[:at]
    while rest:
        ending = next((one for one in sorted(CHARACTERS, key=len, reverse=True) if rest.endswith(one)), None)
        if ending is None:
            return False
        rest = rest.removesuffix(ending)
    return True


@given(texts, limits)
def test_output_that_is_text(output: str, most: int) -> None:
    """A text that came out of a tool is never longer than it may be, what is said of its cut included."""
    left = truncated_output(output, most)
    assert utf16_length(left) <= max(most, 0)
    assert left == output or utf16_length(output) > most
    left.encode()


@given(values, limits, st.sampled_from(["output", "result"]))
def test_output_fits(output: Any, most: int, name: str) -> None:
    """What is left of an output fits its limit, or is the shortest that there is; a number is never cut."""
    left = truncated_output(output, most, name)
    if size(output) <= most or not isinstance(output, str | list | dict):
        assert left == output
    elif isinstance(output, str):
        assert size(left) <= most
    else:
        assert type(left) is type(output)
        marker: Any = {"__truncated": True, "__truncatedChars": size(output)}
        marker = [marker] if isinstance(output, list) else marker
        assert size(left) <= most or left == marker or size(left) <= size(marker)
        assert size(left) <= size(output)


def test_shape_of_an_output() -> None:
    """Of an output the texts are cut first, so that its keys and short values stay."""
    output = {"path": "/a", "ok": True, "lines": [1, 2, 3], "body": "x" * 1_000}
    left = truncated_output(output, 500)
    assert left == {**output, "body": "x" * (125 - 26) + "... [truncated 1000 chars]"}


def test_nested_texts_keep_something() -> None:
    """A text that would have to share too little keeps 80 characters all the same, as long as all around it fits."""
    output = {"a": {"b": {"c": "x" * 1_000, "d": 1}}, "f": 1}
    assert len(truncated_output(output, 300)["a"]["b"]["c"]) == 80


def test_large_values_give_way() -> None:
    """A list that is too long gives way to a marker, and what stands beside it stays."""
    left = truncated_output({"rows": list(range(500)), "total": 500}, 300)
    assert left["total"] == 500
    assert left["rows"][0]["__truncatedChars"] == len(json.dumps(list(range(500)), separators=(",", ":")))


def test_deep_output() -> None:
    """An output that is nested as deep as messages may be is cut like others."""
    output: Any = "x" * 100_000
    for _ in range(150):
        output = {"a": output}
    left = truncated_output(output, 500)
    assert size(left) <= 500
    assert "truncated" in json.dumps(left)


def test_errors_are_cut() -> None:
    """What a tool failed with is cut as an output is."""
    assert len(truncated_output("x" * 1_000, 500, "errorText")) == 500


def test_what_is_never_cut() -> None:
    """Inputs and reasoning, which its model has signed, stay whole, however long."""
    messages = [
        message("m1", "assistant", {"type": "reasoning", "text": "x" * 99}, call("c", input="y" * 99, output="z" * 99)),
        message("m2", "assistant", {"type": "text", "text": None}, {"type": "data-x", "text": "d" * 99}),
    ]
    first, second = truncate_older_messages(messages, keep_recent=0, max_tool_output_chars=5, max_text_chars=5)
    assert first.parts == [messages[0].parts[0], call("c", input="y" * 99, output="... [")]
    assert second is messages[1]


def test_rest_of_a_message_survives() -> None:
    """A message that is cut keeps its time and all other keys and values, in their order."""
    data = {
        "parts": [text("x" * 20), {"type": "data-n", "n": 10**40}],
        "role": "user",
        "createdAt": "2030-01-02T00:00:00Z",
        "id": "m1",
        "extra": {"f": 1.0},
    }
    (left,) = truncate_older_messages([data], keep_recent=0, max_text_chars=10)
    parts = [text("xxxxxxxxxx... [truncated 20 chars]"), {"type": "data-n", "n": 10**40}]
    assert json.dumps(left.to_dict()) == json.dumps({**data, "parts": parts})
    assert left.created_at is not None


def test_defaults() -> None:
    """Left alone, the last four messages stay, and of older ones 10,000 characters of text and 500 of outputs."""
    messages = [message(f"m{at}", "user", text("x" * 10_001), call("c", output="y" * 501)) for at in range(5)]
    left = truncate_older_messages(messages)
    assert left[1:] == messages[1:]
    assert left[0].text == "x" * 10_000 + "... [truncated 10001 chars]"
    assert len(left[0].parts[1]["output"]) == 500


@pytest.mark.parametrize("option", ["keep_recent", "max_tool_output_chars", "max_text_chars"])
@pytest.mark.parametrize("value", [-1, 0.5, None, True])
def test_bad_numbers(option: str, value: object) -> None:
    """A limit that is no number from 0 on is refused by its name."""
    with pytest.raises(InvalidArgumentError, match=option):
        truncate_older_messages([], **{option: value})  # type: ignore[arg-type]
