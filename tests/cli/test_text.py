from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.cli.text import ShortIds, age, clock, compact, counted, first_words, label, one_line, size, visible

NOW = dt.datetime(2026, 5, 2, 12, tzinfo=dt.UTC)


@given(st.text())
def test_visible_text_has_no_controls(text: str) -> None:
    """No control character but line breaks and tabs is left, and nothing else is changed or moved."""
    shown = visible(text)
    assert len(shown) == len(text)
    for before, after in zip(text, shown, strict=True):
        control = ord(before) < 0x20 or 0x7F <= ord(before) < 0xA0
        assert (after != before) == (control and before not in "\t\n")


def test_label() -> None:
    """In an id, a role or a name also line breaks, tabs and turns of direction are made visible."""
    assert label("a\nb\tc\u202ed\u2066e\u200ff\x1bg") == "a␊b␉c\ufffdd\ufffde\ufffdf␛g"
    assert ShortIds(["a\nb"])("a\nb") == "a␊b"
    assert one_line("a\nb\u202e") == "a b\ufffd"
    assert visible("a\n\u200fb") == "a\n\u200fb"


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    """However a text is broken, one line of it has no break in it."""
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "now"),
        (0.5, "now"),
        (59, "59s ago"),
        (60, "1m ago"),
        (7_199, "1h ago"),
        (2 * 86_400, "2d ago"),
        (8 * 86_400, "1w ago"),
        (40 * 86_400, "1mo ago"),
        (800 * 86_400, "2y ago"),
    ],
)
def test_age(seconds: float, expected: str) -> None:
    """An age is told in its largest unit, and the future is now."""
    assert age(NOW - dt.timedelta(seconds=seconds), NOW) == expected


def test_clock() -> None:
    """A time of today is told without its day."""
    assert clock(NOW, NOW) == f"{NOW.astimezone():%H:%M:%S}"
    assert clock(NOW - dt.timedelta(days=2), NOW).startswith("2026-04-30 ")


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0"), (9_999, "9999"), (12_345, "12k"), (9_999_999, "10000k"), (12_345_678, "12M")]
)
def test_compact(number: int, expected: str) -> None:
    """Large numbers are rounded to what fits a column."""
    assert compact(number) == expected


def test_counted() -> None:
    """One thing is not several."""
    assert [counted(number, "branch", "branches") for number in (0, 1, 1_234)] == [
        "0 branches",
        "1 branch",
        "1,234 branches",
    ]


@given(st.sets(st.text(alphabet="abc:", max_size=30), max_size=30))
def test_short_id_means_one_session(ids: set[str]) -> None:
    """A short id is the beginning of its id, and of no other, unless it is an id itself."""
    short = ShortIds(ids)
    for one in ids:
        assert one.startswith(short(one))
        assert short(one) == one or [other for other in ids if other.startswith(short(one))] == [one]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        ("chat-1", "chat-1"),
        ("0190a6f2-aaaa-7000-8000-000000000001", "0190a6f2-a"),
        ("0190a6f2-bbbb-7000-8000-000000000002", "0190a6f2-b"),
        ("chatgpt:f0e1d2c3-0000-4000-8000-000000000003", "chatgpt:f0e1"),
        ("unknown to the store", "unknown to the store"),
    ],
)
def test_short_id(one: str, expected: str) -> None:
    """A short id keeps what tells it from the others, some characters at least, and the whole of what is short."""
    ids = [
        "chat-1",
        "0190a6f2-aaaa-7000-8000-000000000001",
        "0190a6f2-bbbb-7000-8000-000000000002",
        "chatgpt:f0e1d2c3-0000-4000-8000-000000000003",
    ]
    assert ShortIds(ids)(one) == expected


def test_first_words() -> None:
    """A message is told by its first text that says something, else by its other parts."""
    empty, text = {"type": "text", "text": " \n"}, {"type": "text", "text": "two\nlines"}
    assert first_words({"parts": [empty, text]}) == "two lines"
    assert first_words({"parts": [empty, {"type": "file", "filename": "a.png"}]}) == "[a.png]"
    assert first_words({"parts": []}) == "[empty]"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (123_456, "123 kB"),
        (5_000_000, "5.0 MB"),
        (2 * 10**9, "2.0 GB"),
        (3 * 10**15, "3,000.0 TB"),
    ],
)
def test_size(number: int, expected: str) -> None:
    """A number of bytes is told in its largest unit."""
    assert size(number) == expected
