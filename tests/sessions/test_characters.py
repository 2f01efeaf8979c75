from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.characters import cut_text, utf16_length

CHARACTERS = {
    "letter": "a",
    "accents": "e\u0301\u0323",
    "han": "京",
    "emoji": "😀",
    "skin tone": "👍🏽",
    "family": "👨\u200d👩\u200d👧\u200d👦",
    "flag": "🇩🇪",
    "flag of tags": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "keycap": "1\ufe0f\u20e3",
    "hangul in parts": "\u1112\u1161\u11ab",
    "hangul with a part": "하\u11ab",
    "two hangul": "한",
    "kana with a mark": "か\u3099",
    "end of line": "\r\n",
    "astral letter": "\U0001d518",
}


@given(st.lists(st.sampled_from(sorted(CHARACTERS.values())), max_size=12), st.integers(0, 60))
def test_cut_ends_between_characters(characters: list[str], units: int) -> None:
    """A cut has as many whole characters as fit, counted in UTF-16 code units, and no part of the next."""
    fitting = ""
    for character in characters:
        if utf16_length(fitting + character) > units:
            break
        fitting += character
    assert cut_text("".join(characters), units) in {fitting, fitting + "\r"[: units - len(fitting)]}
    if not "".join(characters).isascii():
        assert cut_text("".join(characters), units) == fitting


@pytest.mark.parametrize("name", CHARACTERS)
def test_cut_of_each_kind_of_character(name: str) -> None:
    """Wherever a text of one kind of character is cut, behind a letter or not, it ends with a whole one."""
    for before in ("", "a", "京"):
        text = before + CHARACTERS[name] * 4 + "京"
        ends = [before + CHARACTERS[name] * count for count in range(5)]
        for units in range(utf16_length(before), utf16_length(text)):
            fitting = [end for end in ends if utf16_length(end) <= units]
            assert cut_text(text, units) == fitting[-1]


@given(st.text(), st.integers(0, 30))
def test_cut_of_any_text(text: str, units: int) -> None:
    """A cut of any text is its start, is no longer than asked for, and can be encoded."""
    cut = cut_text(text, units)
    assert text.startswith(cut)
    assert utf16_length(cut) <= units
    assert cut == text or utf16_length(text) > units
    cut.encode()


def test_length_is_javascripts() -> None:
    """A character beyond the first plane counts as two, as it does in JavaScript."""
    assert [utf16_length(text) for text in ("", "abc", "京", "😀", "e\u0301")] == [0, 3, 1, 2, 2]


@pytest.mark.parametrize("noise", ["\u0301", "\u200d", "\U000e0020"])
def test_noise_is_cut_where_it_must_be(noise: str) -> None:
    """A letter under hundreds of marks is no reason to cut nearly all of a text."""
    assert utf16_length(cut_text("x" + noise * 1_000, 500)) in {499, 500}
