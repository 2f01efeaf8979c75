from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sessions import Session, Store, open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a store in a file of its own."""
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture(params=["file", "memory"])
async def store(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Store]:
    """Open a store on each kind of engine; commits do not wait for the disk, which no test here can tell."""
    async with open_store(url if request.param == "file" else "sqlite://", synchronous="normal") as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session:
    """Return the session "chat" of the store, of which nothing is stored yet."""
    return Session.create(store).for_session("chat")
