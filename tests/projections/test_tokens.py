from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from projections.tokens import (
    MESSAGE_TOKENS,
    estimate_message_tokens,
    estimate_parts_tokens,
    estimate_string_tokens,
)
from projections.unicode_ranges import CJK

JAVASCRIPT_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
NO_JAVASCRIPT_SPACE = "\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2060"

ODD_CHARACTERS = f"ab{JAVASCRIPT_SPACE}{NO_JAVASCRIPT_SPACE}é🎉\ud83d"
PLAIN_TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(ODD_CHARACTERS)).filter(lambda c: c not in CJK))
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(f"{ODD_CHARACTERS}計カ한")))

NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(st.characters(exclude_categories=["Cs"]))),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)),
    max_leaves=8,
)


def measured(*parts: dict[str, Any]) -> list[str]:
    """Give the texts that an estimate of parts is made of."""
    texts: list[str] = []

    def estimate(text: str) -> int:
        texts.append(text)
        return 0

    estimate_parts_tokens(parts, estimate)
    return texts


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 1),
        ("a", 2),
        ("abcde", 2),
        ("   \n\t ", 2),
        ("hello world", 3),
        ("w w w w w w w w w w", 13),
        ("🎉🎉", 2),
        ("👨\u200d👩\u200d👧\u200d👦", 3),
        ("\ud83d", 2),
        ("\U0001d518\U0001d52b\U0001d526", 2),
        ("咖啡因中毒者", 6),
        ("咖啡 is coffee", 2 + 3),
        ("read咖啡read", 2 + 3),
        ("한국어, ﾃｽﾄ", 6 + 2),
    ],
)
def test_text_is_estimated(text: str, tokens: int) -> None:
    """A text costs a token for four code units or 1.3 for a word, and one for each CJK character."""
    assert estimate_string_tokens(text) == tokens


@pytest.mark.parametrize("space", JAVASCRIPT_SPACE)
def test_words_are_parted_by_the_white_space_of_javascript(space: str) -> None:
    """Every white space of JavaScript parts words."""
    assert estimate_string_tokens(space.join("abcdef")) == 8


@pytest.mark.parametrize("character", NO_JAVASCRIPT_SPACE)
def test_words_are_parted_by_nothing_else(character: str) -> None:
    """What only Python takes for white space, or nobody sees, parts no words."""
    assert estimate_string_tokens(character.join("abcdef")) == 3


@given(st.lists(PLAIN_TEXTS, min_size=1), st.sampled_from("計カ한ㄱ々ｶ\U00020000"))
@example(["w " * 1000], "計")
@example(["", "\ufeff", ""], "計")
def test_estimate_follows_the_formula(texts: list[str], cjk: str) -> None:
    """The text between CJK characters costs what the formula says, and each CJK character adds one."""
    code_units = sum(len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in texts)
    words = sum(len([word for word in re.split(f"[{JAVASCRIPT_SPACE}]", text) if word]) for text in texts)
    tokens = math.ceil(max(code_units / 4, words * 1.3))
    assert estimate_string_tokens(cjk.join(texts)) == tokens + len(texts) - 1


@given(TEXTS, TEXTS)
def test_more_text_never_costs_less(text: str, more: str) -> None:
    """Two texts parted by a space cost no less than either."""
    both = estimate_string_tokens(f"{text} {more}")
    assert both >= max(estimate_string_tokens(text), estimate_string_tokens(more))


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "text", "text": "hello world"}, 3),
        ({"type": "text"}, 0),
        ({"type": "text", "text": 12}, 2),
        ({"type": "reasoning", "text": "hello world"}, 3),
        ({"type": "reasoning", "reasoning": "hello world"}, 3),
        ({"type": "tool-x", "input": {"a": 1}}, 2),
        ({"type": "tool-x", "input": "plain string input", "output": "plain string output"}, 5 + 5),
        ({"type": "dynamic-tool", "input": {"q": "find me"}, "output": {"hits": [1, 2, 3], "ok": True}}, 4 + 7),
        ({"type": "tool-x", "output": None, "result": "fallback result"}, 4),
        ({"type": "tool-x", "input": 0, "output": False}, 2 + 2),
        ({"type": "tool-x", "input": "", "output": []}, 2),
        ({"type": "tool-x", "text": "text on a tool part"}, 0),
        ({"type": "tool", "input": "no tool part"}, 0),
        ({"type": "data-x", "text": "hello world", "result": "more"}, 3),
        ({"type": "data-x", "text": None, "result": "more"}, 0),
        ({"type": "data-x", "result": {"z": 1}}, 2),
        ({"type": "step-start"}, 0),
    ],
)
def test_part_is_estimated(part: dict[str, Any], tokens: int) -> None:
    """A message costs four tokens and what the texts, inputs and outputs of its parts cost."""
    message = {"id": "m", "role": "assistant", "parts": [part]}
    assert estimate_message_tokens([message]) == MESSAGE_TOKENS + tokens


def test_messages_add_up() -> None:
    """Dicts and objects with parts are estimated alike, and a list of messages costs the sum."""

    @dataclass
    class Message:
        parts: list[Mapping[str, Any]]

    parts: list[Mapping[str, Any]] = [{"type": "text", "text": "hello"}, {"type": "text", "text": "x y z"}]
    assert estimate_message_tokens([]) == 0
    assert estimate_message_tokens([{"id": "m", "role": "user", "parts": parts}, Message(parts), Message([])]) == 24


def test_own_estimator_measures_every_text() -> None:
    """With an estimator of one's own, a message costs four tokens and what that gives for each of its texts."""
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "hello"},
        {"type": "tool-x", "input": {"a": [1.0, None, "é"]}, "output": "done"},
        {"type": "step-start"},
    ]
    assert measured(*parts) == ["hello", '{"a":[1,null,"é"]}', "done"]
    assert estimate_parts_tokens(parts, lambda _: 100) == MESSAGE_TOKENS + 300


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (0.000_001, "0.000001"),
        (1.234_567_890_123_456_7e-5, "0.000012345678901234568"),
        (1.5e-7, "1.5e-7"),
        (1e16, "10000000000000000"),
        (1.234_567_890_123_456_8e20, "123456789012345680000"),
        (1e21, "1e+21"),
        (1e300, "1e+300"),
        (float("inf"), "null"),
        (float("nan"), "null"),
        (2**70, "1180591620717411303424"),
        ([1.0, "1.0 and [2.5", {"a": 2.5, '"': (True, None)}], '[1,"1.0 and [2.5",{"a":2.5,"\\"":[true,null]}]'),
        (
            {"unicode": "咖啡🎉", "esc": 'line\n"q"\x01\x7f\u2028'},
            '{"unicode":"咖啡🎉","esc":"line\\n\\"q\\"\\u0001\x7f\u2028"}',
        ),
    ],
)
def test_values_are_written_as_in_javascript(value: object, text: str) -> None:
    """A value that is no text is measured by the JSON text that JavaScript writes for it."""
    assert measured({"type": "tool-x", "input": value}) == [text]


@given(VALUES)
def test_written_values_are_the_values(value: object) -> None:
    """The JSON text that a value is measured by reads as that value and has no white space outside its strings."""
    (text,) = measured({"type": "tool-x", "input": [value]})
    assert json.loads(text, parse_int=float) == [value]
    assert not re.search(r"\s", re.sub(r'"(?:[^"\\]|\\.)*"', "", text))
