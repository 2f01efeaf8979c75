"""What `doctor` looks at: settings, versions, times and counts; never content, ids or names of sessions."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Final

import msgspec
from sqlalchemy import Table, func, select

from eventstore import tables
from eventstore.database import Database
from eventstore.envelope import from_micros
from eventstore.migrations import MIGRATIONS, schema_version
from eventstore.ports import Projection, Tx
from eventstore.statements import Statement

PACKAGES: Final = ("session-eventstore", "sqlalchemy", "msgspec")
CLOCK_SECONDS: Final = 60
"""How far ahead of the clock the newest event may be before it is worth a word."""

_LAST = Statement(select(func.max(tables.events.c.recorded_at)))
_STAMPS = Statement(
    select(tables.projections.c.name, tables.projections.c.revision, tables.projections.c.stale).order_by(
        tables.projections.c.name
    )
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it should be; with `integrity` stored data is not what was promised."""

    kind: str
    what: str
    advice: str
    integrity: bool = False


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """A projection as the database knows it (no revision: it does not), and the revision of this version."""

    name: str
    revision: int | None
    supported: int | None
    stale: bool


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """The time now, that of the newest event, and by how many seconds that is ahead."""

    now: dt.datetime
    last_event: dt.datetime | None
    ahead_seconds: float


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at and what was found; `ok` says that no stored data is wrong."""

    ok: bool
    versions: dict[str, str]
    schema_version: int
    supported_schema_version: int
    connections: dict[str, dict[str, object]]
    projections: Sequence[Stamp]
    clock: Clock
    findings: Sequence[Finding]


async def diagnose(database: Database, projections: Sequence[Projection], now: dt.datetime) -> Diagnosis:
    """Look at a database from all sides; nothing of it is changed."""
    state = database.dialect.state
    connections = {"reader": await database.read(state), "writer": await database.read_on_writer(state)}
    version = await database.read(schema_version)
    stamps = await database.read(lambda tx: stamps_of(tx, projections))
    clock = await database.read(lambda tx: _clock(tx, now))
    findings = [
        *(
            Finding(kind="setting", what=what, advice=advice)
            for what, advice in database.dialect.flaws(connections["reader"])
        ),
        *_versions(version, stamps),
        *_times(clock),
        *await database.read(lambda tx: _damages(database, tx, projections)),
    ]
    return Diagnosis(
        ok=not any(finding.integrity for finding in findings),
        versions={
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            **database.dialect.versions,
            **{name: _version(name) for name in PACKAGES},
        },
        schema_version=version,
        supported_schema_version=len(MIGRATIONS),
        connections=connections,
        projections=stamps,
        clock=clock,
        findings=findings,
    )


def stamps_of(tx: Tx, projections: Sequence[Projection]) -> list[Stamp]:
    """The projections that the database or this version knows."""
    supported = {projection.name: projection.revision for projection in projections}
    stored = {name: (revision, bool(stale)) for name, revision, stale in tx.fetch(_STAMPS)}
    nowhere: tuple[int | None, bool] = (None, False)
    return [
        Stamp(name=name, revision=revision, supported=supported.get(name), stale=stale)
        for name in sorted(stored.keys() | supported.keys())
        for revision, stale in [stored.get(name, nowhere)]
    ]


def _version(package: str) -> str:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return "not installed"


def _clock(tx: Tx, now: dt.datetime) -> Clock:
    ((last,),) = tx.fetch(_LAST)
    time = None if last is None else from_micros(last)
    ahead = 0.0 if time is None else max((time - now).total_seconds(), 0.0)
    return Clock(now=now, last_event=time, ahead_seconds=ahead)


def _times(clock: Clock) -> Iterator[Finding]:
    if clock.ahead_seconds > CLOCK_SECONDS:
        what = f"the newest event was recorded {clock.ahead_seconds:,.0f} seconds from now"
        yield Finding(kind="clock", what=what, advice="see that the clocks of all machines that write are right")


def _versions(version: int, stamps: Sequence[Stamp]) -> Iterator[Finding]:
    newer = "use the newest version of this package that works with the store"
    if version > len(MIGRATIONS):
        yield Finding(kind="version", what="a newer version of this package wrote the tables", advice=newer)
    elif version < len(MIGRATIONS):
        yield Finding(kind="version", what="the tables are of an older version", advice="run `eventstore migrate`")
    for stamp in stamps:
        if stamp.supported is None:
            continue
        if stamp.revision is not None and stamp.revision > stamp.supported:
            what = f"a newer version of this package filled {stamp.name}"
            yield Finding(kind="projection", what=what, advice=newer)
        elif stamp.revision != stamp.supported or stamp.stale:
            what = f"{stamp.name} has to be filled again from the log"
            yield Finding(kind="projection", what=what, advice="run `eventstore migrate`")


def _damages(database: Database, tx: Tx, projections: Sequence[Projection]) -> list[Finding]:
    found = [
        Finding(kind="file", what=what, advice="go back to a copy of the file", integrity=True)
        for what in database.dialect.damage(tx)
    ]
    for name in tx.dialect.missing_guards(tx, tables.events.name):
        what = f"the trigger {name} is gone, so that events can be changed"
        advice = "run `eventstore verify`, and make it again as `eventstore schema` prints it"
        found.append(Finding(kind="guard", what=what, advice=advice, integrity=True))
    # What is no subclass of the base may have no such list.
    own: list[Table] = [table for projection in projections for table in getattr(projection, "tables", ())]
    known = [tables.streams, tables.events, *own]
    gone = [table.name for table in known if not tx.dialect.has_table(tx, table.name)]
    for name in gone:
        advice = "make it again as `eventstore schema` prints it, then run `eventstore rebuild`"
        found.append(Finding(kind="table", what=f"the table {name} is gone", advice=advice, integrity=True))
    if tables.streams.name not in gone:
        for table in known:
            if "stream_no" in table.columns and table.name not in gone:
                found += _orphans(tx, table)
    return found


def _orphans(tx: Tx, table: Table) -> Iterator[Finding]:
    advice = "run `eventstore verify`" if table is tables.events else "run `eventstore rebuild`"
    without = (
        select(func.count()).select_from(table).where(table.c.stream_no.not_in(select(tables.streams.c.stream_no)))
    )
    ((count,),) = tx.fetch(Statement(without))
    if count:
        what = f"{count:,} {'row' if count == 1 else 'rows'} of {table.name} belong to no session that exists"
        yield Finding(kind="orphan", what=what, advice=advice, integrity=True)
