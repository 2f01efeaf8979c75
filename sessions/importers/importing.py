"""The import itself: conversations are read in a thread, and many are written at a time, in the order of the source."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from eventstore.errors import ImportProblemError, InvalidArgumentError
from sessions.importers.conversation import Conversation, Problem, RecordedConversation, problem_of
from sessions.importers.decoding import UnreadableError
from sessions.importers.format import AnyFormat, Found
from sessions.importers.formats import choose_formats, conversations
from sessions.importers.recording import write_recorded
from sessions.importers.refusing import REFUSALS
from sessions.importers.rehearsing import Rehearsal
from sessions.importers.report import ImportedSession, ImportReport, Written
from sessions.importers.writing import write_conversation
from sessions.store import Store

IN_FLIGHT: Final = 3_000
"""Messages, about, of the conversations that are being written at a time, so that these share write groups."""
READ_AHEAD: Final = 750
"""Messages, about, of the conversations that one visit to the reading thread brings."""
Progress = Callable[[int, str], object]
Write = Callable[[Conversation], Awaitable[Written]]
WriteRecorded = Callable[[RecordedConversation], Awaitable[Written]]
Outcome = ImportedSession | Problem


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
    cannot be read. `dry_run` reports what the import would and writes nothing. `progress` is called with the number of
    conversations done and the title, or else the id, of the latest. Problems and sessions are reported in the order
    of the source, and name a file by the path as it was given, below a folder by the path within it, and in a zip by
    the member behind the zip's path. Raises InvalidArgumentError for an unknown format or what is no path, and OSError
    for a path that cannot be opened.
    """
    formats = choose_formats(format)
    source = _checked_path(path)
    if strict:
        await asyncio.to_thread(_refuse_problems, source, formats)
    write: Write = partial(write_conversation, store, strict=strict)
    record: WriteRecorded = partial(write_recorded, store, strict=strict)
    if dry_run:
        rehearsal = Rehearsal(store, strict=strict)
        write, record = rehearsal.write, rehearsal.write_recorded
    run = _Import(write, record, progress or _ignore, strict=strict)
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
    """One import while it runs: what is being written, and what came of each conversation in the source's order.

    Conversations share write groups; those that the ledger is asked about wait for all that were read before them.
    """

    def __init__(self, write: Write, record: WriteRecorded, progress: Progress, *, strict: bool) -> None:
        self._write = write
        self._record = record
        self._progress = progress
        self._strict = strict
        self._done = 0
        # How long each conversation is, by the task that writes it.
        self._pending: dict[asyncio.Task[list[Outcome]], int] = {}
        self._latest: dict[str, asyncio.Task[list[Outcome]]] = {}

    async def of(self, source: AsyncIterator[Found]) -> list[Outcome]:
        """Write what the source gives; the first unexpected error stops the rest and is raised."""
        outcomes: list[asyncio.Task[list[Outcome]] | Problem] = []
        try:
            async for found in source:
                if isinstance(found, Problem):
                    outcomes.append(found)
                    continue
                await self._wait_for_less_than(IN_FLIGHT)
                outcomes.append(self._start(found))
                if isinstance(found, RecordedConversation):
                    await self._wait_for_less_than(1)
            await self._wait_for_less_than(1)
        finally:
            for task in self._pending:
                task.cancel()
            await asyncio.gather(*self._pending, return_exceptions=True)
        results = ([outcome] if isinstance(outcome, Problem) else outcome.result() for outcome in outcomes)
        return [outcome for result in results for outcome in result]

    def _start(self, conversation: Conversation | RecordedConversation) -> asyncio.Task[list[Outcome]]:
        session_id = conversation.session_id
        task = asyncio.create_task(self._take(conversation, self._latest.get(session_id)))
        self._latest[session_id] = task
        self._pending[task] = _length(conversation)
        return task

    async def _wait_for_less_than(self, messages: int) -> None:
        while sum(self._pending.values()) >= messages:
            done, _ = await asyncio.wait(self._pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
                del self._pending[task]

    async def _take(
        self, conversation: Conversation | RecordedConversation, before: asyncio.Task[list[Outcome]] | None
    ) -> list[Outcome]:
        if before is not None:
            # The same session twice in one source: the second must find what the first wrote.
            await asyncio.wait([before])
        try:
            written = await self._written(conversation)
        except (UnreadableError, *REFUSALS) as error:
            if self._strict:
                raise
            return [problem_of(conversation, f"refused: {error}", skipped=True)]
        self._done += 1
        self._progress(self._done, conversation.title or conversation.source_id)
        imported = ImportedSession(
            session_id=conversation.session_id,
            source_id=conversation.source_id,
            title=conversation.title,
            parent_session_id=written.parent_session_id,
            messages=len(conversation.messages),
            overlays=_overlays(conversation) - written.left_out,
            repaired_links=conversation.repaired_links,
            inserted=written.inserted,
        )
        return [*written.problems, imported]

    async def _written(self, conversation: Conversation | RecordedConversation) -> Written:
        if isinstance(conversation, RecordedConversation):
            return await self._record(conversation)
        return await self._write(conversation)


def _length(conversation: Conversation | RecordedConversation) -> int:
    """How many messages it has, and something for itself; one that is written alone counts as little."""
    return 1 if isinstance(conversation, RecordedConversation) else 1 + len(conversation.messages)


def _overlays(conversation: Conversation | RecordedConversation) -> int:
    if isinstance(conversation, RecordedConversation):
        return conversation.messages.overlays
    return len(conversation.overlays)


async def _read(found: Iterator[Found]) -> AsyncIterator[Found]:
    while batch := await asyncio.to_thread(_take, found):
        for item in batch:
            yield item


def _take(found: Iterator[Found]) -> list[Found]:
    batch: list[Found] = []
    size = 0
    for item in found:
        batch.append(item)
        size += 1 if isinstance(item, Problem) else _length(item)
        # What is read ahead of one that may be very large is held in memory beside it.
        if size >= READ_AHEAD or isinstance(item, RecordedConversation):
            break
    return batch


def _refuse_problems(source: str, formats: Sequence[AnyFormat]) -> None:
    for found in conversations(source, formats):
        if isinstance(found, Problem):
            raise ImportProblemError(found.file, found.reason, found.line, found.index)
        if isinstance(found, RecordedConversation):
            try:
                for message in found.messages:
                    message.read(None)
            except UnreadableError as error:
                raise ImportProblemError(found.file, error.reason) from None


def _ignore(done: int, name: str) -> None:
    """Takes progress that nobody asked for."""


def _report(outcomes: Sequence[Outcome]) -> ImportReport:
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
