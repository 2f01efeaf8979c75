"""What an import did, as it is told: the numbers, what was left out, and what became of exports of sessions here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from replay.cli.options import Run

if TYPE_CHECKING:
    from replay.cli.output import Output
    from sessions.importers import ImportedSession, ImportReport
    from sessions.store import Store

SHOWN: Final = 20
"""How many problems a person is shown."""


async def tell(run: Run, store: Store, report: ImportReport, *, dry_run: bool) -> None:
    """Print what an import did, and on stderr what a person may not expect of it."""
    branches = None if dry_run else await _count_branches(store, report)
    if run.out.for_people:
        _print(run.out, report, branches, dry_run=dry_run)
    else:
        run.out.value(_record(report, branches, dry_run=dry_run))
    copies = await _copies(store, report)
    if copies:
        run.out.notice(_of_copies(run, copies, dry_run=dry_run))


def why_nothing(out: Output, report: ImportReport) -> str:
    """Why nothing could be imported, as far as a person does not read it on stdout already."""
    from replay.cli.text import counted

    first, *others = report.problems
    if not others:
        return str(first)
    return counted(len(report.problems), "problem") if out.for_people else f"{first}; {len(others):,} more"


async def _count_branches(store: Store, report: ImportReport) -> int:
    from projections.overview import list_overviews

    ids = {session.session_id for session in report.sessions}
    return await store.log.read(lambda tx: sum(one.branches for one in list_overviews(tx) if one.id in ids))


async def _copies(store: Store, report: ImportReport) -> list[ImportedSession]:
    """The sessions that were exported from one that is in this store too, by its id."""
    from projections.overview import session_ids
    from sessions.importers.conversation import session_id_of
    from sessions.importers.json_tree import NAME

    exported = [one for one in report.sessions if one.session_id == session_id_of(NAME, one.source_id)]
    ids = set(await store.log.read(session_ids)) if exported else set()
    return [one for one in exported if one.source_id in ids]


def _of_copies(run: Run, copies: Sequence[ImportedSession], *, dry_run: bool) -> str:
    """That an export does not go back into the session that it is of, and where it is instead."""
    from replay.cli.text import label

    becomes = "would be" if dry_run else "is"
    if len({one.session_id for one in copies}) == 1:
        here = f"{label(copies[0].source_id)} is in this store and stays as it is"
        return f"{here}: its export {becomes} a session of its own, {label(copies[0].session_id)}"
    here = f"{len(copies):,} of these sessions are in this store and stay as they are"
    listed = "" if dry_run else f", which `{run.hint('ls', '--source', 'json')}` lists"
    return f"{here}: the export of each {becomes} a session of its own{listed}"


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

    if report.sessions:
        _print_numbers(out, report, branches, dry_run=dry_run)
    # One that is the only outcome is told as the error.
    if len(report.problems) < (1 if report.sessions else 2):
        return
    left_out = f", {counted(report.skipped, 'conversation')} left out" if report.skipped else ""
    out.print(f"{counted(len(report.problems), 'problem')}{left_out}:")
    for problem in report.problems[:SHOWN]:
        out.print(f"  {label(str(problem))}")
    if len(report.problems) > SHOWN:
        out.print(f"  … and {len(report.problems) - SHOWN:,} more, which --json lists")


def _print_numbers(out: Output, report: ImportReport, branches: int | None, *, dry_run: bool) -> None:
    from replay.cli.text import counted

    inserted = _inserted(report)
    read = f"{counted(report.conversations, 'conversation')}, {counted(report.messages, 'message')}"
    if branches is not None:
        read += f", {counted(branches, 'branch', 'branches')}"
    if report.repaired_links:
        read += f", {counted(report.repaired_links, 'repaired link')}"
    out.print(f"read: {read}")
    written = counted(inserted, "new message") if inserted else "nothing new, the store holds all of it"
    out.print(f"{'would write' if dry_run else 'written'}: {written}")
