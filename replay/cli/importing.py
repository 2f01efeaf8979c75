"""`import`: conversations that other programs have exported become sessions."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from replay.cli.failures import USAGE, Failure
from replay.cli.options import Run

if TYPE_CHECKING:
    from replay.cli.output import Output
    from replay.cli.progress import Report
    from sessions.importers import ImportReport
    from sessions.store import Store

STDIN: Final = "-"
COPIED: Final = "eventstore-stdin-"
"""How the name of the folder begins in which the copy of stdin is."""
STAYS: Final = "what is stored stays, run it again to go on"
SHOWN: Final = 20
"""How many problems a person is shown."""


def import_(
    run: Run,
    format: Annotated[  # noqa: A002 - the name of the argument
        str, typer.Argument(metavar="FORMAT", help="The format, or auto, which tells it by what a file holds.")
    ],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or zips; - is stdin.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be imported, and write nothing.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at what cannot be read, instead of leaving it out.")
    ] = False,
) -> None:
    """Import conversations; what is in the store already is not written again."""
    from replay.cli.interrupting import run_async
    from sessions.importers.formats import choose_formats

    # Nothing is created for a command line that cannot work.
    choose_formats(format)
    if not all(paths):
        raise Failure("a PATH is empty", f"`{run.hint('import', '--help')}` says more", exit_code=USAGE)
    # Stdin is read before the event loop runs, which would keep an interruption from ending that.
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(_readable(path)) for path in paths]
        work = _import_into(run, format, sources, dry_run=dry_run, strict=strict)
        report = run_async(work, advice=None if dry_run else STAYS)
    if report.problems and not report.sessions:
        raise Failure(f"nothing could be imported: {report.problems[0]}")


async def _import_into(run: Run, name: str, sources: Sequence[Path], *, dry_run: bool, strict: bool) -> ImportReport:
    async with _store(run, dry_run=dry_run) as store:
        report = await _import(store, run.out, name, sources, dry_run=dry_run, strict=strict)
        branches = None if dry_run else await _count_branches(store, report)
    if report.sessions and not dry_run:
        _remember(run, report)
    if run.out.for_people:
        _print(run.out, report, branches, dry_run=dry_run)
    else:
        run.out.value(_record(report, branches, dry_run=dry_run))
    return report


@contextlib.contextmanager
def _readable(name: str) -> Iterator[Path]:
    """The path, which must be there, or for `-` a file named stdin that holds what is read there."""
    if name != STDIN:
        path = Path(name)
        path.stat()
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=COPIED) as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield copy


@contextlib.asynccontextmanager
async def _store(run: Run, *, dry_run: bool) -> AsyncIterator[Store]:
    """The store to import into; a dry run makes none, and compares with an empty one where there is none."""
    from replay.cli.opening import locate, reading, writing
    from sessions.store import open_store

    opened: AbstractAsyncContextManager[Store]
    if not dry_run:
        opened = writing(run)
    elif locate(run).path.exists():
        opened = reading(run)
    else:
        opened = open_store("sqlite://")
    async with opened as store:
        yield store


def _tell(tell: Report, before: int, done: int, title: str) -> None:
    tell(before + done, what=title)


async def _import(
    store: Store, out: Output, name: str, sources: Sequence[Path], *, dry_run: bool, strict: bool
) -> ImportReport:
    from msgspec.structs import replace

    from eventstore.errors import ImportProblemError
    from replay.cli.progress import progress
    from sessions.importers import import_file

    reports: list[ImportReport] = []
    async with progress(out, "importing", "conversations") as tell:
        done = 0
        for source in sources:
            heard = partial(_tell, tell, done)
            try:
                report = await import_file(store, source, format=name, dry_run=dry_run, strict=strict, progress=heard)
            except ImportProblemError as error:
                raise ImportProblemError(_shown(source, error.file), error.reason, error.line, error.index) from error
            problems = [replace(problem, file=_shown(source, problem.file)) for problem in report.problems]
            reports.append(replace(report, problems=problems))
            done += report.conversations
    return _merged(reports)


def _is_copy(source: Path) -> bool:
    return source.name == "stdin" and source.parent.name.startswith(COPIED)


def _shown(source: Path, file: str) -> str:
    """The name of a file as a person knows it: the copy of stdin has none that says anything."""
    copy = str(source)
    return source.name + file.removeprefix(copy) if _is_copy(source) and file.startswith(copy) else file


def _merged(reports: Sequence[ImportReport]) -> ImportReport:
    from sessions.importers import ImportReport

    return ImportReport(
        conversations=sum(report.conversations for report in reports),
        skipped=sum(report.skipped for report in reports),
        messages=sum(report.messages for report in reports),
        overlays=sum(report.overlays for report in reports),
        repaired_links=sum(report.repaired_links for report in reports),
        problems=[problem for report in reports for problem in report.problems],
        sessions=[session for report in reports for session in report.sessions],
    )


async def _count_branches(store: Store, report: ImportReport) -> int:
    from projections.overview import list_overviews

    ids = {session.session_id for session in report.sessions}
    return await store.log.read(lambda tx: sum(one.branches for one in list_overviews(tx) if one.id in ids))


def _remember(run: Run, report: ImportReport) -> None:
    """Let `@` mean the session that was imported last."""
    from replay.cli.lastused import LastUsed
    from replay.cli.opening import locate

    LastUsed(locate(run).path).write(report.sessions[-1].session_id)


def _record(report: ImportReport, branches: int | None, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "conversations": report.conversations,
        "messages": report.messages,
        "new_messages": _inserted(report),
        "branches": branches,
        "repaired_links": report.repaired_links,
        "skipped": report.skipped,
        "problems": report.problems,
        "sessions": report.sessions,
    }


def _inserted(report: ImportReport) -> int:
    return sum(session.inserted for session in report.sessions)


def _print(out: Output, report: ImportReport, branches: int | None, *, dry_run: bool) -> None:
    from replay.cli.text import counted, label

    inserted = _inserted(report)
    read = f"{counted(report.conversations, 'conversation')}, {counted(report.messages, 'message')}"
    if branches is not None:
        read += f", {counted(branches, 'branch', 'branches')}"
    if report.repaired_links:
        read += f", {counted(report.repaired_links, 'repaired link')}"
    out.print(f"read: {read}")
    if not report.sessions:
        written = "nothing"
    elif not inserted:
        written = "nothing new, the store holds all of it"
    else:
        written = counted(inserted, "new message")
    out.print(f"{'would write' if dry_run else 'written'}: {written}")
    if report.problems:
        left_out = f", {counted(report.skipped, 'conversation')} left out" if report.skipped else ""
        out.print(f"{counted(len(report.problems), 'problem')}{left_out}:")
        for problem in report.problems[:SHOWN]:
            out.print(f"  {label(str(problem))}")
        if len(report.problems) > SHOWN:
            out.print(f"  … and {len(report.problems) - SHOWN:,} more, which --json lists")
