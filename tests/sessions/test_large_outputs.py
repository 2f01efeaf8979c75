"""What large messages, and many small ones, cost in the file: each is written once, however much is there already."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from eventstore import LimitExceededError
from sessions import Limits, Session, StoredSession, open_store
from tests.sessions.talk import log_of, said

MEGABYTE = 1 << 20
COPIES = 2
"""A message is stored in its event and in its row."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a database file."""
    return tmp_path / "chats.db"


def tool(name: str, output: str) -> dict[str, Any]:
    """Return a message with the output of a tool."""
    part = {"type": "tool-read", "toolCallId": name, "input": {}, "output": output, "state": "output-available"}
    return {"id": name, "role": "assistant", "parts": [part]}


def image(name: str, data: str) -> dict[str, Any]:
    """Return a message with an image in it."""
    file = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{data}"}
    return {"id": name, "role": "user", "parts": [file]}


def size_of(path: Path, suffix: str = "") -> int:
    """Return how many bytes a file of the database has; its write-ahead log has the suffix "-wal"."""
    return Path(f"{path}{suffix}").stat().st_size


def written(path: Path) -> int:
    """Return how many bytes were written since this was last asked, and put them into the database."""
    size = size_of(path, "-wal")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return size


async def test_large_output_and_images_are_read_back(path: Path) -> None:
    """A tool's output of 10 MB and six images of 5 MB are read back equal, each stored twice, as documented (MEM-2)."""
    output, data = "0123456789abcdef" * (10 * MEGABYTE // 16), "QUJD" * (5 * MEGABYTE // 4)
    messages = [tool("big", output), *(image(f"i{n}", data) for n in range(6))]
    async with open_store(f"sqlite:///{path}", synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        for message in messages:
            await session.append_message(message)
            assert not (await session.append_message(message)).inserted
    assert COPIES * 40 * MEGABYTE < size_of(path) < COPIES * 41 * MEGABYTE
    async with open_store(f"sqlite:///{path}") as store:
        history = await Session.create(store).for_session("chat").get_history()
        assert [message.to_dict() for message in history] == messages


async def test_append_writes_itself_alone(path: Path) -> None:
    """An append of a kilobyte writes no more bytes behind a thousand others than behind a hundred (MEM-2)."""
    url = f"sqlite:///{path}"
    async with open_store(url, synchronous="normal") as store:
        session = StoredSession(store, "chat")
        await session.append_message(tool("big", "x" * (10 * MEGABYTE)))
        costs: dict[int, list[int]] = {100: [], 1_000: []}
        sizes: dict[int, int] = {}
        count = 0
        for goal, cost in costs.items():
            await session.append_messages([said(f"m{n}", f"number{n} " + "x" * 1_000) for n in range(count, goal)])
            for count in range(goal, goal + 20):
                written(path)
                await session.append_message(said(f"m{count}", f"number{count} " + "x" * 1_000))
                cost.append(written(path))
            count += 1
            sizes[goal] = size_of(path)
    assert median(costs[1_000]) <= 1.5 * median(costs[100]) <= 300_000
    grown = sizes[1_000] - sizes[100]
    assert 900 * COPIES * 1_000 < grown < 900 * COPIES * 3_000


@pytest.mark.parametrize("door", ["append_message", "append_messages", "update_message", "upsert_message"])
async def test_what_is_over_the_limit_writes_nothing(path: Path, door: str) -> None:
    """A message above the limit is refused by the limit's name, and not a byte is written for it (MEM-2)."""
    async with open_store(f"sqlite:///{path}", limits=Limits(message_bytes=5 * MEGABYTE)) as store:
        session = Session.create(store).for_session("chat")
        await session.append_message(said("m1"))
        before = await log_of(store)
        written(path)
        message = tool("m1", "x" * (5 * MEGABYTE))
        with pytest.raises(LimitExceededError) as refused:
            await getattr(session, door)([message] if door == "append_messages" else message)
        assert (refused.value.limit, refused.value.maximum) == ("message_bytes", 5 * MEGABYTE)
        assert size_of(path, "-wal") == 0
        assert await log_of(store) == before
