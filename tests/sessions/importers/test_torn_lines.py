from __future__ import annotations

import json
from pathlib import Path

import pytest

from eventstore.errors import ImportProblemError
from sessions import Session, import_file, open_store
from sessions.importers import Problem
from sessions.importers.conversation import RecordedConversation
from sessions.importers.formats import choose_formats, conversations
from tests.sessions.importers.claude import Record, assistant, lines, read_file, tree, user

GOOD = [user("n0", None), *(assistant(f"n{n}", f"n{n - 1}") for n in range(1, 10))]
SUN = "\u65e5"
WIDE = json.dumps(user("n6", "n5", f"sun {SUN}"), ensure_ascii=False).encode()


def raw(records: list[Record] = GOOD) -> list[bytes]:
    """Return the lines of the file, without their ends."""
    return lines(records).splitlines()


def torn(number: int, line: bytes) -> bytes:
    """Return the file with another line in place of one (1-based)."""
    found = raw()
    found[number - 1] = line
    return b"\n".join(found) + b"\n"


def taken(path: Path, data: bytes) -> tuple[list[str], list[Problem]]:
    """Return the ids of the messages of a file, and the problems."""
    path.write_bytes(data)
    found = read_file(path)
    messages = [message.id for item in found if isinstance(item, RecordedConversation) for message in item.messages]
    return messages, [item for item in found if isinstance(item, Problem)]


WHOLE = raw()
NAMES = [f"n{n}" for n in range(10)]
CASES: dict[str, tuple[bytes, list[str], list[int]]] = {
    "last line cut": (torn(10, WHOLE[9][: len(WHOLE[9]) * 6 // 10]).rstrip(b"\n"), NAMES[:9], [10]),
    "400 NUL bytes": (torn(5, bytes(400)), [*NAMES[:4], *NAMES[5:]], [5]),
    "NUL bytes before a record": (torn(5, bytes(400) + WHOLE[4]), NAMES, [5]),
    "record after a torn one": (torn(6, b'{"type":"assistant","text":"abc' + WHOLE[5]), NAMES, [6]),
    "record after a torn one of its kind": (torn(6, WHOLE[5][:150] + WHOLE[5]), NAMES, [6]),
    "two records on one line": (torn(6, WHOLE[5] + WHOLE[6]), NAMES, [6]),
    "cut inside a character": (
        torn(7, WIDE[: WIDE.index(SUN.encode()) + 2]),
        [*NAMES[:6], *NAMES[7:]],
        [7],
    ),
    "record that cannot be held after a torn one": (
        torn(6, WHOLE[5][:150] + WHOLE[5].replace(b'"isSidechain": false', b'"isSidechain": 1e999')),
        [*NAMES[:5], *NAMES[6:]],
        [6],
    ),
    "odd record that cannot be held": (
        torn(6, b'{"uuid":"n5","type":"user","message":5,"x":1e999}'),
        [*NAMES[:5], *NAMES[6:]],
        [6],
    ),
    "no object": (torn(3, b'"text"'), [*NAMES[:2], *NAMES[3:]], [3]),
    "CRLF": (b"\r\n".join(WHOLE), NAMES, []),
    "byte order mark": (b"\xef\xbb\xbf" + b"\n".join(WHOLE), NAMES, []),
    "empty lines": (b"\n\n \r\n".join(WHOLE) + b"\n\n", NAMES, []),
}


@pytest.mark.parametrize("case", list(CASES))
def test_whole_records_of_a_torn_file_are_read(tmp_path: Path, case: str) -> None:
    """Every record that is whole is read, one behind a torn one too, and each bad line is told by number (IMP-3)."""
    data, names, bad = CASES[case]
    found, problems = taken(tmp_path / "s.jsonl", data)
    assert sorted(found) == names
    assert [problem.line for problem in problems] == bad
    assert all(problem.reason for problem in problems)


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2]])
async def test_strict_import_of_a_torn_file_writes_nothing(tmp_path: Path, case: str) -> None:
    """A strict import of a torn file raises, naming the line, before anything is written (IMP-3)."""
    data, _, bad = CASES[case]
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    async with open_store("sqlite://") as store:
        with pytest.raises(ImportProblemError) as raised:
            await import_file(store, path, strict=True)
        assert await store.log.high_water() == 0
    assert raised.value.line == bad[0]


def test_damaged_text_is_read_and_told(tmp_path: Path) -> None:
    """A byte that is no UTF-8 becomes U+FFFD, is told, and costs nothing else of its record (IMP-3)."""
    path = tmp_path / "s.jsonl"
    found, problems = taken(path, lines([user("u", None, "caf#")]).replace(b"#", b"\xe9"))
    assert (found, [problem.line for problem in problems]) == (["u"], [1])
    (conversation,) = (item for item in read_file(path) if isinstance(item, RecordedConversation))
    assert next(iter(conversation.messages)).message["parts"][0]["text"] == "caf\ufffd"


async def test_value_that_cannot_be_held_is_told(tmp_path: Path) -> None:
    """A number that is too large for any decoder costs its message only, and a strict import writes nothing (IMP-3)."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines([user("u", None), assistant("a", "u", usage={"huge": 7})]).replace(b"7}", b"1e999}"))
    async with open_store("sqlite://") as store:
        with pytest.raises(ImportProblemError):
            await import_file(store, path, strict=True)
        assert await store.log.high_water() == 0
        report = await import_file(store, path)
    assert ([one.inserted for one in report.sessions], len(report.problems)) == ([1], 1)


async def test_line_of_thirty_megabytes_is_read(tmp_path: Path) -> None:
    """A line of 30 MB is imported like any other (IMP-3)."""
    path = tmp_path / "s.jsonl"
    huge = [user("u", None, "x" * (30 << 20)), assistant("a", "u")]
    path.write_bytes(lines(huge))
    async with open_store("sqlite://") as store:
        report = await import_file(store, path)
        first, _ = await Session.create(store).for_session("claude-code:s").get_history()
    assert (report.messages, report.problems) == (2, [])
    assert len(first.text) == 30 << 20


async def test_append_after_a_torn_line_is_read(tmp_path: Path) -> None:
    """What was appended behind a fragment is recovered, and hangs where it belongs (IMP-3)."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(GOOD[:3]) + WHOLE[3][:90] + b"\n".join(WHOLE[3:]) + b"\n")
    found = read_file(path)
    (conversation,) = (item for item in found if isinstance(item, RecordedConversation))
    assert tree(conversation) == {name: f"n{n - 1}" if n else None for n, name in enumerate(NAMES)}


def test_line_with_many_braces_does_not_take_long(tmp_path: Path) -> None:
    """A torn line of many nested objects is looked through without trying every one against the whole (IMP-3)."""
    inner = json.dumps([{"type": "text", "text": "x"}] * 20_000)
    found, problems = taken(tmp_path / "s.jsonl", torn(6, b'{"type":"user","message":{"content":' + inner.encode()))
    assert len(found) == 9
    assert [problem.line for problem in problems] == [6]


@pytest.mark.parametrize("first", [WHOLE[0][40:], b"[1, 2]", bytes(20), b"7"], ids=["cut", "array", "NUL", "number"])
def test_file_that_begins_with_a_bad_line_is_recognised(tmp_path: Path, first: bytes) -> None:
    """In a folder, too, a file is known by any of its lines (IMP-3)."""
    (tmp_path / "s.jsonl").write_bytes(first + b"\n" + b"\n".join(WHOLE[1:]))
    found = list(conversations(str(tmp_path), choose_formats("auto")))
    assert [type(item).__name__ for item in found] == ["Problem", "RecordedConversation"]
