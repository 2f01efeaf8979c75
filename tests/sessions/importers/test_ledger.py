from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventstore.errors import SessionDeletedError
from eventstore.events import SessionCreated
from replay import rebuild, verify
from sessions import ImportReport, Session, SessionManager, Store, StoredSession, import_file, open_store
from sessions.importers import recording
from tests.replay.dumps import dumps
from tests.sessions.importers.claude import Record, assistant, call, lines, record, result, user, write

A = "claude-code:A"
B = "claude-code:B"
SHARED = [user("u1", None), assistant("a1", "u1"), user("u2", "a1")]
MORE = [assistant("a2", "u2"), user("u3", "a2")]


def of(session_id: str, records: list[Record]) -> list[Record]:
    """Return records as they stand in a session's file."""
    return [{**one, "sessionId": session_id} for one in records]


def files(folder: Path) -> tuple[Path, Path]:
    """Return a session's file, and that of a session that went on from it."""
    first = write(folder / "a.jsonl", *of("A", SHARED))
    return first, write(folder / "b.jsonl", *of("B", SHARED + MORE))


async def ids(store: Store, session_id: str) -> list[str]:
    """Return the ids of a session's messages, in log order."""
    return [node.message.id async for node in Session.create(store).for_session(session_id).tree()]


async def tokens(store: Store) -> tuple[int, int]:
    """Return the tokens that all sessions used."""
    sessions = await SessionManager(store).list()
    return sum(one.input_tokens for one in sessions), sum(one.output_tokens for one in sessions)


async def created_with(store: Store, session_id: str) -> dict[str, Any]:
    """Return what a session was created with beside its fields."""
    first = await anext(StoredSession(store, session_id).events())
    assert isinstance(first.event, SessionCreated)
    return first.event.metadata or {}


def told(report: ImportReport) -> list[tuple[str, str | None, int, int]]:
    """Return what a report says of its sessions."""
    return [(one.session_id, one.parent_session_id, one.messages, one.inserted) for one in report.sessions]


async def test_resumed_session_holds_what_is_new(tmp_path: Path) -> None:
    """A session, then one that goes on from it: five messages, the two new ones in a child of the first (IMP-4)."""
    first, second = files(tmp_path)
    async with open_store("sqlite://") as store:
        reports = [await import_file(store, path) for path in (first, second, first, second)]
        info = await SessionManager(store).get(B)
        metadata = await created_with(store, B)
        assert (await ids(store, A), await ids(store, B)) == (["u1", "a1", "u2"], ["a2", "u3"])
        assert await tokens(store) == (20, 10)
        assert (await verify(store)).problems == []
    assert [told(report) for report in reports] == [
        [(A, None, 3, 3)],
        [(B, A, 5, 2)],
        [(A, None, 3, 0)],
        [(B, A, 5, 0)],
    ]
    assert info is not None
    assert info.parent_session_id == A
    assert metadata["continues"] == {"session_id": A, "message_id": "u2"}


async def test_session_that_is_held_by_another_is_none(tmp_path: Path) -> None:
    """In the other order the first session holds nothing new: it is told so, and no session is made (IMP-4)."""
    first, second = files(tmp_path)
    async with open_store("sqlite://") as store:
        await import_file(store, second)
        head = await store.log.high_water()
        report = await import_file(store, first)
        assert await store.log.high_water() == head
        assert await SessionManager(store).get(A) is None
        assert await ids(store, B) == ["u1", "a1", "u2", "a2", "u3"]
        assert await tokens(store) == (20, 10)
    assert told(report) == [(A, B, 3, 0)]


async def test_session_that_has_grown_is_completed(tmp_path: Path) -> None:
    """A session's file with one more record adds that record, whoever holds the others (IMP-4)."""
    first, second = files(tmp_path)
    grown = write(tmp_path / "grown.jsonl", *of("A", [*SHARED, assistant("new", "u2")]))
    async with open_store("sqlite://") as store:
        await import_file(store, first)
        assert told(await import_file(store, grown)) == [(A, None, 4, 1)]
        assert [message.id for message in await Session.create(store).for_session(A).get_history()][-1] == "new"
    async with open_store("sqlite://") as store:
        await import_file(store, second)
        assert told(await import_file(store, grown)) == [(A, B, 4, 1)]
        assert (await ids(store, A), await tokens(store)) == (["new"], (30, 15))


