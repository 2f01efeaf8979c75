"""Verification finds whatever somebody with a SQL prompt may have done to a store, and finds nothing otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventstore.errors import SessionNotFoundError
from projections import SearchIndex
from replay import Report, verify, verifying
from sessions import SessionManager, open_store
from tests.eventstore.support import file_at
from tests.fixtures.golden.write_log import clock, tell_the_story
from tests.replay.tamperings import CHANGED_EVENTS, CHANGED_PROJECTIONS, CHANGED_STREAMS

TRIGGERS = ("events_no_update", "events_no_delete", "events_no_replace")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed store with several sessions in it, made once and only copied."""
    folder = tmp_path_factory.mktemp("original")

    async def write() -> None:
        async with open_store(file_at(folder), clock=clock()) as store:
            await tell_the_story(store)
            # So that there is something in the text index to be tampered with.
            await store.log.database.write(SearchIndex().catch_up)

    asyncio.run(write())
    return folder / "log.db"


@pytest.fixture
def file(original: Path, tmp_path: Path) -> Path:
    """Return a store of its own to tamper with."""
    path = tmp_path / "log.db"
    shutil.copy(original, path)
    return path


GUARDS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"


@contextlib.contextmanager
def tampering(path: Path) -> Iterator[sqlite3.Connection]:
    """Change a database file from outside, past its triggers, which are there again afterwards."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        guards = connection.execute(GUARDS).fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.execute(sql)
        connection.commit()


async def report_on(path: Path, session_id: str | None = None) -> Report:
    """Open a store and verify it."""
    async with open_store(f"sqlite:///{path}") as store:
        return await verify(store, session_id)


def kinds(report: Report) -> set[str]:
    """Return the kinds of problems found."""
    return {problem.kind for problem in report.problems}


async def test_untouched_store_is_clean(file: Path) -> None:
    """A store that nobody touched has no problem, and all its events were looked at."""
    report = await report_on(file)
    assert report == Report(ok=True, events=17, erased=0, problems=[])


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_missing_trigger_is_found(file: Path, trigger: str) -> None:
    """A log whose rows could be changed, since a trigger is gone, is reported though nothing was changed yet."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.commit()
    [problem] = (await report_on(file)).problems
    assert (problem.kind, trigger in problem.detail) == ("guard", True)


@pytest.mark.parametrize("url", ["file", "memory"])
async def test_empty_store_is_clean(url: str, tmp_path: Path) -> None:
    """An empty store verifies at once."""
    async with open_store(file_at(tmp_path) if url == "file" else "sqlite://") as store:
        assert await verify(store) == Report(ok=True, events=0, erased=0, problems=[])


async def test_store_in_memory_is_verified_too() -> None:
    """A store in memory is verified like one in a file."""
    async with open_store("sqlite://") as store:
        await tell_the_story(store)
        assert (await verify(store)).ok


@pytest.mark.parametrize(("change", "found"), CHANGED_EVENTS.values(), ids=CHANGED_EVENTS)
async def test_changed_log_is_found(file: Path, change: str, found: set[str]) -> None:
    """Whatever is changed, dropped, swapped or added in the log is found, and told as what it is."""
    with tampering(file) as connection:
        connection.executescript(change)
    report = await report_on(file)
    assert not report.ok
    assert found <= kinds(report)
    assert kinds(report) <= {*found, "projection", "stream"}


async def test_problem_says_where(file: Path) -> None:
    """A problem names stream, version and position, and never the content."""
    with tampering(file) as connection:
        connection.execute("UPDATE events SET payload = replace(payload, 'Hello', 'secret') WHERE position = 2")
    report = await report_on(file)
    first = report.problems[0]
    assert (first.kind, first.stream_id, first.version, first.position) == ("payload", "chat-1", 2, 2)
    assert "secret" not in str(report)


async def test_one_changed_event_is_one_problem_of_the_chain(file: Path) -> None:
    """After a changed event the chain is followed on from what is stored, so that the next ones are not blamed."""
    with tampering(file) as connection:
        connection.execute("UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 2")
    problems = [problem for problem in (await report_on(file)).problems if problem.kind == "chain"]
    assert [(problem.stream_id, problem.version) for problem in problems] == [("chat-1", 2)]


@pytest.mark.parametrize("change", CHANGED_STREAMS.values(), ids=CHANGED_STREAMS)
async def test_changed_stream_row_is_found(file: Path, change: str) -> None:
    """A stream's row that does not say what its events say is found."""
    with tampering(file) as connection:
        connection.executescript(change)
    report = await report_on(file)
    assert not report.ok
    assert kinds(report) & {"stream", "chain"}


