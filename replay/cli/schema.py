"""`schema` and `migrate`: the tables of this version, and bringing those of a store up to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from replay.cli.options import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventstore.database import Database
    from eventstore.ports import Projection, Tx
    from replay.cli.checks import Stamp


async def schema(run: Run) -> None:
    """Print the tables, indexes and triggers of this version as SQL.

    No store is needed.
    """
    from replay.cli.script import script
    from sessions.store import open_store

    # A store in memory knows which projections there are, and the engine's way to write them.
    async with open_store("sqlite://") as store:
        database = store.log.database
        parts = list(script(database.dialect, database.engine.dialect, store.log.projections))
    for part in parts:
        run.out.write(f"{part}\n")


async def migrate(run: Run) -> None:
    """Bring the tables of a store up to this version.

    It is done whole or not at all, and writers wait until then.
    """
    from replay.cli.opening import known_projections, locate, looking

    started = time.perf_counter()
    async with looking(run) as database:
        record = await _migrate(run, database, await known_projections())
    record = {"path": str(locate(run)), **record, "seconds": round(time.perf_counter() - started, 3)}
    if run.out.for_people:
        _tell(run, record)
    else:
        run.out.value(record)


async def _migrate(run: Run, database: Database, projections: Sequence[Projection]) -> dict[str, Any]:
    from eventstore.log import fold
    from eventstore.migrations import migrate as take_steps
    from eventstore.migrations import missing, schema_version
    from eventstore.rows import high_water
    from replay.cli.checks import stamps_of
    from replay.cli.progress import progress, stopping

    def look(tx: Tx) -> tuple[bool, int, list[Stamp], int]:
        # The first of these refuses what a newer version has written.
        is_missing = missing(tx, projections, may_create=True)
        return is_missing, schema_version(tx), stamps_of(tx, projections), high_water(tx)

    is_missing, version, before, end = await database.read_on_writer(look)
    filled: list[str] = []
    events = 0
    if is_missing:
        async with progress(run.out, "migrating", "events") as tell:
            with stopping(tell) as report:

                def work(tx: Tx) -> tuple[list[str], int]:
                    empty = take_steps(tx, projections)
                    return [one.name for one in empty], fold(tx, empty, lambda position: report(position, end))

                await database.prepare_file()
                filled, events = await database.write(work)
    after = await database.read_on_writer(lambda tx: (schema_version(tx), stamps_of(tx, projections)))
    now = {stamp.name: stamp.revision for stamp in after[1]}
    return {
        "from_version": version,
        "to_version": after[0],
        "projections": [
            {"name": stamp.name, "from_revision": stamp.revision, "to_revision": now[stamp.name], "stale": stamp.stale}
            for stamp in before
            if stamp.name in filled
        ],
        "events": events,
    }


def _tell(run: Run, record: dict[str, Any]) -> None:
    from replay.cli.text import counted

    before, after = record["from_version"], record["to_version"]
    if before != after:
        run.out.print(f"the log's tables went from schema version {before} to {after}")
    for one in record["projections"]:
        old, new = one["from_revision"], one["to_revision"]
        was = "was missing" if old is None else f"was of revision {old}, is of {new}" if old != new else "was stale"
        run.out.print(f"{one['name']} {was}: filled again")
    if record["projections"]:
        run.out.print(f"read {counted(record['events'], 'event')} in {record['seconds']:.1f} s")
    elif before == after:
        run.out.print(f"nothing to do: the tables are those of schema version {after}")
