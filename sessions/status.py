"""Live status of a session: frames for whoever watches it, given to a publisher as they come up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

from eventstore.limits import clean_text
from sessions.providers import settle

logger = logging.getLogger(__name__)

STATUS = "cf_agent_session"
ERROR = "cf_agent_session_error"

Phase = Literal["idle", "compacting"]


def channel_of(session_id: str) -> str:
    """The channel of a session's status frames."""
    return f"session:{session_id}"


class LiveStatus:
    """Hands the frames of one session to a publisher; one that fails harms nobody.

    `is_given` says that the publisher was given for these frames: then somebody listens, whatever it says itself.
    """

    def __init__(self, session_id: str, publisher: Any, threshold: float | None, *, is_given: bool) -> None:
        self._session_id = session_id
        self._channel = channel_of(session_id)
        self._publisher = publisher
        self._threshold = threshold
        self._asks = getattr(publisher, "listening", None) if publisher is not None and not is_given else None

    def is_listened(self) -> bool:
        """Whether anybody may be listening, so that a frame is worth making."""
        if self._publisher is None:
            return False
        asks: Callable[[str], bool] | None = self._asks
        return asks is None or asks(self._channel)

    async def tell(self, phase: Phase, tokens: int, *, tokens_before: int | None = None) -> None:
        """Tell where the session is; `tokens_before` is what it came to before it was compacted."""
        frame: dict[str, Any] = {
            "type": STATUS,
            "sessionId": self._session_id,
            "phase": phase,
            "tokenEstimate": tokens,
            "tokenThreshold": self._threshold,
        }
        if tokens_before is not None:
            frame["compacted"] = {"tokensBefore": tokens_before}
        await self._publish(frame)

    async def tell_error(self, error: BaseException) -> None:
        """Tell that something went wrong beside a write, which stands."""
        text = clean_text(str(error)) or type(error).__name__
        await self._publish({"type": ERROR, "sessionId": self._session_id, "error": text})

    async def _publish(self, frame: dict[str, Any]) -> None:
        if not self.is_listened():
            return
        try:
            await settle(self._publisher.publish(self._channel, frame))
        except Exception as error:  # noqa: BLE001 - a publisher's trouble is not the session's
            logger.warning("a status frame was not published: %s", type(error).__name__)
