"""Other libraries that keep conversations or events, as 64 writers use them; each is measured where it is installed.

Each commit is as durable as ours (WAL or a rollback journal, `synchronous=FULL`). What a library does on the thread
that calls it is handed to other threads, as its users would do: the event loop is not held up.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.corpus import JsonMessage

Append = Callable[[JsonMessage], Awaitable[object]]
Writers = Callable[[Sequence[str]], Awaitable[list[Append]]]
"""What appends to each of some new sessions, by their ids."""


@dataclass(frozen=True)
class Peer:
    """A library, the module that shows that it is there, and how it is opened on a folder."""

    name: str
    module: str
    open: Callable[[Path], AbstractAsyncContextManager[Writers]]

    def is_installed(self) -> bool:
        """Whether the library is there to be measured."""
        with contextlib.suppress(ImportError):
            importlib.import_module(self.module)
            return True
        return False


async def _add(session: Any, message: JsonMessage) -> None:
    await session.add_items([message])


@contextlib.asynccontextmanager
async def _openai(folder: Path) -> AsyncIterator[Writers]:
    """`SQLiteSession`: rows of JSON."""
    memory: Any = importlib.import_module("agents.memory")
    opened: list[Any] = []

    async def writers(session_ids: Sequence[str]) -> list[Append]:
        sessions = [memory.SQLiteSession(session_id, folder / "openai.db") for session_id in session_ids]
        opened.extend(sessions)
        return [partial(_add, session) for session in sessions]

    yield writers
    for session in opened:
        session.close()


@contextlib.asynccontextmanager
async def _eventsourcing(folder: Path) -> AsyncIterator[Writers]:
    """An application with an aggregate per session, which stays in memory: an event and a notification per append."""
    application: Any = importlib.import_module("eventsourcing.application")
    domain: Any = importlib.import_module("eventsourcing.domain")

    class Conversation(domain.Aggregate):  # type: ignore[misc] # not installed where types are checked
        class MessageAdded(domain.Aggregate.Event):  # type: ignore[misc] # the same
            message: JsonMessage

            def apply(self, aggregate: object) -> None:
                """Nothing is kept but the event."""

    settings = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(folder / "eventsourcing.db")}
    opened = application.Application(env=settings)

    def save(conversation: Any, message: JsonMessage) -> None:
        conversation.trigger_event(Conversation.MessageAdded, message=message)
        opened.save(conversation)

    async def append(conversation: Any, message: JsonMessage) -> None:
        await asyncio.to_thread(save, conversation, message)

    async def writers(session_ids: Sequence[str]) -> list[Append]:
        conversations = [Conversation() for _ in session_ids]
        await asyncio.to_thread(opened.save, *conversations)
        return [partial(append, conversation) for conversation in conversations]

    yield writers
    opened.close()


@contextlib.asynccontextmanager
async def _langgraph(folder: Path) -> AsyncIterator[Writers]:
    """`AsyncSqliteSaver`: a checkpoint per append, with the new message alone, which is less than its users write."""
    saver: Any = importlib.import_module("langgraph.checkpoint.sqlite.aio").AsyncSqliteSaver
    empty: Any = importlib.import_module("langgraph.checkpoint.base").empty_checkpoint

    async with saver.from_conn_string(str(folder / "langgraph.db")) as opened:
        await opened.setup()

        async def put(session_id: str, message: JsonMessage) -> None:
            config = {"configurable": {"thread_id": session_id, "checkpoint_ns": ""}}
            await opened.aput(config, {**empty(), "channel_values": {"messages": [message]}}, {}, {})

        async def writers(session_ids: Sequence[str]) -> list[Append]:
            return [partial(put, session_id) for session_id in session_ids]

        yield writers


PEERS = (
    Peer("OpenAI SQLiteSession", "agents.memory", _openai),
    Peer("eventsourcing", "eventsourcing.application", _eventsourcing),
    Peer("LangGraph AsyncSqliteSaver", "langgraph.checkpoint.sqlite.aio", _langgraph),
)
