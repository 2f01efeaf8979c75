"""`doctor`: whether a store and its surroundings are in order, without a word of what is in it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from replay.cli.options import Run

if TYPE_CHECKING:
    from replay.cli.checks import Diagnosis, Stamp
    from replay.cli.output import Output


async def doctor(run: Run) -> None:
    """Check settings, versions, clock and tables, and give advice.

    Nothing that it prints is of a conversation.
    """
    from replay.cli.checks import diagnose
    from replay.cli.failures import INTEGRITY, Failure
    from replay.cli.opening import known_projections, looking
    from replay.cli.progress import progress
    from replay.cli.text import counted

    async with looking(run) as database, progress(run.out, "looking at the file"):
        found = await diagnose(database, await known_projections(), dt.datetime.now(dt.UTC))
    if run.out.for_people:
        _tell(run.out, found)
    else:
        run.out.value(found)
    if not found.ok:
        wrong = sum(finding.integrity for finding in found.findings)
        raise Failure(
            f"the store is not what the log promises: {counted(wrong, 'finding')}",
            f"`{run.hint('verify')}` looks at every event",
            exit_code=INTEGRITY,
        )


def _tell(out: Output, found: Diagnosis) -> None:
    from replay.cli.facts import print_facts
    from replay.cli.output import Column

    clock = found.clock
    last = "no event yet" if clock.last_event is None else f"last event {clock.last_event.isoformat()}"
    print_facts(
        out,
        {
            **found.versions,
            "schema version": f"{found.schema_version} (this version has {found.supported_schema_version})",
            "clock": f"{clock.now.isoformat()}, {last}",
            "projections": ", ".join(map(_stamp, found.projections)),
            **{
                f"{name} settings": ", ".join(f"{key} {value}" for key, value in settings.items())
                for name, settings in found.connections.items()
            },
        },
    )
    out.print()
    if not found.findings:
        out.print("all is well")
        return
    columns = [
        Column(title="KIND", cell=lambda finding: finding.kind, style="yellow"),
        Column(title="WHAT", cell=lambda finding: f"{finding.what}: {finding.advice}", free=True, wraps=True),
    ]
    with out.listing(columns) as add:
        for finding in found.findings:
            add(finding)


def _stamp(stamp: Stamp) -> str:
    if stamp.revision is None:
        return f"{stamp.name} missing"
    return f"{stamp.name} {stamp.revision}{' stale' if stamp.stale else ''}"
