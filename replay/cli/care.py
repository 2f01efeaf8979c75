"""`verify`, `rebuild` and `path`: looking after a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli.options import PerhapsSessionArgument, Run

if TYPE_CHECKING:
    from replay import Report
    from replay.cli.output import Output


async def verify(
    run: Run,
    session: PerhapsSessionArgument = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All sessions, as when none is named.")] = False,
) -> None:
    """Check the hash chain, versions, and projections against the log."""
    from replay import verify as verify_store
    from replay.cli.failures import INTEGRITY, USAGE, Failure
    from replay.cli.opening import find_session, reading
    from replay.cli.progress import progress
    from replay.cli.text import counted

    if session is not None and every:
        raise Failure("name either a session or --all", run.hint("verify", "--all"), exit_code=USAGE)
    async with reading(run) as store:
        session_id = None if session is None else await find_session(run, store, session)
        async with progress(run.out, "verifying", "events") as tell:
            report = await verify_store(store, session_id, progress=tell)
    if run.out.for_people:
        print_report(run.out, report)
    else:
        run.out.value(report)
    if not report.ok:
        raise Failure(
            f"the store is not what the log promises: {counted(len(report.problems), 'problem')}",
            f"`{run.hint('rebuild')}` fills projections again from the log" if _only_projections(report) else None,
            exit_code=INTEGRITY,
        )


def _only_projections(report: Report) -> bool:
    return all(problem.kind == "projection" for problem in report.problems)


def print_report(out: Output, report: Report) -> None:
    """Print the outcome of a verification."""
    from replay.cli.output import Column
    from replay.cli.text import counted, one_line

    if report.ok:
        erased = f", {report.erased:,} of them erased" if report.erased else ""
        out.print(f"ok: {counted(report.events, 'event')}{erased}; hash chain, versions and projections are whole")
        return
    columns = [
        Column(title="KIND", cell=lambda problem: problem.kind, style="red"),
        Column(title="POS", cell=lambda problem: _number(problem.position), right=True),
        Column(title="SESSION", cell=lambda problem: one_line(problem.stream_id or "-")),
        Column(title="VER", cell=lambda problem: _number(problem.version), right=True),
        Column(title="WHAT", cell=lambda problem: one_line(problem.detail), free=True, wraps=True),
    ]
    with out.listing(columns) as add:
        for problem in report.problems:
            add(problem)


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


async def rebuild(
    run: Run,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The projections to rebuild; all when none is named.")
    ] = None,
) -> None:
    """Fill projections again from the log."""
    from replay import rebuild as rebuild_store
    from replay.cli.opening import reading
    from replay.cli.progress import progress, stopping
    from replay.cli.text import counted

    async with reading(run, refill=True) as store, progress(run.out, "rebuilding", "events") as tell:
        started = time.perf_counter()
        with stopping(tell) as report:
            events = await rebuild_store(store, names or None, progress=report)
        seconds = time.perf_counter() - started
        rebuilt = names or [projection.name for projection in store.log.projections]
    rate = events / seconds if seconds else 0.0
    if run.out.for_people:
        run.out.print(
            f"rebuilt {', '.join(rebuilt)} from {counted(events, 'event')} in {seconds:.1f} s ({rate:,.0f} events/s)"
        )
    else:
        run.out.value({"projections": rebuilt, "events": events, "seconds": round(seconds, 3), "rate": round(rate)})


def path(run: Run) -> None:
    """Print where the store is, whether or not it is there yet."""
    from replay.cli.opening import locate

    location = locate(run)
    if run.out.chosen in {"json", "ndjson"}:
        run.out.value({"url": location.url, "path": str(location), "exists": location.path.is_file()})
    else:
        run.out.write(f"{location}\n")
