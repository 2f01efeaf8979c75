"""A Claude Code file of any length, made line by line: the same each time, with all that such files have in them."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.sessions.importers.claude import Record, assistant, call, record, result, user

WORDS = [f"word{number}" for number in range(300)]
BRANCH_EVERY = 37
COMPACT_EVERY = 101


def write_long(path: Path, *, size: int, seed: int = 1, words: int = 60) -> int:
    """Write a file of at least so many bytes, and return the number of its messages."""
    written = messages = 0
    with path.open("wb") as file:
        for one in _records(random.Random(seed), words):
            line = json.dumps(one).encode() + b"\n"
            messages += one["type"] in {"user", "assistant"} and "counts" in one
            written += file.write(line)
            if written >= size and one.get("ends"):
                break
    return messages


def _records(chance: random.Random, words: int) -> Iterator[Record]:
    """The records of turns without end: a prompt, two calls that are answered, an answer, now and then a compaction."""

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 2 * words)))

    def name() -> str:
        return str(uuid.UUID(int=chance.getrandbits(128)))

    latest: str | None = None
    before: str | None = None
    turn = 0
    while True:
        turn += 1
        said, first, second, answers, more, end = (name() for _ in range(6))
        parent = before if turn % BRANCH_EVERY == 0 and before is not None else latest
        one, other = (f"toolu_{name()}" for _ in range(2))
        whole: dict[str, Any] = {"counts": True}
        yield user(said, parent, text(), **whole)
        yield assistant(first, said, {"type": "text", "text": text()}, call(one), response=f"msg_{first}", **whole)
        yield assistant(second, first, call(other, query=text()), response=f"msg_{first}")
        yield user(answers, first, [result(one, text())], toolUseResult={"stdout": text()})
        yield user(more, second, [result(other, [{"type": "text", "text": text()}])])
        yield assistant(end, more, **whole)
        before, latest = latest, end
        if turn % COMPACT_EVERY == 0:
            boundary, summary = name(), name()
            yield record("system", boundary, None, None, subtype="compact_boundary")
            yield user(summary, boundary, text(), isCompactSummary=True)
            latest = summary
        latest_hook = name()
        yield record("system", latest_hook, latest, None, subtype="turn_duration", ends=True)
        latest = latest_hook
