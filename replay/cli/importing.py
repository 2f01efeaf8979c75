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
from typing import TYPE_CHECKING, Annotated, Final

import typer

from replay.cli.failures import USAGE, Failure
from replay.cli.options import Run
from replay.cli.program import command_line

if TYPE_CHECKING:
    from replay.cli.output import Output
    from replay.cli.progress import Report
    from sessions.importers import ImportReport
    from sessions.store import Store

STDIN: Final = "-"
COPIED: Final = "eventstore-stdin-"
"""How the name of the folder begins in which the copy of stdin is."""
STAYS: Final = "what is stored stays, run it again to go on"


def _checked_format(context: typer.Context, name: str | None) -> str | None:
    """The name of a format, or auto; what is none is an error, and of a path in its place it is said so."""
    if name is None or context.resilient_parsing:
        return name
    from sessions.importers.formats import FORMATS, choose_formats

    if name not in FORMATS and _is_like_path(name):
        store = context.params.get("store") or context.find_root().params.get("store")
        raise Failure(
            f"the FORMAT is missing before {name!r}: auto, or one of {', '.join(FORMATS)}",
            f"auto tells it by what a file holds: `{command_line('import', 'auto', name, store=store)}`",
            exit_code=USAGE,
        )
    choose_formats(name)
    return name


def _is_like_path(name: str) -> bool:
    if name == STDIN or not {*name}.isdisjoint("./\\~"):
        return True
    # A name that is too long for one is none.
    with contextlib.suppress(OSError):
        return Path(name).exists()
    return False


def import_(
    run: Run,
    format: Annotated[  # noqa: A002 - the name of the argument
        str,
        typer.Argument(
            metavar="FORMAT",
            callback=_checked_format,
            help="chatgpt, json, claude-code or ai-sdk; or auto, which tells it by what a file holds.",
        ),
    ],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or zips; - is stdin.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be imported, and write nothing.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at what cannot be read, instead of leaving it out.")
    ] = False,
) -> None:
    """Import conversations from other programs.

    What is in the store already is not written again.
    """
    from replay.cli.imported import why_nothing
    from replay.cli.interrupting import run_async

    if not all(paths):
        raise Failure("a PATH is empty", f"`{run.hint('import', '--help')}` says more", exit_code=USAGE)
    # Stdin is read before the event loop runs, which would keep an interruption from ending that.
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(_readable(path)) for path in paths]
        work = _import_into(run, format, sources, dry_run=dry_run, strict=strict)
        report = run_async(work, advice=None if dry_run else STAYS)
    if report.problems and not report.sessions:
        raise Failure(f"nothing could be imported: {why_nothing(run.out, report)}")


async def _import_into(run: Run, name: str, sources: Sequence[Path], *, dry_run: bool, strict: bool) -> ImportReport:
    from replay.cli.imported import tell

    async with _store(run, dry_run=dry_run) as store:
        report = await _import(store, run.out, name, sources, dry_run=dry_run, strict=strict)
        if report.sessions and not dry_run:
            _remember(run, report)
        await tell(run, store, report, dry_run=dry_run)
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


def _remember(run: Run, report: ImportReport) -> None:
    """Let `@` mean the session that was imported last."""
    from replay.cli.lastused import LastUsed
    from replay.cli.opening import locate

    LastUsed(locate(run).path).write(report.sessions[-1].session_id)
