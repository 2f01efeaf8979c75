"""`tail`: the events of a session, or of all, as they are recorded, and their signals beside them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from replay.cli.options import PerhapsSessionArgument, Run

if TYPE_CHECKING:
    from eventstore import Envelope
    from replay.cli.output import Output
    from replay.cli.signals import Signals
    from sessions.store import Store

_BEFORE_THE_END: Final = re.compile(r"-\d{1,18}")


async def tail(
    run: Run,
    session: PerhapsSessionArgument = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="The events of all sessions.")] = False,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POSITION|TIME|-N|start",
            help="Begin at a position or a time, with the newest N, or at the start.  [default: with what comes now]",
        ),
    ] = None,
    types: Annotated[
        str, typer.Option("--type", metavar="GLOB", help="Only events of such types, as message_*.")
    ] = "*",
    count: Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="Stop after so many events.")] = None,
    ends: Annotated[bool, typer.Option("--exit", help="Stop when all that is there now was shown.")] = False,
    signals: Annotated[
        bool, typer.Option("--signals", help="Also the live status that sessions tell over Redis.")
    ] = False,
    redis: Annotated[
        str | None,
        typer.Option(
            "--redis",
            metavar="URL",
            help="The Redis server for --signals, as redis://localhost:6379/0.  [default: $EVENTSTORE_REDIS_URL]",
        ),
    ] = None,
    channel_prefix: Annotated[
        str | None,
        typer.Option(
            "--channel-prefix",
            metavar="PREFIX",
            help="What the writers' channels begin with, for --signals.  [default: eventstore:]",
        ),
    ] = None,
) -> None:
    """Follow events as they are recorded, until Ctrl-C.

    They are those of whatever process.
    """
    import asyncio

    from replay.cli.failures import USAGE, Failure
    from replay.cli.interrupting import interrupted
    from replay.cli.opening import find_session, reading
    from replay.cli.pipes import ending_with_reader
    from replay.cli.signals import signals_of

    if (session is None) is not every:
        raise Failure("name either a session or --all", run.hint("tail", "--all"), exit_code=USAGE)
    source = signals_of(run, wanted=signals, redis=redis, prefix=channel_prefix, ends=ends)
    async with reading(run) as store:
        stream_id = None if session is None else await find_session(run, store, session)
        place = await _before(store, stream_id, start, types)
        following = Following(store, run.out, stream_id, place, source)
        chosen = [] if types == "*" else ["--type", types]
        chosen += ["--signals"] if signals else []
        # The address may hold a password, and the line is for anybody to see.
        chosen += [] if redis is None else ["--redis", "URL"]
        chosen += [] if channel_prefix is None else ["--channel-prefix", channel_prefix]

        def resume() -> str:
            place = str(following.reached + 1)
            line = run.hint("tail", stream_id or "--all", "--from", place, *chosen)
            return f"resume from position {place} with `{line}`"

        try:
            async with ending_with_reader():
                await following.print(types=types, count=count, ends=ends)
        except asyncio.CancelledError:
            raise interrupted(resume()) from None
    run.out.notice(resume())


class Following:
    """The events of a stream, or of all, after a position, and the signals that come meanwhile, if there are to be any.

    `reached` is the last position that was looked at.
    """

    def __init__(
        self, store: Store, out: Output, stream_id: str | None, after: int, signals: Signals | None = None
    ) -> None:
        self.reached = after
        self._log = store.log
        self._store = store
        self._out = out
        self._stream_id = stream_id
        self._signals = signals

    async def print(self, *, types: str, count: int | None, ends: bool) -> None:
        """Print so many events of some types as they come; `ends` with those that are there now."""
        import asyncio

        from replay.cli.event_rows import columns_of, record_of

        end = await self._log.high_water() if ends else None
        columns = await columns_of(self._store, self._out, self._stream_id)
        found = self._chosen(types, count, end)
        called_off: asyncio.CancelledError | None = None
        with self._out.listing(columns, batch=1) as add:

            def show(record: object) -> None:
                add(record)
                self._out.flush()

            try:
                async with self._showing_signals(show), aclosing(found):
                    async for envelope in found:
                        show(record_of(envelope))
            except asyncio.CancelledError as error:
                # Later, so that an array in JSON has its end.
                called_off = error
        # What ends an array must be out before the store is closed, which an interruption gives little time.
        self._out.flush()
        if called_off is not None:
            raise called_off

    def _showing_signals(self, show: Callable[[object], None]) -> AbstractAsyncContextManager[None]:
        if self._signals is None:
            return nullcontext()
        for_people = self._out.for_people
        return self._signals.shown(
            self._stream_id, lambda signal: show(signal.row() if for_people else signal.record())
        )

    async def _chosen(self, types: str, count: int | None, end: int | None) -> AsyncGenerator[Envelope, None]:
        if end is None:
            events = self._log.subscribe(after=self.reached, stream_id=self._stream_id)
        else:
            events = await self._there_now()
        left = count
        async with aclosing(events):
            async for envelope in events:
                if end is not None and envelope.position > end:
                    break
                self.reached = envelope.position
                if not fnmatchcase(envelope.type, types):
                    continue
                yield envelope
                left = None if left is None else left - 1
                if left == 0:
                    return
        self.reached = max(self.reached, end or 0)

    async def _there_now(self) -> AsyncGenerator[Envelope, None]:
        from replay.cli.starts import start_of

        if self._stream_id is None:
            return self._log.read_all(after=self.reached)
        begin = partial(start_of, stream_id=self._stream_id, wanted=self.reached + 1, types="*", newest=None)
        return self._log.read_stream(self._stream_id, from_version=await self._log.read(begin))


async def _before(store: Store, stream_id: str | None, start: str | None, types: str) -> int:
    """The position after which to begin."""
    from replay.cli.starts import NOWHERE, parse_start, start_of

    if start is None:
        return await store.log.high_water()
    if start == "start":
        return 0
    newest = int(start[1:]) if _BEFORE_THE_END.fullmatch(start) else None
    wanted = None if newest is not None else parse_start(start, dt.datetime.now(dt.UTC))
    if isinstance(wanted, int):
        return max(wanted - 1, 0)
    end = await store.log.high_water()
    if newest == 0:
        return end
    begin = partial(start_of, stream_id=stream_id, wanted=wanted, types=types, newest=newest)
    first = await store.log.read(begin)
    if first == NOWHERE:
        return end
    if stream_id is None:
        return first - 1
    async with aclosing(store.log.read_stream(stream_id, from_version=first, to_version=first)) as events:
        async for envelope in events:
            return envelope.position - 1
    return end
