"""The in-process publisher: messages from one task to others of the same process."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import msgspec

QUEUE = 1_000


class Followers:
    """Who follows which channel in this process, each with a queue of its own.

    A follower is forgotten when its iterator is closed, cancelled or collected, without a further message; one that
    was dropped before its first step was never there. Its queue is bounded: the oldest messages go.
    """

    def __init__(self, changed: Callable[[str], None] | None = None) -> None:
        self.closed = False
        self._changed = changed
        self._following: dict[str, set[_Follower]] = collections.defaultdict(set)

    @property
    def channels(self) -> set[str]:
        """The channels that somebody follows."""
        return set(self._following)

    def count(self, channel: str) -> int:
        """How many follow a channel."""
        return len(self._following.get(channel, ()))

    def hand(self, channel: str, message: dict[str, Any]) -> None:
        """Give a message to a channel's followers."""
        for follower in self._following.get(channel, ()):
            follower.heard(message)

    def resume(self, channel: str) -> None:
        """Tell the followers of a channel that from now on nothing is missed."""
        for follower in tuple(self._following.get(channel, ())):
            if follower.resumed is not None:
                follower.resumed()

    @contextlib.contextmanager
    def watch(
        self,
        channel: str,
        heard: Callable[[dict[str, Any]], object],
        resumed: Callable[[], object] | None = None,
        ended: Callable[[], object] | None = None,
    ) -> Iterator[None]:
        """A context in which a plain function is called with each message of a channel, and another at the end."""
        follower = _Follower(heard, resumed, ended)
        self._following[channel].add(follower)
        self._tell(channel)
        try:
            yield
        finally:
            self._following[channel].discard(follower)
            if not self._following[channel]:
                del self._following[channel]
            self._tell(channel)

    async def follow(
        self, channel: str, resumed: Callable[[], object] | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of a channel from the first `anext` on, in order, until all are closed."""
        waiting: collections.deque[dict[str, Any]] = collections.deque(maxlen=QUEUE)
        bell = asyncio.Event()

        def heard(message: dict[str, Any]) -> None:
            waiting.append(message)
            bell.set()

        with self.watch(channel, heard, resumed, bell.set):
            while True:
                # Cleared before looking, so that what comes while a message is worked on rings again.
                bell.clear()
                while waiting:
                    yield waiting.popleft()
                if self.closed:
                    return
                await bell.wait()

    def close(self) -> None:
        """End every iterator, once it has given what waits for it."""
        self.closed = True
        for followers in self._following.values():
            for follower in followers:
                if follower.ended is not None:
                    follower.ended()

    def _tell(self, channel: str) -> None:
        if self._changed is not None and not self.closed:
            self._changed(channel)


class InProcessPublisher:
    """Hands each message to everybody who follows its channel; nobody who is slow holds up the others.

    A follower that is more than 1,000 messages behind loses the oldest: messages are hints and live status, the log
    is the truth.
    """

    def __init__(self) -> None:
        self._followers = Followers()

    def listening(self, channel: str) -> bool:
        """Whether anybody follows the channel, so that making a message is worth it."""
        return self._followers.count(channel) > 0

    def followers(self, channel: str) -> int:
        """How many follow a channel in this process."""
        return self._followers.count(channel)

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Hand a message to the channel's followers."""
        self._followers.hand(channel, message)

    def hand(self, channel: str, message: dict[str, Any]) -> None:
        """The same as `publish`, for those who cannot await."""
        self._followers.hand(channel, message)

    def subscribe(self, channel: str) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of a channel from the first `anext` on, in order, until the publisher is closed."""
        return self._followers.follow(channel)

    async def close(self) -> None:
        """End every subscription."""
        self._followers.close()


class _Follower(msgspec.Struct, frozen=True, eq=False):
    heard: Callable[[dict[str, Any]], object]
    resumed: Callable[[], object] | None
    ended: Callable[[], object] | None