async def test_folder_of_resumed_sessions_is_rehearsed(tmp_path: Path) -> None:
    """A dry run of a folder tells what its import would do, the sharing included, and writes nothing (IMP-4)."""
    files(tmp_path)
    write(tmp_path / "c.jsonl", *of("C", [*SHARED, *MORE, assistant("a3", "u3")]))
    async with open_store("sqlite://") as store:
        rehearsed = await import_file(store, tmp_path, dry_run=True)
        assert await store.log.high_water() == 0
        report = await import_file(store, tmp_path)
        assert rehearsed == report
        assert await import_file(store, tmp_path, dry_run=True) == await import_file(store, tmp_path)
    assert told(report) == [(A, None, 3, 3), (B, A, 5, 2), ("claude-code:C", B, 6, 1)]


async def test_message_is_completed_by_later_records(tmp_path: Path) -> None:
    """A response of which more records came later, and a call that was answered later, are brought up to date."""
    text = {"type": "text", "text": "T"}
    start = [user("u", None), assistant("a", "u", text, response="r", usage={"input_tokens": 3, "output_tokens": 1})]
    later = assistant("b", "a", call("t"), response="r", usage={"input_tokens": 3, "output_tokens": 9})
    answer = user("x", "b", [result("t")])
    async with open_store("sqlite://") as store:
        session = Session.create(store).for_session("claude-code:s")
        for number, records in enumerate(([*start], [*start, later], [*start, later, answer], [*start, later, answer])):
            await import_file(store, write(tmp_path / f"{number}.jsonl", *records))
        message = await session.get_message("a")
        kinds = [envelope.type async for envelope in StoredSession(store, "claude-code:s").events()]
        assert await tokens(store) == (3, 9)
        before = await dumps(store)
        await rebuild(store)
        assert await dumps(store) == before
    assert message is not None
    assert [part.get("output", part["type"]) for part in message.parts] == ["text", "Found."]
    assert kinds == [
        "session_created",
        "message_appended",
        "message_appended",
        "usage_added",
        "message_updated",
        "usage_added",
        "message_updated",
    ]


async def test_records_that_were_missing_are_added(tmp_path: Path) -> None:
    """What a file's torn lines kept back is added when it comes: a call to a result, the beginning of a response."""
    answer, call_ = user("x", None, [result("t")]), assistant("a", "x", call("t"))
    begin, end = (assistant(name, None, {"type": "text", "text": name}, response="r") for name in ("b", "e"))
    async with open_store("sqlite://") as store:
        session = Session.create(store).for_session("claude-code:s")
        await import_file(store, write(tmp_path / "1.jsonl", answer, end))
        report = await import_file(store, write(tmp_path / "2.jsonl", answer, call_, begin, end))
        head = await store.log.high_water()
        await import_file(store, tmp_path / "2.jsonl")
        assert await store.log.high_water() == head
        found = {node.message.id: node.message.parts async for node in session.tree()}
    assert [one.inserted for one in report.sessions] == [1]
    assert found["a"][0]["output"] == "Found."
    assert [part["text"] for part in found["e"]] == ["b", "e"]
    assert found.keys() == {"x", "a", "e"}


async def test_edited_message_is_not_completed(tmp_path: Path) -> None:
    """A message that was edited in the store stays as it was edited when more of its records come."""
    start = [user("u", None), assistant("a", "u", call("t"))]
    async with open_store("sqlite://") as store:
        session = Session.create(store).for_session("claude-code:s")
        await import_file(store, write(tmp_path / "1.jsonl", *start))
        await session.update_message({"id": "a", "role": "assistant", "parts": []})
        await import_file(store, write(tmp_path / "2.jsonl", *start, user("x", "a", [result("t")])))
        message = await session.get_message("a")
    assert message is not None
    assert message.parts == []


async def test_message_is_completed_where_it_is(tmp_path: Path) -> None:
    """A call of one session that is answered in one that goes on from it gets its output in the first."""
    start = [user("u", None), assistant("a", "u", call("t"))]
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "a.jsonl", *of("A", start)))
        more = [user("x", "a", [result("t")]), assistant("b", "x")]
        report = await import_file(store, write(tmp_path / "b.jsonl", *of("B", start + more)))
        message = await Session.create(store).for_session(A).get_message("a")
        assert (await ids(store, A), await ids(store, B)) == (["u", "a"], ["b"])
    assert message is not None
    assert message.parts[0]["output"] == "Found."
    assert told(report) == [(B, A, 3, 1)]


