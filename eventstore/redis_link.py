"""Where a Redis server is, and how a task stays connected to it whatever happens there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, cast

from tenacity import AsyncRetrying, wait_random_exponential

from eventstore.errors import InvalidArgumentError

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
BACKOFF_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Wire(Protocol):
    """A connection to a Redis server, as far as it is used here."""

    async def connect(self) -> None:
        """Connect and sign in."""

    async def disconnect(self, nowait: bool = False) -> None:  # noqa: FBT001, FBT002 - the driver's own signature
        """Close the socket."""

    def pack_commands(self, commands: Iterable[Sequence[bytes]]) -> list[bytes]:
        """Commands as they are sent."""

    async def send_packed_command(self, command: Iterable[bytes], check_health: bool = True) -> None:  # noqa: FBT001, FBT002 - the same
        """Write commands to the socket."""

    async def read_response(self, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - the same
        """The next answer; raises the server's refusal. None when there is none in time."""


class Link:
    """A Redis server's address, with the patience to connect to it again and again.

    The address may hold a password: it is shown nowhere, and errors are logged by their type alone.
    """

    def __init__(self, url: str) -> None:
        # Loaded by those who have a Redis: it takes longer than all the rest together.
        from redis.asyncio.connection import ConnectionPool, parse_url  # noqa: PLC0415

        try:
            options: dict[str, Any] = dict(parse_url(url))
            # Answers are waited for here, within our own time, and nothing is repeated behind our back. The third
            # protocol has the driver log messages when it debugs.
            ours = {"protocol": 2, "decode_responses": False, "socket_timeout": None, "retry_on_timeout": False}
            self._pool = ConnectionPool(**{"socket_connect_timeout": CONNECT_SECONDS, **options, **ours})
            self._wire()
        except Exception:  # noqa: BLE001 - the driver raises what it likes
            # What is wrong with it may quote it.
            reason = "must be like redis://host:6379, rediss://… for TLS or unix://…, as redis-py takes it"
            raise InvalidArgumentError("redis_url", reason) from None

    async def stay(self, use: Callable[[Wire], Awaitable[None]], lost: Callable[[], None]) -> None:
        """Connect, let `use` work on the connection, and again when that fails, until cancelled.

        Before each new try it waits, at random and longer from time to time, up to two seconds; `lost` is called
        after each failure. A connection that has lasted starts the waiting anew.
        """
        clock = asyncio.get_running_loop().time
        troubled = False

        async def once() -> None:
            nonlocal troubled
            wire = self._wire()
            since: float | None = None
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await wire.connect()
                if troubled:
                    logger.warning("connected to Redis again")
                troubled, since = False, clock()
                await use(wire)
            except Exception as error:
                if not troubled:
                    logger.warning("no connection to Redis, trying again: %s", type(error).__name__)
                troubled = True
                lost()
                # One that has lasted is no failed try.
                if since is None or clock() - since < BACKOFF_SECONDS:
                    raise
            finally:
                with contextlib.suppress(Exception):
                    await wire.disconnect(nowait=True)

        while True:
            patiently = AsyncRetrying(wait=wait_random_exponential(multiplier=0.05, max=BACKOFF_SECONDS))
            await patiently(once)

    def _wire(self) -> Wire:
        return cast("Wire", self._pool.make_connection())  # type: ignore[no-untyped-call]
