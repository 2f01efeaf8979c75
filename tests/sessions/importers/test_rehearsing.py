"""A dry run tells what the import then does, whatever there is in the store and in the files."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from eventstore.errors import EventStoreError
from sessions import ImportReport, Limits, Session, SessionManager, Store, StoredSession, import_file, open_store
from tests.sessions.exporters.exports import branching, exported
from tests.sessions.exporters.test_json_tree import tree_of
from tests.sessions.importers.claude import assistant, call, record, result, user, write
from tests.sessions.importers.test_importing import conversation, export
from tests.sessions.talk import said

Story = Callable[[Store, Path], Awaitable[None]]
CLAUDE = "claude-code:s"
CHAIN = [user("u", None), assistant("a", "u"), user("v", "a")]
ASKED = [user("u", None), assistant("a", "u", call("t"))]


def summary(uuid: str, text: object = "Summary.") -> list[dict[str, Any]]:
    """Return the records of a summary of what stands before it."""
    boundary = record("system", f"{uuid}-b", None, None, subtype="compact_boundary")
    return [boundary, user(uuid, f"{uuid}-b", text, isCompactSummary=True)]


async def compared(store: Store, path: Path) -> ImportReport:
    """Return the report of an import after that of a dry run, which must be the same and write nothing."""
    head = await store.log.high_water()
    rehearsed = await import_file(store, path, dry_run=True)
    assert await store.log.high_water() == head
    report = await import_file(store, path)
    assert rehearsed == report
    return report


@pytest.mark.parametrize("gone", ["message", "session"])
@pytest.mark.parametrize("name", ["chatgpt", "json", "ai-sdk", "claude-code"])
async def test_dry_run_knows_what_was_deleted(tmp_path: Path, name: str, gone: str) -> None:
    """A message that was deleted here is not new to a dry run, and a session that was deleted is refused by it."""
    path = tmp_path / "file"
    if name == "chatgpt":
        export(tmp_path, conversation("s", "1", "2", "3"), name=path.name)
    elif name == "json":
        path.write_text(json.dumps(tree_of()), encoding="utf-8")
    elif name == "ai-sdk":
        path.write_text(json.dumps({"id": "s", "messages": [said("m1"), said("m2")]}), encoding="utf-8")
    else:
        write(path, *CHAIN)
    async with open_store("sqlite://") as store:
        (session,) = (await compared(store, path)).sessions
        nodes = [node async for node in Session.create(store).for_session(session.session_id).tree()]
        if gone == "message":
            await StoredSession(store, session.session_id).delete_messages([nodes[1].message.id])
        else:
            await SessionManager(store).delete(session.session_id)
        report = await compared(store, path)
    if gone == "message":
        assert [one.inserted for one in report.sessions] == [0]
    else:
        assert (report.sessions, report.skipped) == ([], 1)


async def cleared(store: Store, folder: Path) -> None:
    """Import a session and clear it."""
    await import_file(store, write(folder.parent / "before.jsonl", *CHAIN))
    await Session.create(store).for_session(CLAUDE).clear_messages()
    write(folder / "s.jsonl", *CHAIN)


async def written_here(store: Store, folder: Path) -> None:
    """Use the ids of an import for messages of one's own, one of which is deleted."""
    session = Session.create(store).for_session(CLAUDE)
    await session.append_messages([said("a", "ours"), said("v", "gone")])
    await session.delete_messages(["v"])
    write(folder / "s.jsonl", *CHAIN)


async def refused_messages(_: Store, folder: Path) -> None:
    """Write files with messages that the store refuses."""
    write(folder / "s.jsonl", *CHAIN, assistant("compaction_x", "v"), user("w", "compaction_x", "x" * 4_000))
    export(folder, conversation("a", "1"), conversation("b", "x" * 4_000), conversation("compaction_", "3"))


async def twice_with_made_up_ids(_: Store, folder: Path) -> None:
    """Write two files of one session whose records have the same ids at other times."""
    for day in (1, 2):
        records = [{**one, "timestamp": f"2025-07-0{day}T10:00:00.000Z"} for one in CHAIN]
        write(folder / f"{day}.jsonl", *records, *([user("w", "v")] if day == 2 else []))


async def summaries(store: Store, folder: Path) -> None:
    """Have summaries that come with their messages, later, blank, too large, and of what was deleted."""
    await import_file(store, write(folder.parent / "before.jsonl", *CHAIN))
    write(folder / "1.jsonl", *CHAIN, *summary("c1"), user("w", "c1"), *summary("c2", " "), *summary("c3", "x" * 4_000))
    write(folder / "2.jsonl", *CHAIN, *summary("c1"), *summary("c4"), user("w", "c1"), user("x", "c4"))


