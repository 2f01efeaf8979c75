"""What the store refuses is refused in a file too, whichever format it is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventstore.errors import InvalidCompactionError, LimitExceededError
from replay import rebuild, verify
from sessions import Limits, Session, SessionManager, StoredSession, import_file, open_store
from tests.replay.dumps import dumps
from tests.sessions.exporters.exports import imported
from tests.sessions.exporters.test_json_tree import tree_of
from tests.sessions.importers.claude import Record, assistant, call, record, result, user, write
from tests.sessions.importers.test_importing import conversation, export
from tests.sessions.talk import said

CLAUDE = "claude-code:s"


def compaction(**other: Any) -> dict[str, Any]:
    """Return a compaction of an exported session, with other values."""
    return {"id": "k", "summary": "S", "from_message_id": "m1", "to_message_id": "m2", **other}


HOSTILE: dict[str, dict[str, Any]] = {
    "long summary": {"compactions": [compaction(summary="x" * 4_000)]},
    "blank summary": {"compactions": [compaction(summary=" \n")]},
    "NUL in an id": {"compactions": [compaction(id="k\0")]},
    "long id": {"compactions": [compaction(id="k" * 2_000)]},
    "NUL in an end": {"compactions": [compaction(from_message_id="m1\0")]},
    "long model": {"session": {"id": "s", "name": "S", "model": "m" * 1_000_000}},
    "long parent": {"session": {"id": "s", "name": "S", "parent_session_id": "p" * 5_000}},
    "NUL in the parent": {"session": {"id": "s", "name": "S", "parent_session_id": "p\0"}},
    "time before all times": {"session": {"id": "s", "name": "S", "created_at": "0001-01-01T00:00:00+14:00"}},
    "much beside": {"session": {"id": "s", "name": "S", "more": "x" * 4_000}},
    "deep beside": {"session": {"id": "s", "name": "S", "more": json.loads("[" * 250 + "]" * 250)}},
    "long number beside": {"session": {"id": "s", "name": "S", "more": 10**4_290}},
}


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_limits_hold_for_an_import(hostile: str) -> None:
    """What a call would refuse is refused in a file of sessions too, and told in few words (MEM-4)."""
    async with open_store("sqlite://", limits=Limits(message_bytes=3_000)) as store:
        report = await imported(store, json.dumps(tree_of(**HOSTILE[hostile])))
        (problem,) = report.problems
        assert len(problem.reason) < 500
        assert report.overlays == 0
        assert await StoredSession(store, "json:s").get_compactions() == []
        is_left_out = "compactions" not in HOSTILE[hostile]
        assert (problem.skipped, await store.log.high_water() == 0) == (is_left_out, is_left_out)


async def test_compaction_that_is_left_out_is_told_and_not_counted() -> None:
    """Of compactions those that are stored count; one with the id of another, or off the stored paths, is told."""
    apart = [{"parent_id": None, "message": said("m1")}, {"parent_id": None, "message": said("m2")}]
    second = tree_of(session={"id": "t", "name": "T"}, messages=apart)
    async with open_store("sqlite://") as store:
        report = await imported(store, json.dumps(tree_of(compactions=[compaction(), compaction(summary="T")])))
        assert report.overlays == 1
        assert [problem.reason for problem in report.problems] == [
            "compaction 'k' refused: session 'json:s': another compaction before it has its id"
        ]
        assert [one.summary for one in await StoredSession(store, "json:s").get_compactions()] == ["S"]
        await imported(store, json.dumps(second))
        report = await imported(
            store, json.dumps(second | {"messages": tree_of()["messages"], "compactions": [compaction()]})
        )
        assert report.overlays == 0
        assert [problem.reason for problem in report.problems] == [
            "compaction 'k' refused: session 'json:t': its ends do not lie on one path"
        ]


@pytest.mark.parametrize(
    ("wrong", "error"), [({"summary": " "}, InvalidCompactionError), ({"id": "k" * 600}, LimitExceededError)]
)
async def test_strict_import_of_a_compaction(tmp_path: Path, wrong: dict[str, str], error: type[Exception]) -> None:
    """A compaction that the store refuses is raised by a strict import, and then nothing was written."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps(tree_of(compactions=[compaction(**wrong)])), encoding="utf-8")
    async with open_store("sqlite://") as store:
        with pytest.raises(error):
            await import_file(store, path, strict=True)
        assert await store.log.high_water() == 0


async def test_model_of_an_export_is_a_title(tmp_path: Path) -> None:
    """A conversation whose model has a name that is too long is refused, and the others of the export are not."""
    entry = conversation("a", "1", default_model_slug="m" * 10_000)
    async with open_store("sqlite://") as store:
        report = await import_file(store, export(tmp_path, entry, conversation("b", "2")))
    assert [(problem.index, problem.skipped) for problem in report.problems] == [(0, True)]
    assert [problem.reason for problem in report.problems] == ["refused: model: larger than the limit title_bytes=4096"]
    assert [one.source_id for one in report.sessions] == ["b"]


