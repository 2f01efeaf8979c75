"""What a manager is meant to do, as plainly as it can be said: dicts of what is known of sessions, without a log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from sessions.appending import AUTO
from tests.properties.forest import RefusedError
from tests.properties.model import Conversation


@dataclasses.dataclass
class Told:
    """What is known of a session, with its messages; `told` counts the events that are about no message."""

    name: str
    parent: str | None = None
    model: str | None = None
    source: str | None = None
    used: tuple[int, int, float] = (0, 0, 0.0)
    end_reason: str | None = None
    talk: Conversation = dataclasses.field(default_factory=Conversation)
    told: int = 0


class Sessions:
    """All sessions: those that are there, in the order of their last events, and the ids of deleted ones."""

    def __init__(self) -> None:
        self.known: dict[str, Told] = {}
        self.gone: list[str] = []

    def create(self, session_id: str, told: Told) -> None:
        """Enter a session under an id that was never used."""
        self._refuse_deleted(session_id)
        if session_id in self.known:
            raise RefusedError("SessionExistsError")
        self.known[session_id] = told
        told.told += 1

    def tell(self, session_id: str, **news: Any) -> None:
        """Note something about a session, unless it is known already."""
        told = self.find(session_id)
        if any(getattr(told, key) != value for key, value in news.items()):
            self._event(session_id, news)

    def end(self, session_id: str) -> None:
        """Note that a session ended, however often it does."""
        self.find(session_id)
        self._event(session_id, {"end_reason": "compaction"})

    def use(self, session_id: str, input_tokens: int, output_tokens: int, cost: float) -> None:
        """Add usage to a session."""
        before = self.find(session_id).used
        used = (before[0] + input_tokens, before[1] + output_tokens, before[2] + cost)
        self._event(session_id, {"used": used})

    def change(self, session_id: str, change: Callable[[Conversation], object]) -> None:
        """Change the messages of a session, which is there from its first event on."""
        self._refuse_deleted(session_id)
        told = self.known.get(session_id) or Told(session_id)
        before = told.talk.version
        change(told.talk)
        if told.talk.version > before:
            self.known.pop(session_id, None)
            self.known[session_id] = told

    def append(self, session_id: str, chain: list[dict[str, Any]], below: Any = AUTO) -> None:
        """Append messages to a session; none of them are no call at all."""
        if chain:
            self.change(session_id, lambda talk: talk.append(chain, below))

    def delete(self, session_id: str) -> None:
        """Delete a session, if it is there."""
        if self.known.pop(session_id, None) is not None:
            self.gone.append(session_id)

    def find(self, session_id: str) -> Told:
        """Return what is known of a session that must be there."""
        self._refuse_deleted(session_id)
        if session_id not in self.known:
            raise RefusedError("SessionNotFoundError")
        return self.known[session_id]

    def has_message(self, session_id: str, message_id: str) -> None:
        """Refuse a message that is not there."""
        if message_id not in self.find(session_id).talk.contents:
            raise RefusedError("MessageNotFoundError")

    def listed(self) -> list[str]:
        """Return the ids of sessions, the one with the newest event first."""
        return list(self.known)[::-1]

    def _event(self, session_id: str, news: dict[str, Any]) -> None:
        told = self.known.pop(session_id)
        self.known[session_id] = dataclasses.replace(told, **news, told=told.told + 1)

    def _refuse_deleted(self, session_id: str) -> None:
        if session_id in self.gone:
            raise RefusedError("SessionDeletedError")
