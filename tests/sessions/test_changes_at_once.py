from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from replay import rebuild, verify
from sessions import Session, SessionManager, open_store
from tests.replay.dumps import dumps
from tests.sessions.processes import finish, start
from tests.sessions.talk import collect

CHANGER = Path(__file__).with_name("changers.py")


def change_at_once(url: str, *, processes: int, count: int) -> None:
    """Let processes change one session, all at once, and check that none of them fails."""
    changers = [{"name": f"p{n}", "session_id": "chat", "count": count, "tasks": 2} for n in range(processes)]
    finish(start(url, changers, script=CHANGER))


async def check_changed(url: str) -> None:
    """Check that what processes left is whole: versions, tree, paths, search, and every projection as replayed."""
    async with open_store(url, synchronous="normal") as store:
        session = Session.create(store).for_session("chat")
        events = await collect(session.events())
        assert [envelope.version for envelope in events] == list(range(1, len(events) + 1))
        assert {envelope.type for envelope in events} >= {
            "message_appended",
            "message_updated",
            "messages_deleted",
            "compaction_added",
        }
        parents = {node.message.id: node.parent_id for node in await collect(session.tree())}
        for name in parents:
            path: list[str] = []
            above: str | None = name
            while above is not None:
                path.append(above)
                above = parents[above]
            assert await session.get_path_length(name) == len(path)
            stats = await session.get_history_row_stats(name)
            assert [row.id for row in stats] == path[::-1]
        latest = await session.get_latest_leaf()
        assert latest is not None
        assert latest.id in parents
        assert [info.id for info in await SessionManager(store).list()] == ["chat"]
        before = await dumps(store)
        await rebuild(store)
        assert await dumps(store) == before
        assert (await verify(store)).problems == []


async def test_processes_change_one_session(url: str) -> None:
    """Processes that append, update, delete and summarise in one session fail in typed ways only (CON-1)."""
    await asyncio.to_thread(change_at_once, url, processes=3, count=15)
    await check_changed(url)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(3))
async def test_eight_processes_change_one_session(tmp_path: Path, number: int) -> None:
    """Eight processes of two tasks each that change one session a hundred times fail in typed ways only (CON-1)."""
    url = f"sqlite:///{tmp_path / f'{number}.db'}"
    await asyncio.to_thread(change_at_once, url, processes=8, count=100)
    await check_changed(url)
