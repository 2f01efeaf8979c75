from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from eventstore import ParentNotFoundError
from sessions import CompactResult, Session, SessionManager, Store, StoredSession, open_store
from tests.sessions.compactions import BAD, Compactor, Frames, Waiting, middle
from tests.sessions.providers import Failing, Note
from tests.sessions.talk import chain, said

NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


def idle(tokens: int, threshold: int | None = None, session_id: str = "chat", **other: Any) -> tuple[str, Any]:
    """Return a frame as it is published."""
    about = {"type": "cf_agent_session", "sessionId": session_id, "phase": "idle"}
    return f"session:{session_id}", {**about, "tokenEstimate": tokens, "tokenThreshold": threshold, **other}


WRITES: dict[str, Callable[[Session], Awaitable[Any]]] = {
    "append": lambda s: s.append_message(said("m9")),
    "append again": lambda s: s.append_message(said("m1")),
    "append several": lambda s: s.append_messages([said("m8"), said("m9")]),
    "upsert": lambda s: s.upsert_message(said("m1", "other")),
    "update": lambda s: s.update_message(said("m1", "other")),
    "update of nothing": lambda s: s.update_message(said("gone")),
    "update without change": lambda s: s.update_message(said("m1")),
    "delete": lambda s: s.delete_messages(["m1"]),
    "delete nothing": lambda s: s.delete_messages(["gone"]),
    "reconcile": lambda s: s.reconcile([said("m0"), said("m9")]),
    "reconcile without news": lambda s: s.reconcile([said("m0"), said("m1")]),
    "clear": lambda s: s.clear_messages(),
    "select": lambda s: s.select_leaf("m0"),
}
SILENT: dict[str, Callable[[Session], Awaitable[Any]]] = {
    "import": lambda s: s.import_message(said("m9"), "m1", NOON),
    "summary": lambda s: s.add_compaction("S", "m0", "m1"),
    "read": lambda s: s.get_history(),
    "freeze": lambda s: s.freeze_system_prompt(),
    "block": lambda s: s.replace_context_block("memory", "text"),
    "skill": lambda s: s.unload_skill("memory", "k"),
}


async def prepared(session: Session) -> Frames:
    """Return the frames of a session that has two messages."""
    frames = Frames()
    session.with_context("memory", provider=Note("")).with_publisher(frames)
    await chain(session, "m0", "m1")
    frames.sent.clear()
    return frames


@pytest.mark.parametrize("write", WRITES)
async def test_every_write_tells_the_status(session: Session, write: str) -> None:
    """A write, be it one that changes nothing, has told one status with the estimate of now before it returns."""
    frames = await prepared(session)
    await WRITES[write](session)
    assert isinstance(session._storage, StoredSession)
    prompt = 28
    assert frames.sent == [idle(await session._storage.token_estimate() + prompt)]


@pytest.mark.parametrize("call", SILENT)
async def test_what_tells_no_status(session: Session, call: str) -> None:
    """Reads, blocks, an import and a summary that was given tell no status."""
    frames = await prepared(session)
    await SILENT[call](session)
    assert frames.sent == []


async def test_refused_write_tells_nothing(session: Session) -> None:
    """A write that was refused tells no status."""
    frames = await prepared(session)
    with pytest.raises(ParentNotFoundError):
        await session.append_message(said("m2"), "gone")
    assert frames.sent == []


async def test_append_that_compacts(session: Session) -> None:
    """An append that compacts tells idle, compacting, idle, and what the view came to before."""
    frames = Frames()
    session.on_compaction(Compactor(CompactResult("m0", "m1", "summary"))).compact_after(12).with_publisher(frames)
    await chain(session, "m0", "m1")
    frames.sent.clear()
    await session.append_message(said("m2", "a long text that goes over what was set for the session"))
    assert frames.sent == [
        idle(32, 12),
        ("session:chat", {**idle(32, 12)[1], "phase": "compacting"}),
        idle(26, 12, compacted={"tokensBefore": 32}),
    ]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("by_itself", [False, True])
async def test_failure_is_told_and_closed(session: Session, bad: str, *, by_itself: bool) -> None:
    """After a failure, whichever it is, come an error frame and a closing idle, so that nobody is left waiting."""
    answer, error = BAD[bad]
    frames = Frames()
    session.on_compaction(Compactor(answer)).with_publisher(frames).on_compaction_error(lambda _: None)
    if by_itself:
        session.compact_after(12)
        await chain(session, "m0", "m1", "m2")
    else:
        await chain(session, "m0", "m1", "m2")
        with pytest.raises(error):
            await session.compact()
    assert frames.phases()[-4:-2] == ["idle", "compacting"]
    assert frames.sent[-2][1]["type"] == "cf_agent_session_error"
    assert frames.sent[-1] == idle(18, 12 if by_itself else None)


