from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sessions import Store, open_store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Open a store in memory: what exports read is the same in a file."""
    async with open_store("sqlite://") as opened:
        yield opened
