"""Signals beside the events of `tail`: the live status of sessions, which reaches other processes over Redis alone."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

import msgspec

from eventstore.redis_link import ANSWER_SECONDS, Link, Wire
from replay.cli.failures import USAGE, Failure
from replay.cli.options import Run
from replay.cli.text import one_line
from sessions.status import channel_of

REDIS_VARIABLE: Final = "EVENTSTORE_REDIS_URL"
"""The environment variable that names the Redis server."""
PREFIX: Final = "eventstore:"
"""What stands before the names of channels unless a publisher was told otherwise."""
SILENCE_SECONDS: Final = 5.0
"""After so long without a word Redis is asked whether it is still there."""
WAITING: Final = 1_000

_SPECIAL: Final = re.compile(rb"[*?\[\]^\\-]")


class Signal(msgspec.Struct, frozen=True):
    """A frame that was heard on a session's channel, and when."""

    session_id: str
    frame: dict[str, Any]
    heard_at: dt.datetime

    def record(self) -> dict[str, Any]:
        """The signal as a record for programs, the frame in it as it came."""
        about = {"heard_at": self.heard_at, "stream_id": self.session_id, "type": self.frame["type"]}
        return {**about, "summary": self._summary(), "signal": self.frame}

    def row(self) -> dict[str, Any]:
        """The signal as a row among events: it has no place in the log, and is of when it was heard."""
        about = {"position": "", "version": "", "recorded_at": self.heard_at, "stream_id": self.session_id}
        return {**about, "type": self.frame["type"], "summary": self._summary()}

    def _summary(self) -> str:
        if "error" in self.frame:
            return one_line(str(self.frame["error"]))
        phase, tokens, threshold = (self.frame.get(name) for name in ("phase", "tokenEstimate", "tokenThreshold"))
        told = [one_line(str(phase or "")), f"{_number(tokens)} tokens"]
        if threshold is not None:
            told[1] = f"{_number(tokens)} of {_number(threshold)} tokens"
        compacted = self.frame.get("compacted")
        if isinstance(compacted, dict):
            told.append(f"compacted from {_number(compacted.get('tokensBefore'))}")
        return ", ".join(told)


class Signals:
    """What sessions tell over Redis while somebody listens; nothing of it is kept, there or here."""

    def __init__(self, url: str, prefix: str) -> None:
        self._link = Link(url)
        self._prefix = (prefix + channel_of("")).encode("utf-8", "surrogatepass")

    @contextlib.asynccontextmanager
    async def shown(self, session_id: str | None, show: Callable[[Signal], object]) -> AsyncIterator[None]:
        """A context in which `show` is called with each signal of a session, or of all, and fails when that fails.

        While there is no Redis there are none; it is tried again until the end of the context.
        """
        heard: asyncio.Queue[Signal] = asyncio.Queue(WAITING)
        command = self._command(session_id)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._link.stay(partial(self._listen, command, heard), lambda: None)),
                    # Apart from the connection, which would take a failure for its own.
                    group.create_task(_show(heard, show)),
                ]
                try:
                    yield
                finally:
                    for task in tasks:
                        task.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def _command(self, session_id: str | None) -> tuple[bytes, bytes]:
        if session_id is not None:
            return b"SUBSCRIBE", self._prefix + session_id.encode("utf-8", "surrogatepass")
        return b"PSUBSCRIBE", _SPECIAL.sub(lambda found: b"\\" + found[0], self._prefix) + b"*"

    async def _listen(self, command: tuple[bytes, bytes], heard: asyncio.Queue[Signal], wire: Wire) -> None:
        await _send(wire, command)
        asked = False
        while True:
            answer = await wire.read_response(timeout=SILENCE_SECONDS)
            if answer is None:
                if asked:
                    raise TimeoutError
                await _send(wire, (b"PING",))
            asked = answer is None
            match answer:
                case [b"message", bytes(channel), bytes(data)] | [b"pmessage", bytes(), bytes(channel), bytes(data)]:
                    signal = self._signal(channel, data)
                    if signal is not None:
                        await heard.put(signal)

    def _signal(self, channel: bytes, data: bytes) -> Signal | None:
        try:
            frame = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError):
            # Anybody can write to a channel: what is no frame is passed over.
            return None
        if not isinstance(frame.get("type"), str):
            return None
        session_id = channel.removeprefix(self._prefix).decode("utf-8", "replace")
        return Signal(session_id, frame, dt.datetime.now(dt.UTC))


def signals_of(run: Run, *, wanted: bool, redis: str | None, prefix: str | None, ends: bool) -> Signals | None:
    """The signals that a command line asks for, None for none.

    Raises Failure when it asks for what cannot be, and InvalidArgumentError for an address that is none.
    """
    if not wanted:
        if redis is not None or prefix is not None:
            raise Failure("--redis and --channel-prefix go with --signals", exit_code=USAGE)
        return None
    if ends:
        raise Failure("--exit shows what is there now, and signals are kept nowhere", exit_code=USAGE)
    url = redis or os.environ.get(REDIS_VARIABLE)
    if not url:
        raise Failure(
            f"signals of other processes come over Redis alone: name the server with --redis, or in {REDIS_VARIABLE}",
            f"`{run.hint('tail', '--all', '--signals', '--redis', 'URL')}`, with the redis_url of those who write",
            exit_code=USAGE,
        )
    return Signals(url, PREFIX if prefix is None else prefix)


async def _show(heard: asyncio.Queue[Signal], show: Callable[[Signal], object]) -> None:
    while True:
        show(await heard.get())


async def _send(wire: Wire, command: tuple[bytes, ...]) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        await wire.send_packed_command(wire.pack_commands([command]), check_health=False)


def _number(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else "?"
