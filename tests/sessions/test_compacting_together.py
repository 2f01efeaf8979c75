from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from replay import verify
from sessions import CompactResult, Message, Session, SessionManager, Store, open_store
from tests.sessions.compactions import Compactor, Waiting, middle, shown, texts
from tests.sessions.processes import spawn
from tests.sessions.talk import chain, collect, ids, said

COMPACTOR = Path(__file__).with_name("compactors.py")
WRITERS = 8
EACH = 20


class Summariser:
    """Summarises all but the last two messages by naming every one of them, slowly; notes how many ran at once."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}
        self.running = 0
        self.most = 0

    async def __call__(self, messages: list[Message], _context: object) -> CompactResult | None:
        """Give a summary that holds what it was given, other summaries included."""
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(20):
            await asyncio.sleep(0)
        self.running -= 1
        inner = messages[:-2]
        if not inner:
            return None
        covered = [name for one in inner for name in self.seen.get(one.text, [one.id])]
        summary = f"S{len(self.seen)}"
        self.seen[summary] = covered
        return CompactResult(inner[0].id, inner[-1].id, summary)


async def test_compacting_while_others_append(store: Store) -> None:
    """While 8 writers append, exactly what summaries have seen is hidden, and one compaction runs at a time."""
    summarise = Summariser()
    sessions = [
        Session.create(store).for_session("chat").on_compaction(summarise).compact_after(60) for _ in range(WRITERS)
    ]

    async def write(number: int) -> None:
        for n in range(EACH):
            assert (await sessions[number].append_message(said(f"w{number}-{n}"))).inserted

    await asyncio.gather(*map(write, range(WRITERS)))
    history = await sessions[0].get_history()
    raw = [one.id async for one in sessions[0]._storage.history(overlays=False)]  # type: ignore[call-arg]
    assert len(raw) == WRITERS * EACH
    told = [name for one in history for name in summarise.seen.get(one.text, [one.id])]
    assert (told, summarise.most) == (raw, 1)
    assert len(history) < len(raw)
    assert (await verify(store)).ok


async def test_one_compaction_at_a_time(store: Store) -> None:
    """Of two compactions of a session the second waits, and is given what the first has left."""
    waiting = Waiting(CompactResult("m1", "m2", "one"))
    following = Compactor(CompactResult("m3", "m4", "two"))
    first = Session.create(store).for_session("chat").on_compaction(waiting)
    second = SessionManager(store).on_compaction(following).get_session("chat")
    await chain(first, *(f"m{n}" for n in range(6)))
    tasks = [asyncio.create_task(first.compact())]
    await waiting.begun.wait()
    tasks.append(asyncio.create_task(second.compact()))
    other = Session.create(store).for_session("other").on_compaction(Compactor(CompactResult("m0", "m0", "other")))
    await chain(other, "m0")
    assert await other.compact() is not None
    assert following.given == []
    waiting.go.set()
    await asyncio.gather(*tasks)
    assert following.given == [["m0", "one", "m3", "m4", "m5"]]
    assert await shown(first) == ["m0", "two", "m5"]


async def test_append_does_not_wait_for_a_compaction(session: Session) -> None:
    """Whoever appends while a compaction runs does not wait for it, and begins no other."""
    waiting = Waiting(middle())
    session.on_compaction(waiting).compact_after(10)
    await chain(session, "m0")
    compacting = asyncio.create_task(session.append_message(said("m1")))
    await waiting.begun.wait()
    await asyncio.wait_for(chain(session, "m2", "m3"), 10)
    assert not compacting.done()
    waiting.go.set()
    assert (await compacting).inserted
    assert waiting.compact.given == [["m0", "m1"]]


@pytest.mark.parametrize(
    ("ranges", "recorded"),
    [
        ([("m1", "m5"), ("m1", "m5")], 1),
        ([("m1", "m5"), ("m4", "m8")], 1),
        ([("m1", "m3"), ("m5", "m8")], 2),
    ],
    ids=["same", "overlapping", "apart"],
)
async def test_two_processes_compact_at_once(url: str, ranges: list[tuple[str, str]], recorded: int) -> None:
    """Of two processes that have summarised the same messages one records its summary, and of others both do."""
    async with open_store(url) as store:
        session = Session.create(store).for_session("chat")
        await chain(session, *(f"m{n}" for n in range(10)))
        started = [
            spawn(COMPACTOR, {"url": url, "name": str(n), "first": first, "last": last})
            for n, (first, last) in enumerate(ranges)
        ]
        for process in started:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
        # Both have read their history by now, and both are let go.
        answers = [await asyncio.to_thread(process.communicate, "\n", timeout=60) for process in started]
        assert [error for _, error in answers] == [""] * len(started)
        assert [said_so for said_so, _ in answers].count("recorded\n") == recorded
        assert len(await session.get_compactions()) == recorded
        history = await session.get_history()
        assert len([text for text in texts(history) if text.startswith("by ")]) == recorded
        assert ids(await collect(session._storage.history(overlays=False))) == [f"m{n}" for n in range(10)]  # type: ignore[call-arg]
        assert (await verify(store)).ok


async def test_two_stores_of_one_file(url: str) -> None:
    """A summary of messages that another process has deleted meanwhile is discarded, and the next one is not."""
    async with open_store(url) as store, open_store(url) as elsewhere:
        waiting = Waiting(middle())
        session = Session.create(store).for_session("chat").on_compaction(waiting)
        await chain(session, *(f"m{n}" for n in range(5)))
        compacting = asyncio.create_task(session.compact())
        await waiting.begun.wait()
        await Session.create(elsewhere).for_session("chat").delete_messages(["m2"])
        waiting.go.set()
        assert await compacting is None
        assert (await session.compact(), await shown(session)) == (
            CompactResult("m1", "m3", "S(m1 m3)"),
            ["m0", "S(m1 m3)", "m4"],
        )