async def test_prompt_that_cannot_be_kept(session: Session) -> None:
    """A compaction stands whose prompt could not be frozen, and the caller of compact hears of that."""
    frames = Frames()
    prompt = Failing("set", "read only")
    session.on_compaction(Compactor(middle())).with_cached_prompt(prompt).with_publisher(frames)
    await chain(session, "m0", "m1", "m2")
    with pytest.raises(RuntimeError, match="read only"):
        await session.compact()
    assert frames.phases()[-3:] == ["compacting", "error: read only", "idle"]
    assert len(await session.get_compactions()) == 1


async def test_estimate_that_fails(session: Session) -> None:
    """An estimate that cannot be made is told as an error with an idle of 0 behind it, and the write stands."""
    frames = Frames()
    session.with_context("bad", provider=Failing("get", "unreadable")).with_publisher(frames)
    await session.append_message(said("m0"))
    assert frames.phases() == ["error: unreadable", "idle"]
    assert frames.sent[-1] == idle(0)


async def test_publisher_that_raises(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """A publisher that raises fails no append and no compaction, and its words are not logged."""
    frames = Frames(RuntimeError("secret"))
    session.on_compaction(Compactor(middle())).compact_after(12).with_publisher(frames)
    await chain(session, "m0", "m1", "m2")
    assert (len(await session.get_compactions()), len(frames.sent)) == (1, 5)
    assert caplog.records
    assert "secret" not in caplog.text


async def test_plain_publisher(session: Session) -> None:
    """A publisher's method may be plain."""
    sent: list[str] = []

    class Plain:
        def publish(self, channel: str, message: dict[str, Any]) -> None:
            sent.append(f"{channel} {message['phase']}")

    session.with_publisher(Plain())  # type: ignore[arg-type]
    await chain(session, "m0")
    assert sent == ["session:chat idle"]


async def test_in_process_publisher_is_followed(store: Store, session: Session) -> None:
    """Who follows a session's channel on the store's publisher gets its status, and that of no other session."""
    frames = store.publisher.subscribe("session:chat")  # type: ignore[attr-defined]
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    await chain(Session.create(store).for_session("other"), "m0")
    await chain(session, "m0")
    assert await waiting == idle(6)[1]
    await frames.aclose()


@pytest.mark.parametrize("listening", [False, True])
async def test_nothing_is_computed_when_nobody_listens(store: Store, session: Session, *, listening: bool) -> None:
    """With the store's own publisher no block is read and nothing is counted unless somebody follows the channel."""
    asked: list[str] = []

    class Block:
        def get(self) -> str:
            asked.append("block")
            return "text"

    session.with_context("memory", provider=Block())
    frames = store.publisher.subscribe("session:chat")  # type: ignore[attr-defined]
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    if not listening:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await frames.aclose()
    await session.append_message(said("m0"))
    await session.update_message(said("m0", "other"))
    assert bool(asked) is listening
    await asyncio.gather(waiting, return_exceptions=True)
    await frames.aclose()


async def test_given_publisher_takes_the_place_of_the_stores(store: Store) -> None:
    """A publisher that was given counts as listened to, and the store's gets nothing then."""
    given = Frames()
    frames = store.publisher.subscribe("session:chat")  # type: ignore[attr-defined]
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    manager = SessionManager(store).with_publisher(given)
    await manager.append("chat", said("m0"))
    await asyncio.sleep(0)
    assert (given.sent, waiting.done()) == ([idle(6)], False)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await frames.aclose()


async def test_stores_publisher_of_ones_own(tmp_path: Path) -> None:
    """A publisher that a store was opened with gets the status of its sessions, beside the hints of the log."""
    frames = Frames()
    async with open_store(f"sqlite:///{tmp_path / 'chats.db'}", publisher=frames) as store:
        await chain(Session.create(store).for_session("chat"), "m0")
    assert [one for one in frames.sent if one[0] != "log"] == [idle(6)]


async def test_session_provider_has_no_publisher(store: Store) -> None:
    """Over a session provider, the store's own too, there is status where a publisher was given, and only there."""
    frames = store.publisher.subscribe("session:chat")  # type: ignore[attr-defined]
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    await chain(Session(StoredSession(store, "chat")), "m0")
    await asyncio.sleep(0)
    assert not waiting.done()
    given = Frames()
    await chain(Session(StoredSession(store, "chat")).with_publisher(given), "m1")
    assert given.sent == [idle(12)]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await frames.aclose()


async def test_phase_while_a_compaction_runs(session: Session) -> None:
    """Who writes while a compaction runs tells that it does."""
    waiting, frames = Waiting(CompactResult("m0", "m0", "S")), Frames()
    session.on_compaction(waiting).with_publisher(frames)
    await chain(session, "m0", "m1")
    compacting = asyncio.create_task(session.compact())
    await waiting.begun.wait()
    await chain(session, "m2")
    waiting.go.set()
    await compacting
    assert frames.phases() == ["idle", "idle", "compacting", "compacting", "idle"]
    assert frames.sent[-1] == idle(18, compacted={"tokensBefore": 12})
