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


def test_lines_may_be_arrays() -> None:
    """JSONL whose lines are arrays is read line by line, and not as one array that is torn."""
    document = read_document("f", b'[{"a":1}]\n[{"a":2}]\n')
    assert places(document) == [(1, None, [{"a": 1}]), (2, None, [{"a": 2}])]
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


@pytest.mark.parametrize(
    ("data", "line"),
    [(b'[{"a":1},{"a":2},{"a":', 1), (b'[\n{"a":1},\n{"a":2}\n', 4), (b'[{"a":1},\n{"a":2}}', 2)],
    ids=["in an element", "between lines", "wrong end"],
)
def test_torn_array_is_read_up_to_the_tear(data: bytes, line: int) -> None:
    """The elements before the tear of an array are read, and the tear is reported at its place."""
    document = read_document("f", data)
    assert [value for _, _, value in places(document)] == [{"a": 1}, {"a": 2}]
    assert problems(document) == [(line, 2, False)]


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b'{"a":', b"[", b"{" * 99_999, b"[" * 99_999, b"\xff\xfe", b'{"a":NaN}']
)
def test_what_is_no_json_is_one_problem(data: bytes) -> None:
    """A file without any JSON is a problem, never a crash."""
    document = read_document("f", data)
    assert places(document) == []
    assert len(problems(document)) == 1


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"<html>", 1, "not JSON: Expecting value at column 1"),
        (b'{"a": 1,\n"b": }', 2, "not JSON: Expecting value at column 6"),
        (b'[{"a": 1},\n\n {"b" 2}]', 3, "not JSON: Expecting ':' delimiter at column 7"),
        (b'[{"a": 1},\n2 3]', 2, "not JSON: A comma or the end is missing at column 3"),
        (b"[1,\n2] x", 2, "not JSON: More follows after the end of the array at column 4"),
        (b"[" * 100_000, None, "nested too deep"),
        (b'{"a":' * 100_000, None, "nested too deep"),
    ],
)
def test_reason_is_exact(data: bytes, line: int | None, reason: str) -> None:
    """What is wrong with a file is said in words of its own, with the line of the file at which it is."""
    (problem,) = (item for item in read_document("f", data).read() if isinstance(item, Problem))
    assert (problem.line, problem.reason) == (line, reason)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'[{"a":1},{"a":"caf\xe9"}]', (None, 1)),
        (b'[{"a":"\\ud83d"},{"a":"caf\xe9"}]', (None, 1)),
        (b'[{"a":"\\ud83d"},{"caf\xe9":1},{', (None, 1)),
        (b'{"a":1,\n"b":"caf\xe9"}', (2, None)),
        (b'{"a":1}\n\n{"b":"caf\xe9"}\n', (3, None)),
    ],
    ids=["array", "array with a lone surrogate", "torn array", "object", "lines"],
)
def test_damaged_text_is_reported(data: bytes, place: tuple[int | None, int | None]) -> None:
    """An entry with bytes that are no UTF-8 is read, and reported with its place."""
    document = read_document("f", data)
    assert "caf\ufffd" in str([value for _, _, value in places(document)])
    first = next(item for item in document.read() if isinstance(item, Problem))
    assert (first.line, first.index, first.skipped) == (*place, False)
    assert first.reason == "damaged text, read with U+FFFD: e9 (hex) is not UTF-8"


@pytest.mark.parametrize("shape", [b"[%b, 1]", b'{"k": %b}'], ids=["array", "object"])
def test_lone_surrogates_are_no_problem(shape: bytes) -> None:
    """Escapes of lone surrogates are accepted without a word."""
    assert problems(read_document("f", shape % rb'"a\ud83d b"')) == []


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
