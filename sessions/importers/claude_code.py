"""Claude Code sessions: a record a line, the conversation and its sidechains as a tree of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sessions.importers.claude_lines import Kind
from sessions.importers.claude_links import Links, Thread
from sessions.importers.claude_parts import NAME
from sessions.importers.claude_reading import Reader, TurnMessages
from sessions.importers.claude_records import File, Rows, in_order, recognises
from sessions.importers.claude_turns import Forks, Turns
from sessions.importers.conversation import Problem, RecordedConversation
from sessions.importers.decoding import UnreadableError
from sessions.importers.format import RecordFormat
from sessions.importers.ids import UNKNOWN
from sessions.importers.links import NONE, in_log_order
from sessions.importers.sources import Source, is_nested
from sessions.importers.times import read_time

_TOLD: Final = ("cwd", "gitBranch", "version", "entrypoint", "sessionId", "agentId", "slug")
"""What a conversation keeps of what its first record says about the session."""


def parse(sources: Sequence[Source]) -> Iterator[RecordedConversation | Problem]:
    """The main conversations of files that belong together, then their sidechains, each by its first record."""
    rows = Rows()
    for source in in_order(sources):
        yield from rows.read(source)
    links = Links(rows)
    turns = Turns(rows, links)
    Forks(rows, turns)
    yield from _Conversations(rows, links, turns).all()


FORMAT: Final = RecordFormat(NAME, recognises, parse)


class _Told:
    """What a conversation's rows come to: its turns in log order, and some rows that stand out."""

    def __init__(self) -> None:
        self.turns = array("i")
        self.first_message = self.last_message = self.first_typed = self.last_assistant = self.leaf = NONE
        self.summaries = 0
        self.unplaced: list[int] = []


class _Conversations:
    def __init__(self, rows: Rows, links: Links, turns: Turns) -> None:
        self._rows = rows
        self._links = links
        self._turns = turns
        self._reader = Reader(rows, links, turns)
        self._told = [_Told() for _ in links.threads]
        for row in range(len(rows)):
            if not rows.kind[row] & Kind.DROPPED:
                self._note(row, rows.kind[row], self._told[links.thread[row]])
        for told in self._told:
            told.leaf = NONE if told.last_message == NONE else turns.place(told.last_message)
        turns.forget_places()
        for row in in_log_order(turns.parent, filter(turns.is_turn, range(len(rows)))):
            self._told[links.thread[row]].turns.append(row)

    def all(self) -> Iterator[RecordedConversation]:
        pairs = zip(self._links.threads, self._told, strict=True)
        wanted = [(thread, told) for thread, told in pairs if thread.is_main or told.turns]
        for thread, told in sorted(wanted, key=lambda one: (not one[0].is_main, one[0].first_row)):
            yield self._conversation(thread, told)

    def _note(self, row: int, kind: int, told: _Told) -> None:
        if not kind & Kind.MESSAGE:
            return
        told.last_message = row
        if told.first_message == NONE:
            told.first_message = row
        if kind & Kind.SUMMARY:
            told.summaries += 1
            if self._turns.place(row) == NONE:
                told.unplaced.append(row)
        elif kind & Kind.ASSISTANT:
            told.last_assistant = row
        elif kind & Kind.PROSE and told.first_typed == NONE:
            told.first_typed = row

    def _conversation(self, thread: Thread, told: _Told) -> RecordedConversation:
        file, reader = self._rows.files[thread.file], self._reader
        first = self._value(thread.first_row)
        return RecordedConversation(
            format=NAME,
            source_id=self._source_id(thread, told, file),
            title=self._title(file, thread.file) if thread.is_main else None,
            opening=None if told.first_typed == NONE else reader.opening(told.first_typed),
            parent_source_id=None if thread.is_main else self._main_of(file),
            messages=TurnMessages(reader, told.turns, told.summaries),
            leaf_id=None if told.leaf == NONE else reader.uuid(told.leaf),
            repaired_links=thread.repaired,
            created_at=read_time(first.get("timestamp")),
            model=self._model(told),
            metadata={NAME: self._about(first, told)},
            file=file.source.name,
        )

    def _source_id(self, thread: Thread, told: _Told, file: File) -> str:
        if thread.is_main:
            return file.session_id or self._reader.uuid(thread.first_row)
        if thread.agent != UNKNOWN:
            return self._rows.agents[thread.agent]
        return self._reader.uuid(told.first_message)

    def _main_of(self, file: File) -> str | None:
        """The id of the conversation that a sidechain in this file belongs to: that of the session's own file."""
        main = self._rows.files[0]
        return main.session_id if is_nested(file.source.name) and main.session_id else file.session_id

    def _title(self, file: File, number: int) -> str | None:
        if file.custom_title or file.ai_title:
            return file.custom_title or file.ai_title
        for summary, leaf in reversed(file.summaries):
            row = self._rows.row_with(leaf)
            if row != UNKNOWN and self._rows.file[row] == number:
                return summary or None
        return None

    def _model(self, told: _Told) -> str | None:
        if told.last_assistant == NONE:
            return None
        message = self._value(told.last_assistant).get("message")
        model = message.get("model") if isinstance(message, dict) else None
        return model if model and isinstance(model, str) else None

    def _about(self, first: dict[str, Any], told: _Told) -> dict[str, Any]:
        about = {key: first[key] for key in _TOLD if first.get(key) is not None}
        if told.unplaced:
            about["summaries"] = [
                {"uuid": self._reader.uuid(row), "summary": self._reader.summary(row)} for row in told.unplaced
            ]
        return about

    def _value(self, row: int) -> dict[str, Any]:
        try:
            return self._reader.value(row)
        except UnreadableError:
            return {}
