"""What tests of Redis are given: a server that they may stop, and a corner of one that they may not."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from eventstore import hints
from tests.eventstore.redis_server import RedisServer


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Return a running server that a test may do anything to."""
    one = RedisServer()
    one.start()
    yield one
    one.stop()


@pytest.fixture
def prefix() -> str:
    """Return a prefix that nobody else uses."""
    return f"{uuid.uuid4()}:"


@pytest.fixture
def only_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave it to hints alone to wake readers: the file is looked at once, and then no more."""
    monkeypatch.setattr(hints, "POLL_SECONDS", 3600)
