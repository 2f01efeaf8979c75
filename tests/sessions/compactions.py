"""Compaction functions, error handlers and publishers for tests, which remember what they were given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from eventstore import InvalidArgumentError, InvalidCompactionError
from sessions import CompactionContext, CompactResult, Message, Session

Answer = CompactResult | None

BAD: dict[str, tuple[Any, type[BaseException]]] = {
    "empty": (CompactResult("m1", "m2", ""), InvalidCompactionError),
    "blank": (CompactResult("m1", "m2", " \n"), InvalidCompactionError),
    "no text": (CompactResult("m1", "m2", None), InvalidArgumentError),  # type: ignore[arg-type]
    "reversed": (CompactResult("m2", "m1", "S"), InvalidCompactionError),
    "no result": ({"summary": "S"}, InvalidArgumentError),
    "raises": (OSError("model offline"), OSError),
    "is cancelled": (asyncio.CancelledError(), asyncio.CancelledError),
}
"""Answers that are refused, and what is raised for each."""


class Compactor:
    """A compaction function that gives one answer after the other, the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.given: list[list[str]] = []
        self.contexts: list[CompactionContext] = []

    def __call__(self, messages: list[Message], context: CompactionContext) -> Any:
        """Give the next answer; an exception is raised."""
        self.given.append(texts(messages))
        self.contexts.append(context)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(messages) if callable(answer) else answer


class Waiting:
    """A compaction function that waits until it is let go, and says when it has begun."""

    def __init__(self, answer: Any) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.compact = Compactor(answer)

    async def __call__(self, messages: list[Message], context: CompactionContext) -> Any:
        """Wait, then give the answer."""
        self.begun.set()
        await self.go.wait()
        return self.compact(messages, context)


class Frames:
    """A publisher that keeps what it was given."""

    def __init__(self, failing: Exception | None = None) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.failing = failing

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Keep a message, and fail if it is to."""
        self.sent.append((channel, message))
        if self.failing:
            raise self.failing

    def phases(self) -> list[str]:
        """Return the phases of the frames, of an error what it says."""
        return [message.get("phase") or f"error: {message['error']}" for _, message in self.sent]


def texts(messages: Sequence[Message]) -> list[str]:
    """Return the ids of messages, and of summaries what they say."""
    return [message.text if message.id.startswith("compaction_") else message.id for message in messages]


def middle(prefix: str = "S") -> Callable[[list[Message]], Answer]:
    """Return an answer that summarises all messages but the first and the last by naming them."""

    def answer(messages: list[Message]) -> Answer:
        inner = [message.id for message in messages[1:-1] if not message.id.startswith("compaction_")]
        return CompactResult(inner[0], inner[-1], f"{prefix}({' '.join(inner)})") if inner else None

    return answer


async def shown(session: Session, leaf_id: str | None = None) -> list[str]:
    """Return the history as ids and summaries."""
    return texts(await session.get_history(leaf_id))


async def during(function: Waiting, compacting: Awaitable[Any], *, meanwhile: Callable[[], Awaitable[Any]]) -> Any:
    """Do something while a compaction is on its way, and return what that came to."""
    task = asyncio.ensure_future(compacting)
    await function.begun.wait()
    await meanwhile()
    function.go.set()
    return await task
