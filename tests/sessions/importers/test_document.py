from __future__ import annotations

import pytest

from sessions.importers.conversation import Problem
from sessions.importers.document import Document, read_document


def places(document: Document) -> list[tuple[int | None, int | None, object]]:
    """Return line, index and value of every entry that can be read."""
    read = (item for item in document.read() if not isinstance(item, Problem))
    return [(entry.line, entry.index, value) for entry, value in read]


def problems(document: Document) -> list[tuple[int | None, int | None, bool]]:
    """Return line, index and weight of every problem."""
    read = (item for item in document.read() if isinstance(item, Problem))
    return [(problem.line, problem.index, problem.skipped) for problem in read]


@pytest.mark.parametrize(
    "data",
    [b'[{"a":1},2]', b'\xef\xbb\xbf[{"a":1},2]', b' \r\n[\r\n{"a":1},\r\n2\r\n]\r\n'],
    ids=["plain", "byte order mark", "CRLF"],
)
def test_array_is_cut_into_elements(data: bytes) -> None:
    """An array gives its elements with their places, whatever mark and line ends the file has."""
    assert places(read_document("f", data)) == [(None, 0, {"a": 1}), (None, 1, 2)]


def test_object_is_one_entry() -> None:
    """A file with one object is one entry without a place."""
    assert places(read_document("f", b'\xef\xbb\xbf{\n"a": 1}\n')) == [(None, None, {"a": 1})]


def test_lines_are_entries() -> None:
    """JSONL gives its lines with their numbers, blank ones left out."""
    document = read_document("f", b'\xef\xbb\xbf{"a":1}\r\n\r\n{"a":2}\n[3]\n')
    assert places(document) == [(1, None, {"a": 1}), (3, None, {"a": 2}), (4, None, [3])]
    assert problems(document) == []


@pytest.mark.parametrize(
    ("bad", "line"),
    [(b"\0" * 400, 2), (b'{"type":"x","text":"abc{"type":"x"}', 2), (b'{"a":"\xe2\x82', 2)],
    ids=["NUL", "two records", "half a character"],
)
def test_torn_line_is_reported(bad: bytes, line: int) -> None:
    """A line that is no JSON is reported by its number, and the others are read."""
    document = read_document("f", b'{"a":1}\n' + bad + b'\n{"a":3}\n{"a":')
    assert [value for _, _, value in places(document)] == [{"a": 1}, {"a": 3}]
    assert problems(document) == [(line, None, False), (4, None, False)]


def test_torn_first_line_does_not_hide_the_others() -> None:
    """JSONL whose first line is torn is still read line by line."""
    assert [value for _, _, value in places(read_document("f", b'{"a":\n{"a":2}\n'))] == [{"a": 2}]


@pytest.mark.parametrize("data", [b'[{"a":1},{"a":2},{"a":', b'[\n{"a":1},\n{"a":2}\n', b'[{"a":1},{"a":2}}'])
def test_torn_array_is_read_up_to_the_tear(data: bytes) -> None:
    """The elements before the tear of an array are read, and the tear is reported at its place."""
    document = read_document("f", data)
    assert [value for _, _, value in places(document)] == [{"a": 1}, {"a": 2}]
    assert problems(document) == [(None, 2, False)]


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b'{"a":', b"[", b"{" * 99_999, b"[" * 99_999, b"\xff\xfe", b'{"a":NaN}']
)
def test_what_is_no_json_is_one_problem(data: bytes) -> None:
    """A file without any JSON is a problem, never a crash."""
    document = read_document("f", data)
    assert places(document) == []
    assert len(problems(document)) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"a\ud83d b"', "a\ufffd b"),
        (rb'"\udc00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\ude00 \ud83d"', "\U0001f600 \ufffd"),
        (rb'"\\ud83d"', r"\ud83d"),
        (b'"\xff \xe2\x82"', "\ufffd \ufffd"),
    ],
)
@pytest.mark.parametrize("shape", [b"[%b, 1]", b'{"k": %b}'], ids=["array", "object"])
def test_broken_characters_are_replaced(text: bytes, value: str, shape: bytes) -> None:
    """Lone surrogates and bytes that are no UTF-8 become U+FFFD, and the rest of the file is untouched."""
    (_, _, read), *_ = places(read_document("f", shape % text))
    assert read in (value, {"k": value})


def test_bad_element_costs_only_itself() -> None:
    """An element that cannot be decoded is reported, and those around it are read."""
    document = read_document("f", b"[1, 1e999, 2]")
    assert [value for _, _, value in places(document)] == [1, 2]
    assert problems(document) == [(None, 1, True)]


def test_large_numbers_survive() -> None:
    """An integer of any size is read as it is written."""
    assert places(read_document("f", b"[123456789012345678901234567890]")) == [
        (None, 0, 123456789012345678901234567890)
    ]
