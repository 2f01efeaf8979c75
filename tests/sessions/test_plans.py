"""How the database finds rows: by an index, in every read and in every change of a session."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from eventstore.statements import Row
from projections.overview import find_overview
from sessions import SessionManager, Store, StoredSession, open_store
from tests.sessions.talk import collect, said
from tests.sessions.watching import recorded


async def _below_a_summary(session: StoredSession) -> None:
    compaction = (await session.get_compactions())[0]
    await session.append_message(said("new"), f"compaction_{compaction.id}")


READS: dict[str, Callable[[StoredSession], Awaitable[Any]]] = {
    "message": lambda session: session.get_message("m5"),
    "latest leaf": lambda session: session.get_latest_leaf(),
    "history": lambda session: session.get_history(),
    "history of a leaf": lambda session: session.get_history("x2"),
    "limited history": lambda session: session.get_history(limit=3),
    "streamed history": lambda session: collect(session.history()),
    "from the end": lambda session: collect(session.history(newest_first=True)),
    "without overlays": lambda session: collect(session.history(overlays=False)),
    "batches": lambda session: collect(session.history_batches(batch_size=2)),
    "recent": lambda session: session.get_recent_history(300),
    "stats": lambda session: session.get_history_row_stats(),
    "path length": lambda session: session.get_path_length(),
    "tokens": lambda session: session.token_estimate(),
    "tokens of a leaf": lambda session: session.token_estimate("x2"),
    "branches": lambda session: session.get_branches("m2"),
    "branches after a deletion": lambda session: session.get_branches("m6"),
    "compactions": lambda session: session.get_compactions(),
    "tree": lambda session: collect(session.tree()),
    "events": lambda session: collect(session.events()),
    "version": lambda session: session.version(),
    "overview": lambda session: session.store.log.read(lambda tx: find_overview(tx, session.session_id)),
    "search": lambda session: session.search_messages("hello"),
    "newest": lambda session: session.search_messages("hello", order="newest"),
}
CHANGES: dict[str, Callable[[StoredSession], Awaitable[Any]]] = {
    "append": lambda session: session.append_message(said("new")),
    "append below": lambda session: session.append_message(said("new"), "m5"),
    "append again": lambda session: session.append_message(said("m5")),
    "append below a summary": _below_a_summary,
    "update": lambda session: session.update_message(said("m4", "changed")),
    "update of the tip": lambda session: session.update_message(said("m9", "changed")),
    "upsert": lambda session: session.upsert_message(said("new")),
    "reconcile": lambda session: session.reconcile([said("m4", "changed"), said("new"), said("newer")]),
    "delete": lambda session: session.delete_messages(["m4", "m5"]),
    "delete the tip": lambda session: session.delete_messages(["m9"]),
    "delete the root": lambda session: session.delete_messages(["m0"]),
    "delete a fork": lambda session: session.delete_messages(["m2", "x1"]),
    "select": lambda session: session.select_leaf("m5"),
    "compact": lambda session: session.add_compaction("S", "m1", "m8"),
    "clear": lambda session: session.clear_messages(),
}
SCAN = re.compile(r"\bSCAN (\w+)(?! VIRTUAL)")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Return a store with two sessions in it, each of them with branches, summaries, updates and deletions."""
    async with open_store("sqlite://") as opened:
        for name in ("other", "chat"):
            session = StoredSession(opened, name)
            await session.append_messages([said(f"m{n}") for n in range(10)])
            await session.append_messages([said("x1"), said("x2")], "m2")
            await session.append_message(said("y"), "m6")
            await session.append_message(said("root"), None)
            await session.add_compaction("S", "m1", "m4")
            await session.add_compaction("T", "m6", "m8")
            await session.update_message(said("m7", "changed"))
            await session.delete_messages(["m3", "m7"])
            await session.select_leaf("m9")
        yield opened


async def plans(store: Store, statements: list[tuple[str, Row]]) -> dict[str, list[str]]:
    """Return how the database goes about each of some statements."""

    def explain(tx: Any) -> dict[str, list[str]]:
        return {
            sql: [row[3] for row in tx._connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
            for sql, params in dict(statements).items()
            if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH"))
        }

    return await store.log.read(explain)


async def check_plans(store: Store, statements: list[tuple[str, Row]]) -> None:
    """Check that no statement looks through a whole table, whose size is that of all sessions together."""
    names = await store.log.read(_tables)
    found = await plans(store, statements)
    for sql, plan in found.items():
        aliases = {alias: table for table, alias in re.findall(r"(\w+) AS (\w+)", sql) if table in names}
        for line in plan:
            match = SCAN.match(line)
            scanned = match and aliases.get(match[1], match[1])
            assert scanned not in names, f"{line}: {sql}"


def _tables(tx: Any) -> set[str]:
    rows = tx._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
    return {name for (name,) in rows} - {"projections", "schema_versions"}


@pytest.mark.parametrize("read", READS)
async def test_reads_of_a_session_find_rows_by_an_index(
    store: Store, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """No read of one session looks through a table that all sessions share."""
    with recorded(monkeypatch) as seen:
        await READS[read](StoredSession(store, "chat"))
    assert seen
    await check_plans(store, seen)


@pytest.mark.parametrize("change", CHANGES)
async def test_changes_of_a_session_find_rows_by_an_index(
    store: Store, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """No change of one session looks through a table that all sessions share."""
    with recorded(monkeypatch) as seen:
        await CHANGES[change](StoredSession(store, "chat"))
    assert seen
    await check_plans(store, seen)


async def test_paths_are_read_in_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a path, of a tree and of a log come from an index in their order, without being sorted."""
    session = StoredSession(store, "chat")
    with recorded(monkeypatch) as seen:
        for read in ("history", "limited history", "streamed history", "from the end", "recent", "stats", "events"):
            await READS[read](session)
    for sql, plan in (await plans(store, seen)).items():
        # A session has few summaries: sorting them costs nothing.
        if "FROM assistant_compactions" in sql:
            continue
        assert not [line for line in plan if "TEMP B-TREE" in line], sql


async def test_a_scan_is_seen(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that looks through a whole table is found, so that the tests above can tell."""
    with recorded(monkeypatch):
        await SessionManager(store).list()
    with pytest.raises(AssertionError, match="SCAN"):
        await check_plans(store, [("SELECT id FROM assistant_messages WHERE role = ?", ("user",))])
    with pytest.raises(AssertionError, match="SCAN"):
        await check_plans(store, [("SELECT m.id FROM assistant_messages AS m WHERE m.content = ?", ("",))])
    await check_plans(store, [("SELECT id FROM assistant_messages WHERE row_id = ?", (1,))])
