"""A store of ours on a file, driven from plain code on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.corpus import JsonMessage
from eventstore.ports import Publisher
from sessions import Session, open_store

T = TypeVar("T")

BATCH = 1_000


class Ours:
    """An open store; every call of `run` continues on the same loop."""

    def __init__(self, runner: asyncio.Runner, path: Path, *, publisher: Publisher | None = None) -> None:
        self._runner = runner
        self._opened = AsyncExitStack()
        opening = open_store(f"sqlite:///{path}", publisher=publisher)
        self.store = runner.run(self._opened.enter_async_context(opening))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(work)

    def session(self, session_id: str) -> Session:
        """A session as an application opens it."""
        return Session.create(self.store).for_session(session_id)

    def close(self) -> None:
        """Close the store."""
        self._runner.run(self._opened.aclose())


async def append_each(session: Session, messages: Sequence[JsonMessage]) -> None:
    """Append the messages one by one, each committed before the next."""
    for message in messages:
        await session.append_message(message)


async def append_in_batches(session: Session, messages: Sequence[JsonMessage]) -> None:
    """Append the messages by the thousand."""
    for start in range(0, len(messages), BATCH):
        await session.append_messages(messages[start : start + BATCH])