BOUNDARY = record("system", "cb", None, None, subtype="compact_boundary")
SUMMARY = user("cs", "cb", "Summary.", isCompactSummary=True)


async def test_compaction_comes_once(tmp_path: Path) -> None:
    """A summary is stored with its messages, or when a later file has it, and not again."""
    start, end = [user("u", None), assistant("a", "u")], [user("v", "cs")]
    path = write(tmp_path / "2.jsonl", *of("A", [*start, BOUNDARY, SUMMARY, *end]))
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "1.jsonl", *of("A", start)))
        for _ in range(2):
            assert (await import_file(store, path)).overlays == 1
        (late,) = await Session.create(store).for_session(A).get_compactions()
        history = await Session.create(store).for_session(A).get_history()
    async with open_store("sqlite://") as store:
        for _ in range(2):
            await import_file(store, path)
        (along,) = await Session.create(store).for_session(A).get_compactions()
    for one in (late, along):
        assert (one.id, one.summary, one.from_message_id, one.to_message_id) == ("cs", "Summary.", "u", "a")
    assert [message.id for message in history] == ["compaction_cs", "v"]


async def test_compaction_behind_another_message_comes_once(tmp_path: Path) -> None:
    """A summary that a later file has behind a message that is new, or was deleted here, is not stored again."""
    start, more = [user("u", None), assistant("a", "u")], [user("v", "a"), BOUNDARY, SUMMARY]
    for deleted in ([], ["u", "a"]):
        async with open_store("sqlite://") as store:
            session = Session.create(store).for_session(A)
            await import_file(store, write(tmp_path / "1.jsonl", *of("A", [*start, BOUNDARY, SUMMARY])))
            before = [one.id for one in await session.get_compactions()]
            assert before == ["cs"]
            await session.delete_messages(deleted)
            report = await import_file(store, write(tmp_path / "2.jsonl", *of("A", [*start, *more])))
            assert (report.problems, [one.inserted for one in report.sessions]) == ([], [1])
            after = [(one.id, one.to_message_id) for one in await session.get_compactions()]
            assert after == ([] if deleted else [("cs", "a")])


async def test_compaction_of_what_another_session_holds_is_kept_beside(tmp_path: Path) -> None:
    """A summary of messages that are in the parent session leaves that alone and is kept with the new session."""
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "a.jsonl", *of("A", SHARED)))
        more = [BOUNDARY, SUMMARY, user("v", "cs")]
        await import_file(store, write(tmp_path / "b.jsonl", *of("B", SHARED + more)))
        assert await Session.create(store).for_session(A).get_compactions() == []
        metadata = await created_with(store, B)
    assert metadata["summaries"] == [{"id": "cs", "summary": "Summary."}]


async def test_what_was_deleted_or_cleared(tmp_path: Path) -> None:
    """A deleted message stays deleted, a cleared session is imported anew, and a deleted one is refused and told."""
    path = write(tmp_path / "a.jsonl", *of("A", SHARED + MORE))
    async with open_store("sqlite://") as store:
        session = Session.create(store).for_session(A)
        await import_file(store, write(tmp_path / "start.jsonl", *of("A", SHARED)))
        await session.delete_messages(["u2"])
        report = await import_file(store, path)
        tree = {node.message.id: node.parent_id async for node in session.tree()}
        assert (told(report), tree) == ([(A, None, 5, 2)], {"u1": None, "a1": "u1", "a2": "a1", "u3": "a2"})
        await session.clear_messages()
        assert told(await import_file(store, path)) == [(A, None, 5, 5)]
        assert (await verify(store)).problems == []
        await SessionManager(store).delete(A)
        refused = await import_file(store, path)
        assert (refused.sessions, refused.skipped, len(refused.problems)) == ([], 1, 1)
        with pytest.raises(SessionDeletedError):
            await import_file(store, path, strict=True)
        before = await dumps(store)
        assert before["imports"] == []
        await rebuild(store)
        assert await dumps(store) == before


async def test_tip_is_the_leaf_of_the_source(tmp_path: Path) -> None:
    """With new messages the tip becomes the source's leaf; without any, the branch that a person chose stays."""
    path = write(
        tmp_path / "s.jsonl", user("u", None), user("x", "u"), user("y", "u"), user("z", "x"), assistant("w", "y")
    )
    async with open_store("sqlite://") as store:
        session = Session.create(store).for_session("claude-code:s")
        await import_file(store, path)
        leaf = await session.get_latest_leaf()
        assert leaf is not None
        assert leaf.id == "w"
        await session.select_leaf("z")
        await import_file(store, path)
        leaf = await session.get_latest_leaf()
        assert leaf is not None
        assert leaf.id == "z"


