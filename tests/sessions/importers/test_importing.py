from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from eventstore.errors import ImportProblemError, InvalidArgumentError, InvalidMessageError, LimitExceededError
from sessions import Session, SessionManager, open_store
from sessions.importers import Conversation, import_file, importing
from sessions.importers.report import Written
from sessions.store import Store

Write = Callable[..., Awaitable[Written]]


def conversation(name: str, *texts: str, **more: object) -> dict[str, Any]:
    """Return a conversation of an export, one message below the other."""
    nodes = {
        f"{name}{number}": {"message": {"author": {"role": "user"}, "content": {"parts": [text]}}}
        for number, text in enumerate(texts)
    }
    return {"id": name, "title": name.upper(), "mapping": nodes, **more}


def export(folder: Path, *entries: object, name: str = "conversations.json") -> Path:
    """Write an export and return its path."""
    path = folder / name
    path.write_text(json.dumps(list(entries)), encoding="utf-8")
    return path


def write_with(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    """Have conversations written by another function."""
    monkeypatch.setattr(importing, "write_conversation", write)


async def test_report_tells_what_was_done(tmp_path: Path) -> None:
    """The report has the sums, and every session in the order of the source."""
    path = export(tmp_path, conversation("a", "1", "2"), "odd", conversation("b", "3"), conversation("c"))
    async with open_store("sqlite://") as store:
        report = await import_file(store, path)
        info = await SessionManager(store).get("chatgpt:a")
        empty = await SessionManager(store).get("chatgpt:c")
    assert (report.conversations, report.messages, report.skipped) == (3, 3, 1)
    assert (report.overlays, report.repaired_links) == (0, 0)
    assert [(problem.file, problem.index) for problem in report.problems] == [(str(path), 1)]
    assert [(one.session_id, one.title, one.messages, one.inserted) for one in report.sessions] == [
        ("chatgpt:a", "A", 2, 2),
        ("chatgpt:b", "B", 1, 1),
        ("chatgpt:c", "C", 0, 0),
    ]
    assert info is not None
    assert empty is not None
    assert (info.name, info.source) == ("A", "chatgpt")


async def test_newer_export_adds_what_is_new(tmp_path: Path) -> None:
    """A later export of a conversation adds its new messages, and its tip moves to the new one's."""
    async with open_store("sqlite://") as store:
        await import_file(store, export(tmp_path, conversation("a", "1")))
        report = await import_file(store, export(tmp_path, conversation("a", "1", "2", "3")))
        history = await Session.create(store).for_session("chatgpt:a").get_history()
    assert [one.inserted for one in report.sessions] == [2]
    assert [message.text for message in history] == ["1", "2", "3"]


async def test_same_conversation_twice_is_written_once(tmp_path: Path) -> None:
    """A conversation that stands in two files of a folder is inserted by the first and known to the second."""
    export(tmp_path, conversation("a", "1"), conversation("a", "1"), name="1.json")
    export(tmp_path, conversation("a", "1", "2"), name="2.json")
    async with open_store("sqlite://") as store:
        rehearsed = await import_file(store, tmp_path, dry_run=True)
        report = await import_file(store, tmp_path)
    assert [one.inserted for one in report.sessions] == [1, 0, 1]
    assert (report.conversations, report.messages) == (3, 4)
    assert rehearsed == report


async def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    """A dry run reports what the import would, known messages included, and leaves the log as it was."""
    path = export(tmp_path, conversation("a", "1", "2"), conversation("b", "3"), "odd")
    async with open_store("sqlite://") as store:
        await import_file(store, export(tmp_path, conversation("a", "1"), name="older.json"))
        head = await store.log.high_water()
        rehearsed = await import_file(store, path, dry_run=True)
        assert await store.log.high_water() == head
        assert rehearsed == await import_file(store, path)
    assert [one.inserted for one in rehearsed.sessions] == [1, 1]


async def test_strict_import_fails_before_it_writes(tmp_path: Path) -> None:
    """A strict import of an export with a bad entry raises, naming it, and writes none of the good ones."""
    path = export(tmp_path, conversation("a", "1"), "odd")
    async with open_store("sqlite://") as store:
        with pytest.raises(ImportProblemError) as raised:
            await import_file(store, path, strict=True)
        assert await store.log.high_water() == 0
        assert (await import_file(store, export(tmp_path, conversation("a", "1")), strict=True)).conversations == 1
    assert (raised.value.file, raised.value.index) == (str(tmp_path / "conversations.json"), 1)


async def test_damaged_text_is_imported_and_reported(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are imported as U+FFFD and reported, and a strict import raises before it writes."""
    path = tmp_path / "latin.json"
    path.write_bytes(b'[{"id":"a","title":"caf\xe9","mapping":{}},{"id":"b","title":"B","mapping":{}}]')
    async with open_store("sqlite://") as store:
        with pytest.raises(ImportProblemError) as raised:
            await import_file(store, path, strict=True)
        assert await store.log.high_water() == 0
        report = await import_file(store, path)
    assert [one.title for one in report.sessions] == ["caf\ufffd", "B"]
    assert [(problem.file, problem.index) for problem in report.problems] == [(str(path), 0)]
    assert report.skipped == 0
    assert (raised.value.file, raised.value.index) == (str(path), 0)


class Bytes:
    """A path that is bytes."""

    def __fspath__(self) -> bytes:
        """Return the path."""
        return b"path"


@pytest.mark.parametrize(
    "path",
    ["", None, 1, b"path", Bytes(), "a\0b", Path("a\0b")],
    ids=["empty", "None", "number", "bytes", "bytes of a path", "NUL", "NUL in a path"],
)
async def test_what_is_no_path_is_refused(path: Any) -> None:
    """An empty path, a path with a NUL and what is no path at all are refused by the argument's name."""
    async with open_store("sqlite://") as store:
        with pytest.raises(InvalidArgumentError) as raised:
            await import_file(store, path)
    assert raised.value.argument == "path"


async def test_unstorable_conversation_costs_only_itself(tmp_path: Path) -> None:
    """A conversation that the store refuses is reported with its place, and the others are imported."""
    path = export(tmp_path, conversation("a", "1"), conversation("compaction_", "2"), conversation("c", "3"))
    async with open_store("sqlite://") as store:
        report = await import_file(store, path)
    assert [one.source_id for one in report.sessions] == ["a", "c"]
    assert [(problem.index, problem.skipped) for problem in report.problems] == [(1, True)]
    assert report.skipped == 1


async def test_progress_names_each_conversation(tmp_path: Path) -> None:
    """Progress counts up to the number of conversations and names them."""
    calls: list[tuple[int, str]] = []
    path = export(tmp_path, conversation("a", "1"), conversation("b", "2", title=None))
    async with open_store("sqlite://") as store:
        await import_file(store, path, progress=lambda done, name: calls.append((done, name)))
    assert [done for done, _ in calls] == [1, 2]
    assert sorted(name for _, name in calls) == ["A", "b"]


async def test_many_are_written_at_a_time_and_reported_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many conversations are written together, and whichever ends first, the report keeps their order."""
    running: list[str] = []
    most = 0
    full = asyncio.Event()

    async def write(_: Store, one: Conversation, **_more: object) -> Written:
        nonlocal most
        running.append(one.source_id)
        most = max(most, len(running))
        if most == 64:
            full.set()
        # The first ones wait until there are as many as may be, however slowly they are read.
        await asyncio.wait_for(full.wait(), 60)
        await asyncio.sleep(0.05 if one.source_id.endswith("0") else 0.005)
        running.remove(one.source_id)
        return Written(0)

    write_with(monkeypatch, write)
    # Each has two messages, and counts for one more.
    monkeypatch.setattr(importing, "IN_FLIGHT", 64 * 3)
    monkeypatch.setattr(importing, "READ_AHEAD", 16 * 3)
    names = [str(number) for number in range(300)]
    async with open_store("sqlite://") as store:
        report = await import_file(store, export(tmp_path, *(conversation(name, "a", "b") for name in names)))
    assert [one.source_id for one in report.sessions] == names
    assert most == 64


async def test_one_session_is_never_written_by_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations with one id are written one after the other, in the order of the source."""
    written: list[str | None] = []
    running = 0

    async def write(_: Store, one: Conversation, **_more: object) -> Written:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0.001)
        running -= 1
        written.append(one.title)
        return Written(0)

    write_with(monkeypatch, write)
    titles = [str(number) for number in range(20)]
    async with open_store("sqlite://") as store:
        await import_file(store, export(tmp_path, *(conversation("a", title=title) for title in titles)))
    assert written == titles


async def test_error_stops_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the store is raised as it is, and what was still being written is cancelled first."""
    ended: list[str] = []

    async def write(_: Store, one: Conversation, **_more: object) -> Written:
        if one.source_id == "3":
            raise OSError("the disk is full")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(one.source_id)
        return Written(0)

    write_with(monkeypatch, write)
    async with open_store("sqlite://") as store:
        with pytest.raises(OSError, match="the disk is full"):
            await import_file(store, export(tmp_path, *(conversation(str(number)) for number in range(5))))
    assert sorted(ended) == ["0", "1", "2", "4"]


@pytest.mark.parametrize("error", [InvalidMessageError("parts", "odd"), LimitExceededError("depth", 200, "parts")])
async def test_strict_import_raises_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """In a strict import the store's refusal of a conversation is raised instead of reported."""

    async def write(_: Store, __: Conversation, **_more: object) -> Written:
        raise error

    write_with(monkeypatch, write)
    async with open_store("sqlite://") as store:
        with pytest.raises(type(error)):
            await import_file(store, export(tmp_path, conversation("a")), strict=True)


async def test_cancelled_import_leaves_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelling an import cancels what it was writing and leaves nothing running."""
    started = asyncio.Event()

    async def write(_: Store, __: Conversation, **_more: object) -> Written:
        started.set()
        await asyncio.sleep(60)
        return Written(0)

    write_with(monkeypatch, write)
    async with open_store("sqlite://") as store:
        before = asyncio.all_tasks()
        task = asyncio.create_task(import_file(store, export(tmp_path, conversation("a"))))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before
