from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from replay.cli.output import Column, Format, Output

COLUMNS = [
    Column(title="ID", cell=lambda one: str(one["id"])),
    Column(title="SIZE", cell=lambda one: str(one["size"]), right=True),
    Column(title="TEXT", cell=lambda one: str(one["text"]), free=True),
]


def printed(
    format: Format | None,  # noqa: A002 - the option's name
    records: Iterable[dict[str, Any]],
    *,
    columns: Sequence[Column] = COLUMNS,
    batch: int | None = None,
) -> str:
    """Return what a list prints."""
    buffer = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(buffer, encoding="utf-8")) as stream:
        with Output(format=format).listing(columns, batch=batch) as add:
            for record in records:
                add(record)
        stream.flush()
        return buffer.getvalue().decode()


def test_table_columns() -> None:
    """Columns are as wide as what stands in them, numbers to the right, and the free one takes the rest."""
    records = [{"id": "a", "size": 5, "text": "t" * 100}, {"id": "bcd", "size": 12_345, "text": "京"}]
    head, one, two = printed("table", records).splitlines()
    assert head.rstrip() == "ID    SIZE  TEXT"
    assert one == "a        5  " + "t" * 67 + "…"
    assert two.rstrip() == "bcd  12345  京"


def test_wrapped_column() -> None:
    """A column that wraps shows all of a long text, in lines below each other."""
    columns = [COLUMNS[0], Column(title="TEXT", cell=lambda one: one["text"], free=True, wraps=True)]
    lines = printed("table", [{"id": "a", "text": "word " * 30}], columns=columns).splitlines()
    assert len(lines) == 3
    assert " ".join(lines).split().count("word") == 30


def test_growing_table_does_not_wait() -> None:
    """A table that is laid out as it grows has printed its first rows before the last record is there."""
    buffer = io.BytesIO()
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)),
        Output(format="table").listing(COLUMNS, batch=500) as add,
    ):
        for number in range(600):
            add({"id": number, "size": 1, "text": "t"})
        assert len(buffer.getvalue().splitlines()) == 501


def test_growing_table_keeps_its_columns() -> None:
    """Rows that are printed one by one stand below each other: a column has its least width, and grows only."""
    columns = [Column(title="ID", cell=lambda one: one["id"], least=4), *COLUMNS[1:]]
    records = [{"id": name, "size": size, "text": "t"} for name, size in (("a", 1), ("abcdef", 12_345), ("b", 2))]
    assert printed("table", records, columns=columns, batch=1).splitlines() == [
        "ID    SIZE  TEXT",
        "a        1  t",
        "abcdef  12345  t",
        "b           2  t",
    ]


@pytest.mark.parametrize("format", ["json", "ndjson", None])
def test_json(format: Format | None) -> None:  # noqa: A002 - the option's name
    """Records are printed as a JSON array, or one per line, and an empty list as an empty array or nothing."""
    records = [{"id": "a", "text": "京\n"}, {"id": "b", "text": "\x1b"}]
    out = printed(format, records)
    parsed = json.loads(out) if format == "json" else [json.loads(line) for line in out.splitlines()]
    assert parsed == records
    assert printed(format, []) == ("[]\n" if format == "json" else "")


def test_empty_table() -> None:
    """A table without rows is nothing at all, not a head without a body."""
    assert printed("table", []) == ""


@pytest.mark.parametrize("width", [1, 5, 12, 20, 25, 40])
def test_table_fits_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal, no line is wider and something is shown of every record."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = printed("table", [{"id": "chatgpt:0190", "size": 12_345, "text": "some more words"}] * 2).splitlines()
    assert len(lines) == 3
    assert all(0 < len(line) <= width for line in lines)


def test_columns_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left out, the spare columns first, and the first and the free one stay."""
    monkeypatch.setenv("COLUMNS", "22")
    columns = [*COLUMNS[:1], Column(title="S", cell=lambda _: "spare", spare=True), *COLUMNS[1:]]
    _, row = printed("table", [{"id": "a", "size": 1, "text": "text"}], columns=columns).splitlines()
    assert row == "a   spare     1  text"
    monkeypatch.setenv("COLUMNS", "20")
    _, row = printed("table", [{"id": "a", "size": 1, "text": "text"}], columns=columns).splitlines()
    assert row == "a      1  text"


def test_no_width_is_the_usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """A width of no columns is as good as none."""
    monkeypatch.setenv("COLUMNS", "0")
    assert printed("table", [{"id": "a", "size": 1, "text": "text"}]).splitlines() == [
        "ID  SIZE  TEXT",
        "a      1  text",
    ]


def test_no_trailing_blanks() -> None:
    """No line of a table ends in blanks."""
    records = [{"id": "a", "size": 1, "text": text} for text in ("longer", "t")]
    assert all(line == line.rstrip() for line in printed("table", records).splitlines())
