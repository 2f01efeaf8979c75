"""A store with a few sessions in it, and a state folder of each test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions import SessionManager, open_store
from tests.cli.running import Fill, said


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see another's last used session or default store, nor the width of somebody's terminal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("EVENTSTORE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[Fill], str]:
    """Return a function that makes a store of what it is given to fill it, and gives its URL."""
    url = f"sqlite:///{tmp_path / 'store.db'}"

    def make(fill: Fill) -> str:
        async def made() -> None:
            async with open_store(url, synchronous="normal") as store:
                await fill(SessionManager(store))

        asyncio.run(made())
        return url

    return make


@pytest.fixture
def url(make_store: Callable[[Fill], str]) -> str:
    """Return the URL of a store of three sessions: `walk` has branches, `walk-2` none, `empty` no message."""

    async def fill(manager: SessionManager) -> None:
        await manager.create("Nothing yet", id="empty")
        await manager.create("A walk in the rain", id="walk-2", source="notes")
        await manager.get_session("walk-2").append_messages(said("Is the path wet?", "Yes, take boots. 雨が降る。"))
        await manager.create("A walk by the sea", id="walk", source="notes")
        walk = manager.get_session("walk")
        one, two, three, four, five = said("Where to?", "Along the cliffs.", "How far?", "Ten miles.", "By bus?")
        await walk.append_messages([one, two, three, four])
        await walk.append_message({**five, "role": "user"}, "m2")
        await walk.select_leaf("m4")

    return make_store(fill)


@pytest.fixture
def changed(make_store: Callable[[Fill], str]) -> str:
    """Return the URL of a store of one session, `s`, in which a message was updated, one deleted, two compacted."""

    async def fill(manager: SessionManager) -> None:
        await manager.create("Changes", id="s")
        session = manager.get_session("s")
        messages = said("one", "two\nlines", "three", "four", "five")
        await session.append_messages(messages)
        await session.update_message({**messages[1], "parts": [{"type": "text", "text": "two\nnew lines"}]})
        await session.delete_messages(["m3"])
        await session.add_compaction("What was said at first.", "m1", "m2")

    return make_store(fill)
