"""Short ways to say things in tests of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeVar

from eventstore import MessageAppended
from sessions import Message, Session, Store

T = TypeVar("T")


def said(id: str, text: str = "hello", **other: Any) -> dict[str, Any]:
    """Return a message of a user with one text part, and any other keys."""
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}], **other}


def ids(messages: Iterable[Message]) -> list[str]:
    """Return the ids of messages."""
    return [message.id for message in messages]


async def collect(items: AsyncIterator[T]) -> list[T]:
    """Return everything that an iterator gives."""
    return [item async for item in items]


async def log_of(store: Store) -> list[tuple[str, int, str]]:
    """Return the session, version and type of every event."""
    return [(e.stream_id, e.version, e.type) async for e in store.log.read_all()]


async def stored_parents(session: Session) -> dict[str, str | None]:
    """Return each message's parent as the log has it, in log order."""
    found: dict[str, str | None] = {}
    async for envelope in session.events():
        if isinstance(envelope.event, MessageAppended):
            found[envelope.event.message["id"]] = envelope.event.parent_id
    return found


async def chain(session: Session, *names: str) -> None:
    """Append messages, each under the one before it."""
    for name in names:
        await session.append_message(said(name))
