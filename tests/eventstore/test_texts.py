"""Texts and ids at the door: surrogates, NUL, length, and texts of other classes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore.errors import InvalidArgumentError, LimitExceededError
from eventstore.limits import Limits, check_id, clean_text, encode_json

LIMITS = Limits()


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not what it is"

    def encode(self, *_args: Any) -> bytes:
        """Return other bytes than its own."""
        return b"nor this"


def back(value: object, limits: Limits = LIMITS) -> Any:
    """Return what becomes of a value: its JSON, read by another program."""
    return json.loads(encode_json(value, limits))


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "\U0001f600"),
        ("백트래\ud82d·깊이", "백트래\ufffd·깊이"),
        ("\udc00", "\ufffd"),
        ("\ud800", "\ufffd"),  # noqa: PT014 - another surrogate than the one above
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        ("\U0001f469\u200d\U0001f467\ufeff", "\U0001f469\u200d\U0001f467\ufeff"),
        ("a\ud800b\udfffc", "a\ufffdb\ufffdc"),
    ],
)
def test_surrogates(given_text: str, wanted: str) -> None:
    """A pair of surrogates is the character it stands for, a lone one becomes U+FFFD, the rest is unchanged."""
    assert clean_text(given_text) == wanted
    value = {"a": [given_text, {given_text: (given_text, Text(given_text))}], "n": 1 << 70}
    assert back(value) == {"a": [wanted, {wanted: [wanted, wanted]}], "n": 1 << 70}
    assert clean_text(wanted) == wanted
    assert check_id(given_text, "name", LIMITS) == wanted


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_any_text_becomes_valid_utf_8(given_text: str) -> None:
    """Whatever surrogates a text holds, what is stored is valid UTF-8, and cleaning it again changes nothing."""
    text = back([given_text])[0]
    assert text == clean_text(given_text) == clean_text(text)
    assert text.encode().decode() == text


@pytest.mark.parametrize(("value", "kind"), [(7, "int"), (None, "NoneType"), (b"x", "bytes"), (["x"], "list")])
def test_id_must_be_text(value: object, kind: str) -> None:
    """An id is a text, and nothing that could be turned into one."""
    with pytest.raises(InvalidArgumentError, match=f"thing.*{kind}") as caught:
        check_id(value, "thing", LIMITS)
    assert caught.value.argument == "thing"


@pytest.mark.parametrize("value", ["\0", "a\0b", Text("\0")])
def test_id_holds_no_nul(value: str) -> None:
    """An id with NUL is refused."""
    with pytest.raises(InvalidArgumentError, match="NUL"):
        check_id(value, "thing", LIMITS)


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600", "\ud800"])
def test_id_is_limited_in_bytes(character: str) -> None:
    """The limit of an id counts the bytes of its UTF-8 as it is stored."""
    size = len(clean_text(character).encode())
    fits = character * (LIMITS.id_bytes // size)
    assert check_id(fits, "thing", LIMITS) == clean_text(fits)
    with pytest.raises(LimitExceededError) as caught:
        check_id(fits + character, "thing", LIMITS)
    assert (caught.value.limit, caught.value.maximum, caught.value.path) == ("id_bytes", 512, "thing")


@pytest.mark.parametrize("value", ["", " ", "a\nb", "\x01", "ключ", Text("text")])
def test_any_other_text_is_an_id(value: str) -> None:
    """An id may be any other text, and is stored as a plain one."""
    found = check_id(value, "thing", LIMITS)
    assert type(found) is str
    assert found == str.__str__(value)
