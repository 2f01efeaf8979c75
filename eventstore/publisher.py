"""The in-process publisher: messages from one task to others of the same process."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator
from typing import Any

QUEUE = 1_000


class InProcessPublisher:
    """Hands each message to everybody who follows its channel; nobody who is slow holds up the others.

    A follower that is more than 1,000 messages behind loses the oldest: messages are hints and live status, the log
    is the truth.
    """

    def __init__(self) -> None:
        self._followers: dict[str, set[_Follower]] = collections.defaultdict(set)
        self._closed = False

    def listening(self, channel: str) -> bool:
        """Whether anybody follows the channel, so that making a message is worth it."""
        return bool(self._followers.get(channel))

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Hand a message to the channel's followers."""
        for follower in self._followers.get(channel, ()):
            follower.waiting.append(message)
            follower.bell.set()

    async def subscribe(self, channel: str) -> AsyncIterator[dict[str, Any]]:
        """The messages of a channel from the first `anext` on, in order, until the publisher is closed."""
        follower = _Follower()
        self._followers[channel].add(follower)
        try:
            while True:
                # Cleared before looking, so that what comes while a message is worked on rings again.
                follower.bell.clear()
                while follower.waiting:
                    yield follower.waiting.popleft()
                if self._closed:
                    return
                await follower.bell.wait()
        finally:
            self._followers[channel].discard(follower)
            if not self._followers[channel]:
                del self._followers[channel]

    def close(self) -> None:
        """End every subscription."""
        self._closed = True
        for followers in self._followers.values():
            for follower in followers:
                follower.bell.set()


class _Follower:
    def __init__(self) -> None:
        self.waiting: collections.deque[dict[str, Any]] = collections.deque(maxlen=QUEUE)
        self.bell = asyncio.Event()
