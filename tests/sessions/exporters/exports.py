"""Sessions to export, and short ways to export and compare them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from sessions import ImportReport, SessionManager, Store, StoredSession, import_file
from sessions.exporters import export_session
from tests.sessions.talk import said


async def exported(store: Store, session_id: str, format: str, leaf_id: str | None = None) -> str:  # noqa: A002
    """Return the whole text of an export."""
    return "".join([piece async for piece in export_session(store, session_id, format=format, leaf_id=leaf_id)])


async def imported(store: Store, text: str) -> ImportReport:
    """Import a text as a file, and return the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exported"
        path.write_bytes(text.encode())
        return await import_file(store, path)


async def shape(store: Store, session_id: str) -> dict[str, Any]:
    """Return all of a session that an export as a tree promises to keep, contents to the letter."""
    session = StoredSession(store, session_id)
    leaf = await session.get_latest_leaf()
    info = await SessionManager(store).get(session_id)
    assert info is not None
    return {
        "messages": [
            (node.parent_id, msgspec.json.encode(node.message.to_dict()).decode()) async for node in session.tree()
        ],
        "leaf": None if leaf is None else leaf.id,
        "compactions": [
            (one.id, one.summary, one.from_message_id, one.to_message_id) for one in await session.get_compactions()
        ],
        "name": info.name,
        "model": info.model,
        "created_at": info.created_at,
    }


async def branching(store: Store, session_id: str = "walk") -> StoredSession:
    """Return a session with two roots, three branches, a compaction, and a leaf that is not the newest message.

    u1 - a1 - u2 - a2 (the leaf), a1 - u3, and r2.
    """
    await SessionManager(store).create("A walk", id=session_id, model="m-1")
    session = StoredSession(store, session_id)
    await session.append_messages(
        [said("u1", "Where?"), said("a1", "There."), said("u2", "When?"), said("a2", "Then.")]
    )
    await session.append_message(said("u3", "Why?"), "a1")
    await session.append_message(said("r2", "Anew."), None)
    await session.add_compaction("They met.", "a1", "u2")
    await session.select_leaf("a2")
    return session


async def grow(
    store: Store,
    session_id: str,
    tree: Sequence[tuple[int, dict[str, Any]]],
    leaf: int,
    stretches: Sequence[tuple[int, int]],
    gone: int,
) -> StoredSession:
    """Return a session that random numbers describe.

    They are, for each message, its parent and the rest of it; the current leaf; where each compaction ends and how far
    it reaches up; and a message that is deleted at last.
    """
    await SessionManager(store).create("Grown", id=session_id)
    session = StoredSession(store, session_id)
    for number, (place, body) in enumerate(tree):
        parent = None if place % (number + 1) == number else f"m{place % (number + 1)}"
        await session.append_message({"id": f"m{number}", **body}, parent)
    if tree:
        await session.select_leaf(f"m{leaf % len(tree)}")
    for end, length in stretches if tree else ():
        path = [message.id async for message in session.history(f"m{end % len(tree)}", overlays=False)]
        await session.add_compaction("A summary.", path[max(len(path) - 1 - length, 0)], path[-1])
    if len(tree) > 1:
        await session.delete_messages([f"m{gone % len(tree)}"])
    return session