@pytest.mark.parametrize(("name", "change"), CHANGED_PROJECTIONS.values(), ids=CHANGED_PROJECTIONS)
async def test_changed_projection_is_found(file: Path, name: str, change: str) -> None:
    """A row or token of a projection that is changed, lost or added is found, and the log is not blamed."""
    with tampering(file) as connection:
        connection.executescript(change)
    report = await report_on(file)
    assert not report.ok
    assert kinds(report) == {"projection"}
    # What the text index has yet to take in is told from the rows of the tree.
    names = (name, "search_index") if name == "message_tree" else (name,)
    assert any(problem.detail.startswith(name) for problem in report.problems)
    assert all(problem.detail.startswith(names) for problem in report.problems)


async def test_cached_estimates_are_no_part_of_the_truth(file: Path) -> None:
    """Token estimates are caches: other numbers in them are no problem."""
    with tampering(file) as connection:
        connection.execute("UPDATE assistant_messages SET tokens = tokens + 7, path_tokens = 0")
    assert (await report_on(file)).ok


async def test_one_session_alone(file: Path) -> None:
    """Verifying one session looks at its events alone, and is not troubled by another's."""
    with tampering(file) as connection:
        connection.execute("UPDATE events SET payload = replace(payload, 'Hello', 'Hullo') WHERE position = 2")
        connection.execute("UPDATE assistant_messages SET role = 'x' WHERE session_id = 'chat-1' AND id = 'a2'")
    other = await report_on(file, "grüße/中 1")
    assert other == Report(ok=True, events=5, erased=0, problems=[])
    chat = await report_on(file, "chat-1")
    assert (chat.events, kinds(chat)) == (9, {"payload", "projection"})
    assert {problem.stream_id for problem in chat.problems} <= {"chat-1", None}


async def test_unknown_session_is_refused(file: Path) -> None:
    """A session without events cannot be verified."""
    with pytest.raises(SessionNotFoundError):
        await report_on(file, "nobody")


async def test_erased_payload_still_verifies(file: Path) -> None:
    """An event whose payload and salt were blanked keeps its place in the chain, and is counted as erased."""
    with tampering(file) as connection:
        connection.execute("UPDATE events SET payload = NULL, salt = NULL WHERE position = 17")
    report = await report_on(file)
    assert (report.events, report.erased) == (17, 1)
    assert not kinds(report) & {"payload", "chain", "version", "stream"}


async def test_writers_may_go_on(tmp_path: Path) -> None:
    """A verification beside writers sees one state of everything, and finds nothing wrong."""
    async with open_store(file_at(tmp_path)) as store:
        sessions = [SessionManager(store).get_session(f"s{n}") for n in range(5)]
        done = False

        async def write(number: int) -> int:
            count = 0
            while not done:
                message = {"id": f"m{count}", "role": "user", "parts": [{"type": "text", "text": f"word{count}"}]}
                await sessions[number].append_message(message)
                count += 1
            return count

        writing = [asyncio.ensure_future(write(number)) for number in range(5)]
        reports = [await verify(store, session) for session in (None, "s1", None, "s2", None)]
        done = True
        counts = await asyncio.gather(*writing)
        assert [report.problems for report in reports] == [[]] * 5
        assert sum(counts) > 50
        assert (await verify(store)).events == sum(counts)


async def test_progress_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`progress` hears rising positions up to the last one, and the last one with each."""
    monkeypatch.setattr(verifying, "PAGE", 4)
    heard: list[tuple[int, int]] = []
    async with open_store(f"sqlite:///{file}") as store:
        await verify(store, progress=lambda position, end: heard.append((position, end)))
    assert heard == [(4, 17), (8, 17), (12, 17), (16, 17), (17, 17)]


async def test_verifying_changes_nothing(file: Path) -> None:
    """A verification writes nothing to the store, whatever it finds."""
    with tampering(file) as connection:
        connection.execute("UPDATE assistant_messages SET role = 'tool' WHERE id = 'a1'")
    async with open_store(f"sqlite:///{file}") as store:
        before = await store.log.database.on_writer(lambda connection: connection.total_changes)
        data_version = await store.log.database.data_version()
        await verify(store)
        assert await store.log.database.on_writer(lambda connection: connection.total_changes) == before
        assert await store.log.database.data_version() == data_version
