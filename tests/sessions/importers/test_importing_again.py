"""Importing what was imported before, after something was done to it here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventstore.errors import ReservedIdError
from replay import verify
from sessions import Session, SessionManager, Store, StoredSession, import_file, open_store
from sessions.importers.recording import write_recorded
from tests.sessions.importers.claude import assistant, call, read, record, result, user, write
from tests.sessions.importers.test_importing import conversation, export
from tests.sessions.talk import said

SESSION = "claude-code:s"
CHATGPT = "chatgpt:a"
SUMMARY = [
    record("system", "cb", None, None, subtype="compact_boundary"),
    user("cs", "cb", "Summary.", isCompactSummary=True),
]


async def parents(store: Store, session_id: str = SESSION) -> dict[str, str | None]:
    """Return the parent of every message of a session."""
    return {n.message.id: n.parent_id async for n in Session.create(store).for_session(session_id).tree()}


async def tokens(store: Store) -> tuple[int, int]:
    """Return what the session used."""
    info = await SessionManager(store).get(SESSION)
    assert info is not None
    return info.input_tokens, info.output_tokens


async def test_deleted_message_is_not_completed(tmp_path: Path) -> None:
    """Records that come to a message which was deleted here bring nothing of it back, nor does a summary of it."""
    start = [user("u", None), assistant("a", "u", call("t"))]
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "1.jsonl", *start))
        await Session.create(store).for_session(SESSION).delete_messages(["u", "a"])
        head = await store.log.high_water()
        for more in ([user("x", "a", [result("t")])], SUMMARY):
            await import_file(store, write(tmp_path / "2.jsonl", *start, *more))
            assert await store.log.high_water() == head
        assert (await verify(store)).problems == []


@pytest.mark.parametrize("usage", [None, {"input_tokens": 3, "output_tokens": 9}])
async def test_usage_comes_with_the_records_that_tell_it(tmp_path: Path, usage: Any) -> None:
    """What a response used counts from when a record of it says so, and is nothing as long as none does."""
    start = [user("u", None), assistant("a", "u", call("t"), response="r", usage=None)]
    later = assistant("b", "a", {"type": "text", "text": "T"}, response="r", usage=usage)
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "1.jsonl", *start))
        assert await tokens(store) == (0, 0)
        await import_file(store, write(tmp_path / "2.jsonl", *start, later, user("x", "b", [result("t")])))
        assert await tokens(store) == ((0, 0) if usage is None else (3, 9))
        message = await Session.create(store).for_session(SESSION).get_message("a")
        assert message is not None
        assert [part.get("output", part.get("text")) for part in message.parts] == ["Found.", "T"]


async def test_messages_of_another_session_between_own_ones(tmp_path: Path) -> None:
    """A session that begins with a message of its own is nobody's child, whoever holds what comes after it."""
    shared = [user("u1", None), assistant("a1", "u1")]
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "a.jsonl", *({**one, "sessionId": "A"} for one in shared)))
        others = [user("n0", None), {**shared[0], "parentUuid": "n0"}, shared[1], assistant("n1", "a1")]
        path = write(tmp_path / "b.jsonl", *({**one, "sessionId": "B"} for one in others))
        (session,) = (await import_file(store, path)).sessions
        assert (session.parent_session_id, session.messages, session.inserted) == (None, 4, 2)
        assert set(await parents(store, "claude-code:B")) == {"n0", "n1"}
        assert (await import_file(store, path)).sessions[0].inserted == 0


async def test_ids_that_were_used_here_are_left_alone(tmp_path: Path) -> None:
    """A message whose id stands for one that was written here, or deleted here, is not stored over it."""
    path = write(tmp_path / "s.jsonl", user("u", None), assistant("a", "u"), user("v", "a"), user("w", "v"))
    async with open_store("sqlite://") as store:
        session = Session.create(store).for_session(SESSION)
        await session.append_messages([said("a", "ours"), said("v", "gone")])
        await session.delete_messages(["v"])
        (imported,) = (await import_file(store, path)).sessions
        assert imported.inserted == 2
        assert await parents(store) == {"a": None, "u": None, "w": "a"}
        message = await session.get_message("a")
        assert message is not None
        assert message.text == "ours"
        assert (await verify(store)).problems == []


async def test_tip_is_the_leaf_wherever_it_stands(tmp_path: Path) -> None:
    """Where the source's latest message is not the last that is stored, it becomes the tip all the same."""
    records = [user("u", None), assistant("a", "u"), user("v", "a")]
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "s.jsonl", *reversed(records)))
        leaf = await Session.create(store).for_session(SESSION).get_latest_leaf()
        assert leaf is not None
        assert leaf.id == "u"
        assert await parents(store) == {"u": None, "a": "u", "v": "a"}


async def test_strict_import_raises_for_a_refused_message(tmp_path: Path) -> None:
    """A message that the store refuses is raised by a strict import."""
    path = write(tmp_path / "s.jsonl", user("u", None), assistant("compaction_a", "u"))
    async with open_store("sqlite://") as store:
        with pytest.raises(ReservedIdError):
            await import_file(store, path, strict=True)


async def test_file_that_changes_while_it_is_imported(tmp_path: Path) -> None:
    """A message whose record is not where it was when the file was looked through is told and left out, no other."""
    long = "more than is read ahead " * 10_000
    (found,) = read(tmp_path, user("u1", None, long), assistant("a1", "u1"), user("u2", "a1", long))
    path = tmp_path / "s.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"uuid": "a1"', b'"uuid": "zz"'))
    async with open_store("sqlite://") as store:
        written = await write_recorded(store, found)
        assert written.inserted == 2
        (problem,) = written.problems
        assert "'a1' refused: the file has changed" in problem.reason
        assert await parents(store) == {"u1": None, "u2": "u1"}


async def test_new_message_below_a_deleted_one(tmp_path: Path) -> None:
    """What a later export has below a message that was deleted here hangs on what is left above it."""
    async with open_store("sqlite://") as store:
        await import_file(store, export(tmp_path, conversation("a", "1", "2", "3")))
        session = Session.create(store).for_session(CHATGPT)
        await session.delete_messages(["a1", "a2"])
        await import_file(store, export(tmp_path, conversation("a", "1", "2", "3", "4")))
        assert await parents(store, CHATGPT) == {"a0": None, "a3": "a0"}


async def test_session_without_a_title_and_words(tmp_path: Path) -> None:
    """A conversation with no title, in which nobody said anything, is named by its id at the source."""
    async with open_store("sqlite://") as store:
        await import_file(store, export(tmp_path, conversation("a", "", title=None), conversation("b", title=None)))
        assert {info.name for info in await SessionManager(store).list()} == {"a", "b"}
        assert await StoredSession(store, CHATGPT).get_path_length() == 1
