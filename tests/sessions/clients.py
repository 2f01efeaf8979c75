"""Lists of messages as a client has them, and what must hold of every list that it sends back."""

from __future__ import annotations

from typing import Any

from sessions import (
    ReconcileResult,
    Session,
)
from tests.sessions.talk import said


def answered(id: str, text: str = "Sure", **other: Any) -> dict[str, Any]:
    """Return a message of the model."""
    return said(id, text, **{"role": "assistant", **other})


async def talked(session: Session) -> list[dict[str, Any]]:
    """Store two turns whose answers are the same, and return them as a client has them."""
    turns = [said("u1", "help"), answered("a1"), said("u2", "more"), answered("a2")]
    await session.append_messages(turns)
    return turns


async def twice(session: Session, messages: list[Any]) -> ReconcileResult:
    """Reconcile a list, check that the same list again changes nothing, and return what came of the first time."""
    result = await session.reconcile(messages)
    assert result.inserted + result.updated + result.unchanged == len(messages)
    version, history = await session.version(), await session.get_history()
    assert await session.reconcile(messages) == ReconcileResult(0, 0, len(messages))
    assert await session.version() == version
    assert await session.get_history() == history
    return result
