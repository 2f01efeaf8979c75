from __future__ import annotations

import asyncio
import collections
from pathlib import Path

import pytest

from eventstore import MessageAppended
from eventstore.envelope import Envelope
from eventstore.events import SessionDeleted, SessionForked, UsageAdded
from replay import rebuild, verify
from sessions import SessionManager, open_store
from tests.replay.dumps import dumps
from tests.sessions.processes import finish, start
from tests.sessions.talk import ids

MANAGER = Path(__file__).with_name("managers.py")


def manage_at_once(url: str, *, processes: int, count: int) -> None:
    """Let processes manage the sessions of one file, all at once, and check that none of them fails."""
    managers = [{"name": f"p{n}", "count": count, "tasks": 2} for n in range(processes)]
    finish(start(url, managers, script=MANAGER))


async def check_managed(url: str) -> None:
    """Check that what processes left is whole: no write after a deletion, whole forks, usage, every projection."""
    async with open_store(url, synchronous="normal") as store:
        manager = SessionManager(store)
        streams: dict[str, list[Envelope]] = collections.defaultdict(list)
        async for envelope in store.log.read_all():
            streams[envelope.stream_id].append(envelope)
        gone = {name for name, log in streams.items() if isinstance(log[-1].event, SessionDeleted)}
        assert gone
        listed = await manager.list()
        # The newest event's session first, and every session but the deleted ones.
        order = sorted(streams.keys() - gone, key=lambda name: -streams[name][-1].position)
        assert [info.id for info in listed] == order
        for name, log in streams.items():
            assert [envelope.version for envelope in log] == list(range(1, len(log) + 1))
            assert not any(isinstance(envelope.event, SessionDeleted) for envelope in log[:-1])
            _check_fork(log, streams)
            copies = [e.event.message["id"] for e in log if isinstance(e.event, MessageAppended)]
            assert ids(await manager.get_history(name)) == ([] if name in gone else copies)
        for info in listed:
            used = [envelope.event for envelope in streams[info.id] if isinstance(envelope.event, UsageAdded)]
            assert (info.input_tokens, info.output_tokens) == (len(used), 2 * len(used))
        assert {hit.session_id for hit in await manager.search("said", limit=10_000)} <= set(order)
        before = await dumps(store)
        await rebuild(store)
        assert await dumps(store) == before
        assert (await verify(store)).problems == []


def _check_fork(log: list[Envelope], streams: dict[str, list[Envelope]]) -> None:
    """Check that a fork holds what its source held at the version that it names, and was written at once."""
    if len(log) < 2 or not isinstance(log[1].event, SessionForked):
        return
    forked = log[1].event
    held = [
        envelope.event.message
        for envelope in streams[forked.session_id][: forked.version]
        if isinstance(envelope.event, MessageAppended)
    ]
    held = held[: [message["id"] for message in held].index(forked.message_id) + 1]
    copied = [envelope for envelope in log[2 : 2 + len(held)] if isinstance(envelope.event, MessageAppended)]
    assert [envelope.position for envelope in copied] == [log[0].position + 2 + n for n in range(len(held))]
    messages = [envelope.event.message for envelope in copied if isinstance(envelope.event, MessageAppended)]
    assert [message["metadata"]["forkedFrom"] for message in messages] == [message["id"] for message in held]
    assert [message["parts"] for message in messages] == [message["parts"] for message in held]


async def test_processes_manage_the_same_sessions(url: str) -> None:
    """Processes that fork, split, delete and write to the same sessions fail in typed ways only (CON-1)."""
    await asyncio.to_thread(manage_at_once, url, processes=2, count=25)
    await check_managed(url)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(3))
async def test_eight_processes_manage_the_same_sessions(tmp_path: Path, number: int) -> None:
    """Eight processes of two tasks each that do a hundred things to the same sessions leave all of it whole (CON-1)."""
    url = f"sqlite:///{tmp_path / f'{number}.db'}"
    await asyncio.to_thread(manage_at_once, url, processes=8, count=100)
    await check_managed(url)


async def test_fork_beside_a_deletion_is_whole_or_refused(url: str) -> None:
    """A fork in one store, while another one deletes its source, is the whole history or nothing (TREE-7)."""
    async with open_store(url, synchronous="normal") as here, open_store(url, synchronous="normal") as there:
        forking, deleting = SessionManager(here), SessionManager(there)
        for number in range(15):
            name = f"s{number}"
            await forking.append_all(name, [{"id": f"m{n}", "role": "user", "parts": []} for n in range(10)])
            fork, _ = await asyncio.gather(forking.fork(name, "m9", "F"), deleting.delete(name), return_exceptions=True)
            assert await forking.get(name) is None
            if isinstance(fork, BaseException):
                assert type(fork).__name__ == "SessionDeletedError"
            else:
                assert len(await deleting.get_history(fork.id)) == 10
        assert (await verify(here)).problems == []