def summary(text: str, uuid: str = "cs") -> list[Record]:
    """Return the records of a summary."""
    boundary = record("system", "cb", None, None, subtype="compact_boundary")
    return [boundary, user(uuid, "cb", text, isCompactSummary=True)]


@pytest.mark.parametrize("is_late", [False, True], ids=["along", "late"])
@pytest.mark.parametrize(("text", "uuid"), [(" ", "cs"), ("x" * 4_000, "cs"), ("S", "c" * 600), ("S", "c\0")])
async def test_summary_of_claude_code(tmp_path: Path, text: str, uuid: str, *, is_late: bool) -> None:
    """A summary that the store refuses is left out, with its messages or after them, and these are kept (MEM-4)."""
    start = [user("u", None), assistant("a", "u")]
    async with open_store("sqlite://", limits=Limits(message_bytes=3_000)) as store:
        if is_late:
            await import_file(store, write(tmp_path / "1.jsonl", *start))
        report = await import_file(store, write(tmp_path / "2.jsonl", *start, *summary(text, uuid), user("v", uuid)))
        assert (report.overlays, len(report.problems), report.skipped) == (0, 1, 0)
        session = StoredSession(store, CLAUDE)
        assert [message.id for message in await session.get_history()] == ["u", "a", "v"]
        assert await session.get_compactions() == []


async def test_summary_of_what_was_deleted(tmp_path: Path) -> None:
    """A summary of messages that were deleted here is told, and not counted."""
    start = [user("u", None), assistant("a", "u")]
    async with open_store("sqlite://") as store:
        await import_file(store, write(tmp_path / "1.jsonl", *start))
        await Session.create(store).for_session(CLAUDE).delete_messages(["u", "a"])
        report = await import_file(store, write(tmp_path / "2.jsonl", *start, *summary("S")))
    assert report.overlays == 0
    assert [problem.reason for problem in report.problems] == [
        "compaction 'cs' refused: session 'claude-code:s': the message that it ends at is not there"
    ]


async def test_what_stands_beside_a_message(tmp_path: Path) -> None:
    """Names of records and models that are too long are refused with the message that they belong to (MEM-4)."""
    long = user("x" * 600, "b", [result("t")])
    path = write(tmp_path / "s.jsonl", user("u", None), assistant("a", "u"), assistant("b", "a", call("t")), long)
    model = {**assistant("m", "u"), "message": {**assistant("m", "u")["message"], "model": "m" * 10_000}}
    other = write(tmp_path / "t.jsonl", *({**one, "sessionId": "t"} for one in (model, assistant("n", "m"))))
    async with open_store("sqlite://") as store:
        report = await import_file(store, path)
        assert [problem.reason for problem in report.problems] == [
            "message 'b' refused: record: larger than the limit id_bytes=512"
        ]
        assert report.messages == 3
        assert [message.id for message in await StoredSession(store, CLAUDE).get_history()] == ["u", "a"]
        report = await import_file(store, other)
        assert [problem.reason for problem in report.problems] == [
            "message 'm' refused: model: larger than the limit title_bytes=4096"
        ]
        assert [message.id for message in await StoredSession(store, "claude-code:t").get_history()] == ["n"]
        assert (await verify(store)).problems == []


async def test_result_that_is_too_large_comes_late(tmp_path: Path) -> None:
    """A result that would make a message too large is told, and what else came with it is stored (MEM-4)."""
    start = [user("u", None), assistant("a", "u", call("t"))]
    async with open_store("sqlite://", limits=Limits(message_bytes=3_000)) as store:
        await import_file(store, write(tmp_path / "1.jsonl", *start))
        more = [user("x", "a", [result("t", "x" * 4_000)]), assistant("b", "x")]
        report = await import_file(store, write(tmp_path / "2.jsonl", *start, *more))
        assert ([one.inserted for one in report.sessions], report.skipped) == ([1], 0)
        assert [problem.reason for problem in report.problems] == [
            "message 'a' refused: value: larger than the limit message_bytes=3000"
        ]


async def test_what_is_let_in_can_be_rebuilt(tmp_path: Path) -> None:
    """Whatever a file with all of it has left is stored, verifies and can be rebuilt (MEM-4)."""
    trees = [tree_of(**hostile) for hostile in HOSTILE.values()]
    for number, tree in enumerate(trees):
        tree["session"] = {**tree["session"], "id": str(number)}
    path = tmp_path / "all.json"
    path.write_text(json.dumps(trees), encoding="utf-8")
    async with open_store("sqlite://") as store:
        await import_file(store, path)
        before = await dumps(store)
        assert (await verify(store)).problems == []
        await rebuild(store)
        assert await dumps(store) == before
        assert len(await SessionManager(store).list()) >= 5
