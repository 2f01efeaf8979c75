"""The door: JSON's values only, within the limits, told by their exact path, quickly, whatever their shape."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import time
import types
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore.decoding import decode_json
from eventstore.errors import InvalidArgumentError, InvalidMessageError, LimitExceededError
from eventstore.limits import Limits, encode_json

LIMITS = Limits()


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not what it is"

    def encode(self, *_args: Any) -> bytes:
        """Return other bytes than its own."""
        return b"nor this"


class Number(int):
    """A number of a class of its own."""


class Level(enum.IntEnum):
    """Numbers with names."""

    HIGH = 3


class Colour(enum.StrEnum):
    """Texts with names."""

    RED = "red"


class Pair(NamedTuple):
    """Two numbers with names."""

    a: int
    b: int


class Real(float):
    """A float of a class of its own."""


def back(value: object, limits: Limits = LIMITS) -> Any:
    """Return what becomes of a value: its JSON, read by another program."""
    return json.loads(encode_json(value, limits))


def nested(depth: int, leaf: object = None, make: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    """Return a value with so many containers around a leaf."""
    for _ in range(depth):
        leaf = make(leaf)
    return leaf


def numbered(*keys: str) -> dict[str, int]:
    """Return an object with these keys."""
    return {key: number for number, key in enumerate(keys)}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64))
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_goes_through_unchanged(value: object) -> None:
    """Every JSON value reads back equal, types and key order included."""
    again = back(value)
    assert json.dumps(again) == json.dumps(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {1, 2}}, "a"),
        ({"a": frozenset()}, "a"),
        ({"a": b"x"}, "a"),
        ({"a": bytearray()}, "a"),
        ({"a": dt.datetime(2025, 1, 1, tzinfo=dt.UTC)}, "a"),
        ({"a": dt.date(2025, 1, 1)}, "a"),
        ({"a": uuid.UUID(int=1)}, "a"),
        ({"a": decimal.Decimal(1)}, "a"),
        ({"a": 1j}, "a"),
        ({"a": object()}, "a"),
        ({"a": int}, "a"),
        ({"a": msgspec.Raw(b"1")}, "a"),
        ({"a": msgspec.UNSET}, "a"),
        ({"a": range(3)}, "a"),
        ({"a": (n for n in range(3))}, "a"),
        ({"a": {}.keys()}, "a"),
        ({"a": collections.deque()}, "a"),
        ({"a": types.MappingProxyType({})}, "a"),
        ({"a": float("nan")}, "a"),
        ({"a": float("inf")}, "a"),
        ({"a": -float("inf")}, "a"),
        ({"a": Real("nan")}, "a"),
        (float("nan"), ""),
        ([1, [2, {3}]], "[1][1]"),
        ({"parts": [{"type": "x", "input": {"x": {1}}}]}, "parts[0].input.x"),
        ({"parts": ({"ok": 1}, {"a": [0, b""]})}, "parts[1].a[1]"),
        ({"a": {"b c": {"": b""}}}, "a.b c."),
        ({"ok": 1, "a": {1: "x"}}, "a"),
        ({None: 1}, ""),
        ({"a": [{b"k": 1}]}, "a[0]"),
        ({"a": {("t",): 1}}, "a"),
        ({"b": 1, "a": [float("nan"), {1}]}, "a[0]"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: object, path: str) -> None:
    """A value that JSON has no place for is refused with the path where it stands."""
    with pytest.raises(InvalidMessageError) as caught:
        encode_json(value, LIMITS)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Text("text"), "text"),
        (Number(7), 7),
        (Level.HIGH, 3),
        (Colour.RED, "red"),
        (Real(1.5), 1.5),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.UserString("x").data, "x"),
        ((1, (2,)), [1, [2]]),
        (Pair(1, 2), [1, 2]),
        ({Text("key"): {Colour.RED: [Text("value")]}}, {"key": {"red": ["value"]}}),
        ([True, False, None], [True, False, None]),
    ],
)
def test_subclasses_count_as_what_they_are(value: object, wanted: object) -> None:
    """Subclasses of text, numbers, dicts and lists are taken for the plain values that they are."""
    assert json.dumps(back(value)) == json.dumps(wanted)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (numbered("\ud800", "\udbff"), ""),
        ({"a": [numbered("k\ud800", "k\ufffd")]}, "a[0]"),
        ({"a": {"\udc00": numbered("\ud800", "x", "\udfff")}}, "a.\ufffd"),
    ],
    ids=range(3),
)
def test_keys_that_would_become_one_are_refused(value: object, path: str) -> None:
    """Keys that differ in lone surrogates alone are refused with their path, so that no value is lost."""
    with pytest.raises(InvalidMessageError) as caught:
        encode_json(value, LIMITS)
    assert caught.value.path == path


def test_given_value_is_left_alone() -> None:
    """Checking and cleaning change nothing of the value that was given."""
    value = {"a": [Text("x"), "\ud800"], "b": (1,)}
    encode_json(value, LIMITS)
    assert value == {"a": [Text("x"), "\ud800"], "b": (1,)}
    assert type(value["a"][0]) is Text


@pytest.mark.parametrize("make", [lambda x: [x], lambda x: {"k": x}, lambda x: (x,)], ids=["list", "dict", "tuple"])
@pytest.mark.parametrize("leaf", [None, Text("x"), "\ud800"], ids=["plain", "subclass", "surrogate"])
def test_depth_is_limited(make: Callable[[Any], Any], leaf: object) -> None:
    """A value may be nested as deep as the limit says, whatever stands at its bottom, and not deeper."""
    assert back(nested(LIMITS.depth, leaf, make))
    with pytest.raises(LimitExceededError) as caught:
        encode_json(nested(LIMITS.depth + 1, leaf, make), LIMITS)
    assert (caught.value.limit, caught.value.maximum) == ("depth", LIMITS.depth)


def test_depth_is_told_with_a_path() -> None:
    """The error about a value that is nested too deep says where it begins."""
    with pytest.raises(LimitExceededError) as caught:
        encode_json({"ok": [[1]], "parts": [{}, {"input": nested(500)}]}, LIMITS)
    assert caught.value.path.startswith("parts[1].input[0]")
    assert len(caught.value.path) < 100


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_very_deep_value_is_refused_without_recursion(depth: int) -> None:
    """A value that is nested deeper than any recursion goes is refused like one that is a little too deep."""
    value = nested(depth, nested(depth, None, lambda inner: {"k": inner}))
    with pytest.raises(LimitExceededError, match="depth"):
        encode_json({"parts": value}, LIMITS)


@pytest.mark.parametrize(
    "number",
    [10**4_300 - 1, 1 - 10**4_300, (1 << 64) - 1, 1 << 64, -(1 << 63) - 1],
    ids=["4300 digits", "minus 4300 digits", "2^64-1", "2^64", "-2^63-1"],
)
def test_large_numbers_survive(number: int) -> None:
    """Whole numbers of any size within the limit read back equal."""
    assert back({"n": [number]}) == {"n": [number]}
    assert decode_json(encode_json(number, LIMITS)) == number


@pytest.mark.parametrize(
    "number",
    [10**4_300, -(10**4_300), 1 << 100_000, 1 << 10_000_000],
    ids=["4301 digits", "minus 4301 digits", "2^100000", "2^10000000"],
)
def test_too_large_number_is_refused(number: int) -> None:
    """A whole number with more digits than the limit is refused at once with its path."""
    began = time.perf_counter()
    with pytest.raises(LimitExceededError) as caught:
        encode_json({"a": [0, number]}, LIMITS)
    assert (caught.value.limit, caught.value.path) == ("int_digits", "a[1]")
    assert time.perf_counter() - began < 0.5


def test_size_is_limited() -> None:
    """A value whose JSON is larger than the limit is refused; one that just fits is not."""
    limits = Limits(message_bytes=100)
    assert encode_json("x" * 98, limits)
    for value in ("x" * 99, ["é" * 49], [1] * 60):
        with pytest.raises(LimitExceededError) as caught:
            encode_json(value, limits)
        assert (caught.value.limit, caught.value.maximum) == ("message_bytes", 100)


def _cycle_of_lists() -> Any:
    value: list[Any] = [1]
    value.append(value)
    return value


def _cycle_of_many() -> Any:
    value: list[Any] = []
    value += [value] * 50
    return value


def _cycle_of_dicts() -> Any:
    value: dict[str, Any] = {}
    value["a"] = {"b": [value, value]}
    return value


def _laughs(levels: int, times: int, leaf: Any = "lol") -> Any:
    for _ in range(levels):
        leaf = [leaf] * times
    return leaf


@pytest.mark.parametrize(
    "make",
    [
        _cycle_of_lists,
        _cycle_of_many,
        _cycle_of_dicts,
        lambda: _laughs(10, 10),
        lambda: _laughs(30, 2),
        lambda: _laughs(100, 3),
        lambda: _laughs(190, 2),
        lambda: _laughs(26, 2, []),
        lambda: _laughs(9, 10, Text("lol")),
        lambda: _laughs(30, 2, float("nan")),
        lambda: {"parts": [{"type": "text", "x": _laughs(3, 1_000, "")}]},
    ],
    ids=["list", "many", "dict", "10^10", "2^30", "3^100", "2^190", "2^26", "subclass", "nan", "1000^3"],
)
def test_endless_value_is_refused_quickly(make: Callable[[], Any]) -> None:
    """A value that contains itself, or becomes huge when it is written out, is refused quickly."""
    value = make()
    began = time.perf_counter()
    with pytest.raises((LimitExceededError, InvalidMessageError)):
        encode_json(value, LIMITS)
    assert time.perf_counter() - began < 2


def test_shared_values_are_no_cycle() -> None:
    """The same object at several places is written at each of them."""
    shared = {"x": [1]}
    assert back([shared, {"a": shared}, shared]) == [{"x": [1]}, {"a": {"x": [1]}}, {"x": [1]}]


def test_many_small_values_are_let_in() -> None:
    """More than a million values are let in as long as their JSON is within the limit."""
    value = [[0] * 1_000] * 1_500
    assert encode_json(value, LIMITS).count(b"0") == 1_500_000


@pytest.mark.parametrize(
    "limits", [{"depth": 301}, {"depth": 0}, {"parts": None}, {"int_digits": 4_301}, {"id_bytes": True}], ids=str
)
def test_limits_that_cannot_be_kept_are_refused(limits: dict[str, Any]) -> None:
    """A limit that is no number from 1 on, or higher than decoders go, is refused where it is set."""
    with pytest.raises(InvalidArgumentError, match=next(iter(limits))):
        Limits(**limits)
