"""How many tokens a model would be given of a session now: its view, and its system prompt."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eventstore.errors import InvalidArgumentError
from projections.tokens import estimate_string_tokens
from sessions.providers import settle
from sessions.running import Running
from sessions.stored import StoredSession


class ViewEstimate:
    """Estimates the current view of a session, compactions applied, with the prompt as it is frozen or would be.

    Without a counter no message is read: the store keeps sums. A counter gets the whole history, the prompt and the
    blocks; what it gives is rounded up, and 0 when it is negative or not finite.
    """

    def __init__(self, running: Running, counter: Callable[..., Any] | None) -> None:
        self._running = running
        self._counter = counter
        storage = running.storage
        self._estimate = storage.store.estimate_tokens if isinstance(storage, StoredSession) else estimate_string_tokens

    async def tokens(self) -> int:
        """The estimate; raises what a provider, a counter or the storage raises."""
        running = self._running
        prompt = await running.prompt.current()
        if self._counter is None:
            return await running.storage.token_estimate() + self._estimate(prompt)
        blocks = [bound.block() for bound in await running.blocks.all()]
        messages = await running.storage.get_history()
        return _rounded(
            await settle(self._counter(messages=messages, system_prompt=prompt, context_blocks=blocks)),
        )


def _rounded(tokens: object) -> int:
    if not isinstance(tokens, (int, float)):
        raise InvalidArgumentError("token_counter", f"must give a number, not {type(tokens).__name__}")
    return math.ceil(tokens) if math.isfinite(tokens) and tokens > 0 else 0
