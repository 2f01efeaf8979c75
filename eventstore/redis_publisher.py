"""The publisher over Redis: messages to other processes and machines, which hold up nobody who sends them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from eventstore.publisher import Followers
from eventstore.redis_link import ANSWER_SECONDS, Link, Wire

OUTBOX = 10_000
OUTBOX_BYTES = 8 * 1024 * 1024
BATCH = 500
FLUSH_SECONDS = 1.0
PING_SECONDS = 5.0
SILENCE_SECONDS = 12.0
BREATH = 64

logger = logging.getLogger(__name__)

Parcel = tuple[bytes, bytes]
"""A channel's name at the server, and a message as JSON."""


class RedisPublisher:
    """Sends each message to everybody who follows its channel, in whatever process, over Redis pub/sub.

    `publish` puts it on a bounded queue and returns; one task sends what waits there, many at a time, and connects
    again when the connection is lost. So a Redis that is slow, down or swallowed by the network costs no append
    anything. `sent` counts what Redis has taken, `dropped` what it will never get, `connected` says how things stand.

    Redis keeps nothing for those who are away. After a restart of the server subscriptions are made again, and each
    channel gets its last message, perhaps a second time; what came before it is dropped. Whoever follows the log
    misses no event: its subscribers are woken when the connection is back, and read the log. In each process a
    follower that is more than 1,000 messages behind loses the oldest, and is forgotten when it is dropped, cancelled
    or closed, without a further message.

    Pub/sub knows no databases: all who use one server share its channels. `channel_prefix` stands before the names,
    and keeps stores on one server apart.
    """

    def __init__(self, url: str, *, channel_prefix: str = "eventstore:") -> None:
        self._connected = False
        self._sent = 0
        self._refused = False
        self._link = Link(url)
        self._prefix = channel_prefix
        self._outbox = _Outbox()
        self._followers = Followers(self._changed)
        self._live: set[str] = set()
        self._wanted = asyncio.Event()
        self._state = asyncio.Event()
        self._said_bye = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._receiver: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether the connection for sending stands; it is made with the first message, or by `connect`."""
        return self._connected

    @property
    def sent(self) -> int:
        """How many messages Redis has taken."""
        return self._sent

    @property
    def dropped(self) -> int:
        """How many messages could not be sent, and never will be."""
        return self._outbox.dropped

    def listening(self, channel: str) -> bool:  # noqa: ARG002 - the same question as to other publishers
        """Whether making a message is worth it: always, for nobody knows who listens elsewhere."""
        return True

    def followers(self, channel: str) -> int:
        """How many follow a channel in this process."""
        return self._followers.count(channel)

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Take a message, in order, and return at once; it never raises."""
        self.hand(channel, message)

    def hand(self, channel: str, message: dict[str, Any]) -> None:
        """The same as `publish`, for those who cannot await; on the event loop's thread."""
        try:
            parcel = self._name(channel), msgspec.json.encode(message)
        except Exception as error:  # noqa: BLE001 - a message that is no JSON is not the append's trouble
            self._outbox.dropped += 1
            logger.warning("a message could not be made JSON: %s", type(error).__name__)
            return
        if self._closing is not None:
            self._outbox.dropped += 1
            return
        self._outbox.put(parcel)
        self._start_sending()

    def subscribe(
        self, channel: str, *, resumed: Callable[[], object] | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of a channel, in order, from when Redis knows of it until the publisher is closed.

        `resumed` is called when that is so, and again each time after the connection was lost in between, when
        messages may have been missed.
        """
        return self._followers.follow(channel, resumed)

    def watch(
        self, channel: str, heard: Callable[[dict[str, Any]], object], resumed: Callable[[], object] | None = None
    ) -> AbstractContextManager[None]:
        """A context in which a plain function is called with each message of a channel, as soon as it comes."""
        return self._followers.watch(channel, heard, resumed)

    async def connect(self, *, within: float = 1.0) -> bool:
        """Be connected before there is anything to send; returns whether it is so after so many seconds."""
        if self._closing is None:
            self._start_sending()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self.connected:
                    self._state.clear()
                    await self._state.wait()
        return self.connected

    async def close(self) -> None:
        """Send what waits, for a second at most, and end every subscription; a second call waits for the first."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                # What this process still sends, its own followers hear before they end.
                if self._sender is not None and await self._outbox.emptied() and self._live:
                    self._wanted.set()
                    await self._said_bye.wait()
        self._followers.close()
        tasks = [task for task in (self._sender, self._receiver) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._outbox.drop_all()
        self._lost_sender()

    def _start_sending(self) -> None:
        if self._sender is None:
            self._sender = asyncio.create_task(self._link.stay(self._send, self._lost_sender))

    def _lost_sender(self) -> None:
        self._connected = False
        self._state.set()
        self._outbox.keep_latest()

    async def _send(self, wire: Wire) -> None:
        self._connected = True
        self._state.set()
        self._outbox.hopeful = True
        while True:
            if not await _within(PING_SECONDS, self._outbox.filled()):
                # Nobody sends: is the connection still there?
                await _exchange(wire, [(b"PING",)])
                continue
            batch = self._outbox.take()
            refused = await _exchange(wire, [(b"PUBLISH", name, message) for name, message in batch])
            if refused and not self._refused:
                # Once: as a rule it is that the user may not publish, and stays so.
                logger.warning("Redis refuses messages")
            self._refused = self._refused or refused > 0
            self._outbox.settle(refused)
            self._sent += len(batch) - refused

    def _changed(self, channel: str) -> None:
        if channel in self._live:
            self._followers.resume(channel)
        self._wanted.set()
        if self._receiver is None and self._followers.channels:
            self._receiver = asyncio.create_task(self._link.stay(self._receive, self._live.clear))

    async def _receive(self, wire: Wire) -> None:
        asking = asyncio.create_task(self._ask(wire))
        try:
            count = 0
            while True:
                answer = await wire.read_response(timeout=SILENCE_SECONDS)
                if answer is None:
                    raise TimeoutError
                self._take(answer)
                count += 1
                if count % BREATH == 0:
                    # What is in the buffer is read without waiting: followers get their turn, before they overflow.
                    await asyncio.sleep(0)
        finally:
            asking.cancel()
            await asyncio.wait([asking])
            # A failure to write is seen by the reading too.
            _ = asking.cancelled() or asking.exception()

    async def _ask(self, wire: Wire) -> None:
        asked: set[str] = set()
        while True:
            self._wanted.clear()
            wanted = self._followers.channels
            gone = asked - wanted
            self._live -= gone
            commands = [
                (verb, *(self._name(channel) for channel in sorted(channels)))
                for verb, channels in ((b"SUBSCRIBE", wanted - asked), (b"UNSUBSCRIBE", gone))
                if channels
            ]
            asked = wanted
            if self._closing is not None:
                commands.append((b"PING", b"bye"))
            await _write(wire, commands)
            if not await _within(PING_SECONDS, self._wanted.wait()):
                await _write(wire, [(b"PING",)])

    def _take(self, answer: Any) -> None:
        match answer:
            case [b"message", bytes(name), bytes(data)]:
                with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
                    # Anybody can write to a channel: what is no message of ours is passed over.
                    self._followers.hand(self._channel(name), msgspec.json.decode(data, type=dict[str, Any]))
            case [b"subscribe", bytes(name), int()]:
                channel = self._channel(name)
                if self._followers.count(channel):
                    self._live.add(channel)
                    self._followers.resume(channel)
            case b"bye" | [b"pong", b"bye"]:
                self._said_bye.set()

    def _name(self, channel: str) -> bytes:
        return (self._prefix + channel).encode("utf-8", "surrogatepass")

    def _channel(self, name: bytes) -> str:
        return name.decode("utf-8", "surrogatepass").removeprefix(self._prefix)


class _Outbox:
    """What waits to be sent: bounded in number and in bytes, the oldest goes first."""

    def __init__(self) -> None:
        self.dropped = 0
        self.hopeful = True
        self._waiting: collections.deque[Parcel] = collections.deque()
        self._under_way: list[Parcel] = []
        self._bytes = 0
        self._changed = asyncio.Event()

    def put(self, parcel: Parcel) -> None:
        """Add a message at the end."""
        self._waiting.append(parcel)
        self._bytes += _size(parcel)
        while len(self._waiting) > OUTBOX or self._bytes > OUTBOX_BYTES:
            self._bytes -= _size(self._waiting.popleft())
            self.dropped += 1
        self._changed.set()

    def take(self) -> list[Parcel]:
        """The next messages, which are under way until they are settled."""
        self._under_way = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        self._bytes -= sum(map(_size, self._under_way))
        return self._under_way

    def settle(self, refused: int) -> None:
        """Redis has answered for what was under way."""
        self._under_way = []
        self.dropped += refused
        self._changed.set()

    def keep_latest(self) -> None:
        """Keep the last message of each channel, for when the connection is back; older ones are no news by then."""
        latest: dict[bytes, bytes] = {}
        for name, message in (*self._under_way, *self._waiting):
            self.dropped += latest.pop(name, None) is not None
            latest[name] = message
        self._under_way = []
        self._waiting = collections.deque(latest.items())
        self._bytes = sum(map(_size, self._waiting))
        self.hopeful = False
        self._changed.set()

    def drop_all(self) -> None:
        """Give up what waits."""
        self.dropped += len(self._under_way) + len(self._waiting)
        self._under_way = []
        self._waiting.clear()
        self._bytes = 0

    async def filled(self) -> None:
        """Wait until there is something to send."""
        while not self._waiting:
            self._changed.clear()
            await self._changed.wait()

    async def emptied(self) -> bool:
        """Wait until all was sent, and return whether it was: not, when the connection is lost."""
        while self.hopeful and (self._waiting or self._under_way):
            self._changed.clear()
            await self._changed.wait()
        return self.hopeful


def _size(parcel: Parcel) -> int:
    return len(parcel[0]) + len(parcel[1])


async def _within(seconds: float, waiting: Coroutine[Any, Any, Any]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return False
    return True


async def _write(wire: Wire, commands: Sequence[Sequence[bytes]]) -> None:
    if commands:
        async with asyncio.timeout(ANSWER_SECONDS):
            await wire.send_packed_command(wire.pack_commands(commands), check_health=False)


async def _exchange(wire: Wire, commands: Sequence[Sequence[bytes]]) -> int:
    """Send commands at once, wait for the answers, and return how many were refused."""
    from redis.exceptions import ResponseError  # noqa: PLC0415 - loaded with the driver, see Link

    await _write(wire, commands)
    refused = 0
    async with asyncio.timeout(ANSWER_SECONDS):
        for _ in commands:
            try:
                await wire.read_response()
            except ResponseError:
                refused += 1
    return refused
