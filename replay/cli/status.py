"""`status`: where a store stands, in a few numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from replay.cli.options import Run

if TYPE_CHECKING:
    from sessions.store import Store


async def status(run: Run) -> None:
    """Show where the store stands.

    That is its engine, how much is in it, and how large its files are.
    """
    from replay.cli.facts import print_facts
    from replay.cli.opening import locate, reading

    location = locate(run)
    async with reading(run) as store:
        record = {"path": str(location), **await _read(store), **_files(location.path)}
    if run.out.for_people:
        print_facts(run.out, _told(record))
    else:
        run.out.value(record)


async def _read(store: Store) -> dict[str, Any]:
    from eventstore.migrations import schema_version
    from projections.statistics import totals

    version, found = await store.log.read(lambda tx: (schema_version(tx), totals(tx)))
    dialect = store.log.database.dialect
    return {
        "engine": dialect.name,
        "engine_version": dialect.versions[dialect.name],
        "schema_version": version,
        "events": found.events,
        "sessions": found.sessions,
        "high_water": found.high_water,
        # Positions are given in the order of commits, so that no transaction that is still open can come below one.
        "held_back_by": None,
        # Those of this process, which has only looked.
        "writer_queue": 0,
        "subscribers": 0,
        "publisher": "in process",
    }


def _files(path: Path) -> dict[str, int]:
    return {"database_bytes": _size(path), "wal_bytes": _size(path.with_name(f"{path.name}-wal"))}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _told(record: dict[str, Any]) -> dict[str, str]:
    from replay.cli.text import size

    return {
        "store": record["path"],
        "engine": f"{record['engine']} {record['engine_version']}",
        "schema version": str(record["schema_version"]),
        "events": f"{record['events']:,}",
        "sessions": f"{record['sessions']:,}",
        "high water": f"{record['high_water']:,}",
        "held back by": record["held_back_by"] or "nothing",
        "database": size(record["database_bytes"]),
        "write-ahead log": size(record["wal_bytes"]),
        "writer queue": f"{record['writer_queue']} (of this process)",
        "subscribers": f"{record['subscribers']} (of this process)",
        "publisher": record["publisher"],
    }
