"""Golden logs, and how their rows get into an empty database."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.eventstore.support import file_at, opened

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "golden"
RELEASES = sorted(path.stem.removeprefix("log-") for path in FOLDER.glob("log-*.ndjson"))


def golden_lines(release: str) -> list[dict[str, Any]]:
    """Return the lines of a release's log, bytes in hex."""
    # Only a newline ends a line: other ends of lines may stand in a payload.
    text = (FOLDER / f"log-{release}.ndjson").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.rstrip("\n").split("\n")]


def golden_rows(release: str) -> list[dict[str, Any]]:
    """Return the rows of a release's log, bytes as bytes."""
    rows = golden_lines(release)
    return [{**row, **{name: bytes.fromhex(row[name]) for name in ("salt", "payload_digest", "hash")}} for row in rows]


async def load(folder: Path, release: str) -> str:
    """Put the rows of a release's log by SQL into an empty database without projections; return its URL."""
    url = file_at(folder, f"{release}.db")
    async with opened(url):
        pass
    numbers: dict[str, int] = {}
    heads: dict[int, tuple[Any, ...]] = {}
    with contextlib.closing(sqlite3.connect(folder / f"{release}.db")) as connection:
        for position, row in enumerate(golden_rows(release), start=1):
            stream_no = numbers.setdefault(row["stream_id"], len(numbers) + 1)
            heads[stream_no] = (row["version"], row["hash"], row["recorded_at"])
            columns = {"position": position, "stream_no": stream_no, **row}
            del columns["stream_id"]
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
            connection.execute(f"INSERT INTO events ({names}) VALUES ({marks})", tuple(columns.values()))
        for stream_id, stream_no in numbers.items():
            connection.execute("INSERT INTO streams VALUES (?, ?, ?, ?, ?)", (stream_no, stream_id, *heads[stream_no]))
        connection.commit()
    return url
