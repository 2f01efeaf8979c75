"""What every test shares: nobody's own data is touched, and random examples are the same in every run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.eventstore.redis_server import RedisServer, find_server

# Quick runs try the same examples each time, so that a red test is red for everyone; `make soak` looks for new ones.
settings.register_profile("quick", derandomize=True, database=None, deadline=None, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("quick")


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the default store and the command line's memory out of the home of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(home)
    os.environ.pop("EVENTSTORE_URL", None)


@pytest.fixture(scope="session")
def soak_fixtures() -> Path:
    """Return the folder of large exports that `make soak FIXTURES=folder` names."""
    folder = os.environ.get("SOAK_FIXTURES")
    if not folder:
        pytest.skip("needs large exports: make soak FIXTURES=folder")
    return Path(folder)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Return the URL of a Redis server that nobody stops; without one of our own it is that of TEST_REDIS_URL."""
    given = os.environ.get("TEST_REDIS_URL")
    if given and find_server() is None:
        yield given
        return
    server = RedisServer()
    server.start()
    yield server.url
    server.stop()
