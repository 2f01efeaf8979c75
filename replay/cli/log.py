"""`log`: the events of a session, or of all, as a list."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli.options import PerhapsSessionArgument, Run

if TYPE_CHECKING:
    from eventstore import Envelope
    from replay.cli.output import Output
    from sessions.store import Store


async def log(
    run: Run,
    session: PerhapsSessionArgument = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="The events of all sessions.")] = False,
    number: Annotated[
        int | None,
        typer.Option(
            "-n", "--number", metavar="N", min=1, help="Only the newest so many; with --from, the first so many."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="POSITION|TIME", help="Begin here; a time is ISO-8601, 2h, or yesterday."),
    ] = None,
    types: Annotated[
        str, typer.Option("--type", metavar="GLOB", help="Only events of such types, as message_*.")
    ] = "*",
    patch: Annotated[bool, typer.Option("-p", "--patch", help="Show what each event changed.")] = False,
) -> None:
    """List events, the oldest first."""
    from replay.cli.failures import USAGE, Failure
    from replay.cli.opening import find_session, reading
    from replay.cli.starts import parse_start, start_of

    if (session is None) is not every:
        raise Failure("name either a session or --all", run.hint("log", "--all"), exit_code=USAGE)
    wanted = parse_start(start, dt.datetime.now(dt.UTC))
    async with reading(run) as store:
        stream_id = None if session is None else await find_session(run, store, session)
        begin = partial(start_of, stream_id=stream_id, wanted=wanted, types=types, newest=number)
        first = await store.log.read(begin)
        count = await print_events(store, run.out, stream_id, first=first, types=types, most=number, patch=patch)
    if not count and run.out.for_people:
        run.out.notice("no event is like that")


async def print_events(
    store: Store,
    out: Output,
    stream_id: str | None,
    *,
    first: int = 1,
    types: str = "*",
    most: int | None = None,
    patch: bool = False,
) -> int:
    """Print the events of a stream from a version on, or of all from a position on; returns how many."""
    from replay.cli.event_rows import columns_of, record_of
    from replay.cli.output import BATCH
    from replay.cli.patches import Patches

    if stream_id is None:
        events = store.log.read_all(after=first - 1)
    else:
        events = store.log.read_stream(stream_id, from_version=first)
    patches = Patches(store.log) if patch else None
    columns = await columns_of(store, out, stream_id)
    count = 0
    async with aclosing(_limited(events, types, most)) as found:
        with out.listing(columns, batch=1 if patch else BATCH) as add:
            async for envelope in found:
                lines = None if patches is None else await patches.lines(envelope)
                shows_patch = out.for_people and lines is not None
                if shows_patch and count:
                    out.print()
                add(record_of(envelope, lines))
                if shows_patch:
                    out.patch(lines or [])
                count += 1
    return count


async def _limited(events: AsyncIterator[Envelope], types: str, most: int | None) -> AsyncGenerator[Envelope, None]:
    left = most
    if left == 0:
        return
    async for envelope in events:
        if fnmatchcase(envelope.type, types):
            yield envelope
            left = None if left is None else left - 1
            if left == 0:
                return
