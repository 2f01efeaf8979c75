"""Other libraries' sessions, measured beside ours where they are installed; nothing here needs them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.corpus import JsonMessage


class OpenAISessions:
    """`SQLiteSession` of openai-agents: rows of JSON in one SQLite file, without a tree, an index or a hash.

    Its commits are as durable as ours: WAL, and SQLite's default of `synchronous=FULL`.
    """

    name = "openai-agents"

    def __init__(self, runner: asyncio.Runner, path: Path) -> None:
        self._runner = runner
        self._path = path
        self._opened: list[Any] = []

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the library is there to be measured."""
        with contextlib.suppress(ImportError):
            importlib.import_module("agents.memory")
            return True
        return False

    def session(self, session_id: str) -> Any:
        """A session as an application opens it."""
        session = importlib.import_module("agents.memory").SQLiteSession(session_id, self._path)
        self._opened.append(session)
        return session

    def run(self, work: Any) -> Any:
        """Run a coroutine to its end."""
        return self._runner.run(work)

    def close_sessions(self) -> None:
        """Close the sessions of a round."""
        while self._opened:
            self._opened.pop().close()


async def add_each(session: Any, messages: Sequence[JsonMessage]) -> None:
    """Add the messages one by one, each committed before the next."""
    for message in messages:
        await session.add_items([message])
