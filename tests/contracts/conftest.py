"""The implementations that every contract suite runs for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from eventstore.log import EventLog
from tests.eventstore.support import MEMORY, Tally, file_at, opened


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database."""
    return file_at(tmp_path) if request.param == "file" else MEMORY


@pytest.fixture
def tally() -> Tally:
    """Return the projection that the log under test applies."""
    return Tally()


@pytest.fixture
async def log(url: str, tally: Tally) -> AsyncIterator[EventLog]:
    """Return an empty log with one projection."""
    async with opened(url, tally) as log:
        yield log