async def test_refused_message_costs_only_itself(tmp_path: Path) -> None:
    """A message that the store refuses is told, what hangs on it hangs on its parent, and strict raises."""
    path = write(tmp_path / "s.jsonl", user("u", None), assistant("compaction_a", "u"), user("v", "compaction_a"))
    async with open_store("sqlite://") as store:
        report = await import_file(store, path)
        tree = {n.message.id: n.parent_id async for n in Session.create(store).for_session("claude-code:s").tree()}
        assert (tree, len(report.problems)) == ({"u": None, "v": "u"}, 1)
        assert (await import_file(store, path)).sessions[0].inserted == 0
    assert [one.inserted for one in report.sessions] == [2]


async def test_sidechains_and_subagents_are_children(tmp_path: Path) -> None:
    """A session's file with the files of its subagents beside it are a session and its children, in one import."""
    main = [user("u", None), assistant("a", "u"), user("p", None, isSidechain=True)]
    agent = [user("g", None, isSidechain=True), assistant("h", "g", isSidechain=True)]
    write(tmp_path / "s.jsonl", *main)
    write(tmp_path / "s" / "subagents" / "agent-one.jsonl", *agent)
    write(tmp_path / "s" / "subagents" / "agent-two.jsonl", *({**one, "uuid": f"2{one['uuid']}"} for one in agent))
    async with open_store("sqlite://") as store:
        report = await import_file(store, tmp_path)
        sessions = await SessionManager(store).list()
    parent = "claude-code:s"
    assert [(one.session_id, one.parent_session_id, one.messages) for one in report.sessions] == [
        (parent, None, 2),
        ("claude-code:p", parent, 1),
        ("claude-code:one", parent, 2),
        ("claude-code:two", parent, 2),
    ]
    assert {one.parent_session_id for one in sessions} == {None, parent}


async def test_metadata_of_callers_is_no_record() -> None:
    """What callers put into the metadata of their events under the ledger's name, in another shape, is no record."""
    odd: list[Any] = [
        7,
        {},
        {"format": "claude-code"},
        {"format": 1, "records": ["u1"]},
        {"format": "x", "records": [1]},
    ]
    async with open_store("sqlite://") as store:
        session = StoredSession(store, "own")
        for number, value in enumerate(odd):
            message = {"id": str(number), "role": "user", "parts": []}
            await session.append_message(message, metadata={"import": value})
        assert (await dumps(store))["imports"] == []


async def test_many_pieces_are_one_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation that is written in many transactions is the same as one that is written in one."""
    records = [user("n0", None), *(assistant(f"n{number}", f"n{number - 1}") for number in range(1, 60))]
    records += [BOUNDARY, SUMMARY, user("v", "cs"), user("w", "n3")]
    path = write(tmp_path / "s.jsonl", *records)

    async def written() -> list[tuple[str, Any]]:
        async with open_store("sqlite://") as store:
            await import_file(store, path)
            assert (await verify(store)).problems == []
            return [(envelope.type, envelope.metadata) async for envelope in store.log.read_all()]

    whole = await written()
    monkeypatch.setattr(recording, "PIECE_BYTES", 700)
    in_pieces = await written()
    monkeypatch.setattr(recording, "PAGE", 7)
    assert in_pieces == await written() == whole


async def test_made_up_ids_that_meet_are_no_copies(tmp_path: Path) -> None:
    """Two conversations whose records have the same made-up ids at other times are both stored whole (IMP-4)."""
    for number in (1, 2):
        records = [
            user("u1", None, sessionId=f"s{number}", timestamp=f"2025-07-0{number}T10:00:00.000Z"),
            assistant("a1", "u1", sessionId=f"s{number}", timestamp=f"2025-07-0{number}T10:00:01.000Z"),
        ]
        (tmp_path / f"{number}.jsonl").write_bytes(lines(records))
    async with open_store("sqlite://") as store:
        for inserted in ([2, 2], [0, 0]):
            report = await import_file(store, tmp_path)
            assert [one.inserted for one in report.sessions] == inserted