async def summary_of_what_was_deleted(store: Store, folder: Path) -> None:
    """Have a summary come to messages that were deleted."""
    await import_file(store, write(folder.parent / "before.jsonl", *CHAIN))
    await Session.create(store).for_session(CLAUDE).delete_messages(["u", "a", "v"])
    write(folder / "s.jsonl", *CHAIN, *summary("c1"))


async def summaries_of_what_came_before(_: Store, folder: Path) -> None:
    """Write two files of one session, the summary in the second."""
    write(folder / "1.jsonl", *CHAIN)
    write(folder / "2.jsonl", *CHAIN, *summary("c1"))
    write(folder / "3.jsonl", *CHAIN, *summary("c1"))


async def completed(store: Store, folder: Path) -> None:
    """Have results come to calls that are held, one of them too large."""
    asked = [*ASKED, assistant("b", "a", call("z"))]
    await import_file(store, write(folder.parent / "before.jsonl", *asked))
    write(folder / "1.jsonl", *asked, user("x", "b", [result("t")]), user("y", "x", [result("z", "x" * 4_000)]))
    write(folder / "2.jsonl", user("x", None, [result("t")]))


async def odd_trees(_: Store, folder: Path) -> None:
    """Have exports of trees with compactions that cannot be stored, one tree in two files."""
    ends = {"from_message_id": "m1", "to_message_id": "m2"}
    good, other = {"id": "k", "summary": "S", **ends}, {"id": "l", "summary": "S", **ends}
    apart = [{"parent_id": None, "message": said("m1")}, {"parent_id": None, "message": said("m2")}]
    trees = [
        tree_of(),
        tree_of(compactions=[good, good, {**other, "summary": " "}]),
        tree_of(compactions=[good, other], messages=[*tree_of()["messages"], {"message": said("m3")}]),
        tree_of(session={"id": "t", "name": "T"}, messages=apart),
        tree_of(session={"id": "t", "name": "T"}, compactions=[good]),
        tree_of(session={"id": "p", "name": "P", "model": "m" * 10_000}),
    ]
    for number, tree in enumerate(trees):
        (folder / f"{number}.json").write_text(json.dumps(tree), encoding="utf-8")


async def compactions_of_what_was_deleted(store: Store, folder: Path) -> None:
    """Export a session with a compaction, import it, and delete all that its compaction stands for."""
    await branching(store)
    path = folder / "walk.json"
    path.write_text(await exported(store, "walk", "json"), encoding="utf-8")
    await import_file(store, path)
    await StoredSession(store, "json:walk").delete_messages(["a1", "u2"])


STORIES: list[tuple[Story, int, int]] = [
    (cleared, 3, 0),
    (written_here, 1, 0),
    (refused_messages, 4, 4),
    (twice_with_made_up_ids, 4, 0),
    (summaries, 2, 2),
    (summary_of_what_was_deleted, 0, 1),
    (summaries_of_what_came_before, 3, 0),
    (completed, 0, 1),
    (odd_trees, 5, 4),
    (compactions_of_what_was_deleted, 0, 1),
]


@pytest.mark.parametrize(("story", "inserted", "problems"), STORIES, ids=[story.__name__ for story, _, _ in STORIES])
async def test_dry_run_is_as_the_import(tmp_path: Path, story: Story, inserted: int, problems: int) -> None:
    """What a dry run reports, numbers and problems, is what its import reports, the first time and the second."""
    folder = tmp_path / "in"
    folder.mkdir()
    async with open_store("sqlite://", limits=Limits(message_bytes=3_000)) as store:
        await story(store, folder)
        report = await compared(store, folder)
        assert sum(one.inserted for one in report.sessions) == inserted
        assert len(report.problems) == problems, report.problems
        again = await compared(store, folder)
        assert sum(one.inserted for one in again.sessions) == 0


STRICT = [summaries, completed, compactions_of_what_was_deleted]


@pytest.mark.parametrize("story", STRICT, ids=lambda one: one.__name__)
async def test_strict_dry_run_raises_what_the_import_raises(tmp_path: Path, story: Story) -> None:
    """A strict dry run raises what the strict import raises."""
    folder = tmp_path / "in"
    folder.mkdir()
    told: list[str] = []
    async with open_store("sqlite://", limits=Limits(message_bytes=3_000)) as store:
        await story(store, folder)
        for dry_run in (True, False):
            with pytest.raises(EventStoreError) as raised:
                await import_file(store, folder, strict=True, dry_run=dry_run)
            told.append(str(raised.value))
    assert told[0] == told[1]
