"""The import itself: conversations are read in a thread, and many are written at a time, in the order of the source."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from eventstore.errors import (
    ImportProblemError,
    InvalidArgumentError,
    InvalidMessageError,
    LimitExceededError,
    ReservedIdError,
)
from sessions.importers.conversation import Conversation, Problem
from sessions.importers.format import Format
from sessions.importers.formats import choose_formats, conversations
from sessions.importers.report import ImportedSession, ImportReport
from sessions.importers.writing import write_conversation
from sessions.session import Session
from sessions.store import Store

IN_FLIGHT: Final = 64
"""How many conversations are being written at a time, so that they share write groups."""
READ_AHEAD: Final = 16
"""How many conversations one visit to the reading thread brings."""
REFUSALS: Final = (InvalidArgumentError, InvalidMessageError, LimitExceededError, ReservedIdError)
"""What the store says to a conversation that it cannot hold; the others are imported all the same."""

Progress = Callable[[int, str], object]
Write = Callable[[Conversation], Awaitable[int]]


async def import_file(
    store: Store,
    path: str | os.PathLike[str],
    *,
    format: str = "auto",  # noqa: A002 - the name that the command line and the exporters use too
    strict: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import the conversations of a file, a folder or a zip; what the store holds already is not written again.

    `format` is the name of a format, or `auto` to tell each file's by what it holds. What cannot be read, or not be
    stored, is left out and reported; with `strict` it raises ImportProblemError, before anything is written when it
    cannot be read. `dry_run` reports the same numbers and writes nothing. `progress` is called with the number of
    conversations done and the title, or else the id, of the latest. Problems and sessions are reported in the order
    of the source, and name a file by the path as it was given, below a folder by the path within it, and in a zip by
    the member behind the zip's path. Raises InvalidArgumentError for an unknown format or what is no path, and OSError
    for a path that cannot be opened.
    """
    formats = choose_formats(format)
    source = _checked_path(path)
    if strict:
        await asyncio.to_thread(_refuse_problems, source, formats)
    write = _Rehearsal(store).write if dry_run else partial(write_conversation, store)
    run = _Import(write, progress or _ignore, strict)
    return _report(await run.of(_read(conversations(source, formats))))


def _checked_path(path: object) -> str:
    given = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(given, str):
        raise InvalidArgumentError("path", f"must be a path as text or os.PathLike, not {type(path).__name__}")
    if not given:
        raise InvalidArgumentError("path", "must not be empty")
    if "\0" in given:
        raise InvalidArgumentError("path", "must not hold a NUL")
    return given


class _Import:
    """One import while it runs: what is being written, and what came of each conversation in the source's order."""

    def __init__(self, write: Write, progress: Progress, strict: bool) -> None:  # noqa: FBT001 - one private caller
        self._write = write
        self._progress = progress
        self._strict = strict
        self._done = 0
        self._pending: set[asyncio.Task[ImportedSession | Problem]] = set()
        self._latest: dict[str, asyncio.Task[ImportedSession | Problem]] = {}

    async def of(self, source: AsyncIterator[Conversation | Problem]) -> list[ImportedSession | Problem]:
        """Write what the source gives; the first unexpected error stops the rest and is raised."""
        outcomes: list[asyncio.Task[ImportedSession | Problem] | Problem] = []
        try:
            async for found in source:
                if isinstance(found, Problem):
                    outcomes.append(found)
                    continue
                await self._wait_for_fewer_than(IN_FLIGHT)
                outcomes.append(self._start(found))
            await self._wait_for_fewer_than(1)
        finally:
            for task in self._pending:
                task.cancel()
            await asyncio.gather(*self._pending, return_exceptions=True)
        return [outcome if isinstance(outcome, Problem) else outcome.result() for outcome in outcomes]

    def _start(self, conversation: Conversation) -> asyncio.Task[ImportedSession | Problem]:
        session_id = conversation.session_id
        task = asyncio.create_task(self._take(conversation, self._latest.get(session_id)))
        self._latest[session_id] = task
        self._pending.add(task)
        return task

    async def _wait_for_fewer_than(self, number: int) -> None:
        while len(self._pending) >= number:
            done, _ = await asyncio.wait(self._pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._pending -= done

    async def _take(
        self, conversation: Conversation, before: asyncio.Task[ImportedSession | Problem] | None
    ) -> ImportedSession | Problem:
        if before is not None:
            # The same session twice in one source: the second must find what the first wrote.
            await asyncio.wait([before])
        try:
            inserted = await self._write(conversation)
        except REFUSALS as error:
            if self._strict:
                raise
            return Problem(
                conversation.file, f"refused: {error}", line=conversation.line, index=conversation.index, skipped=True
            )
        self._done += 1
        self._progress(self._done, conversation.title or conversation.source_id)
        return ImportedSession(
            session_id=conversation.session_id,
            source_id=conversation.source_id,
            title=conversation.title,
            parent_session_id=conversation.parent_session_id,
            messages=len(conversation.messages),
            overlays=len(conversation.overlays),
            repaired_links=conversation.repaired_links,
            inserted=inserted,
        )


class _Rehearsal:
    """Counts what would be inserted, and writes nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, set[str]] = {}

    async def write(self, conversation: Conversation) -> int:
        session_id = conversation.session_id
        if session_id not in self._known:
            session = Session.create(self._store).for_session(session_id)
            self._known[session_id] = {node.message.id async for node in session.tree()}
        new = {message.id for message in conversation.messages} - self._known[session_id]
        self._known[session_id] |= new
        return len(new)


async def _read(found: Iterator[Conversation | Problem]) -> AsyncIterator[Conversation | Problem]:
    while batch := await asyncio.to_thread(_take, found):
        for item in batch:
            yield item


def _take(found: Iterator[Conversation | Problem]) -> list[Conversation | Problem]:
    return list(islice(found, READ_AHEAD))


def _refuse_problems(source: str, formats: list[Format]) -> None:
    for found in conversations(source, formats):
        if isinstance(found, Problem):
            raise ImportProblemError(found.file, found.reason, found.line, found.index)


def _ignore(done: int, name: str) -> None:
    """Takes progress that nobody asked for."""


def _report(outcomes: list[ImportedSession | Problem]) -> ImportReport:
    sessions = [outcome for outcome in outcomes if isinstance(outcome, ImportedSession)]
    problems = [outcome for outcome in outcomes if isinstance(outcome, Problem)]
    return ImportReport(
        conversations=len(sessions),
        skipped=sum(problem.skipped for problem in problems),
        messages=sum(session.messages for session in sessions),
        overlays=sum(session.overlays for session in sessions),
        repaired_links=sum(session.repaired_links for session in sessions),
        problems=problems,
        sessions=sessions,
    )
