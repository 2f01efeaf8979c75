"""The content of Claude Code messages, read again from where their records stand when it is asked for."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Collection, Iterator
from functools import partial
from typing import BinaryIO

from sessions.importers.claude_lines import Kind, read_record, typed_text
from sessions.importers.claude_links import Links
from sessions.importers.claude_parts import Raw, Value, render, text_of
from sessions.importers.claude_records import Rows, wanted_blocks
from sessions.importers.claude_turns import Turns
from sessions.importers.conversation import Content, Overlay, RecordedMessage
from sessions.importers.decoding import UnreadableError, decode
from sessions.importers.ids import UNKNOWN, UUID
from sessions.importers.links import NONE


class Reader:
    """Reads the records of some rows; the file that was read last stays open."""

    def __init__(self, rows: Rows, links: Links, turns: Turns) -> None:
        self._rows = rows
        self._links = links
        self._turns = turns
        self._open: dict[int, BinaryIO] = {}
        weakref.finalize(self, _close, self._open)

    def uuid(self, row: int) -> str:
        """The uuid of a row's record."""
        return self._rows.uuids[self._rows.uuid[row]]

    def record(self, row: int) -> str:
        """The name by which the ledger knows a row's record: its uuid, with its time when that is none.

        A made-up id like `u1` may stand for other records elsewhere, while a copy has the time of its original.
        """
        uuid = self.uuid(row)
        if UUID.fullmatch(uuid.lower()):
            return uuid
        try:
            value = decode(self._text(row)).value
        except UnreadableError:
            return uuid
        time = value.get("timestamp") if isinstance(value, dict) else None
        return f"{uuid} {time}" if isinstance(time, str) else uuid

    def value(self, row: int) -> Value:
        """A row's record; raises UnreadableError when something else stands there by now."""
        value = decode(self._text(row)).value
        if not isinstance(value, dict) or value.get("uuid") != self.uuid(row):
            raise UnreadableError("the file has changed since it was looked through")
        return value

    def opening(self, row: int) -> str | None:
        """What a person typed in a row's record."""
        record = read_record(self._text(row))
        return typed_text(record.message) if record is not None and record.message is not None else None

    def summary(self, row: int) -> str:
        """The text of a summary."""
        return text_of(self.value(row))

    def message(self, turn: int) -> RecordedMessage:
        """A turn as a message whose content is not read yet."""
        turns = self._turns
        parent = turns.parent[turn]
        folded = (row for row in turns.results.of(turn) if turns.turn[row] == turn and row != turn)
        summaries = turns.summaries.get(turn, ())
        return RecordedMessage(
            id=self.uuid(turn),
            parent_id=None if parent == NONE else self.uuid(parent),
            records=tuple(map(self.record, turns.records(turn))),
            results=tuple(map(self.record, folded)),
            overlays=tuple(Overlay(self.uuid(row), partial(self.summary, row)) for row in summaries),
            read=partial(self.content, turn),
        )

    def content(self, turn: int, known: Collection[str] | None = None) -> Content:
        """The message of a turn, of some of its records or of all."""
        turns = self._turns
        records = [row for row in turns.records(turn) if known is None or self.record(row) in known]
        results: list[Value] = []
        outputs: dict[int, list[Value]] = {}
        for row in turns.results.of(turn):
            if known is None or self.record(row) in known:
                result = self.value(row)
                for block, value in self._blocks(row, result):
                    outputs.setdefault(turns.answers[block], []).append(value)
                if turns.turn[row] == turn and row != turn:
                    results.append(result)
        raw = [self._raw(row, outputs) for row in records]
        session_id = self._rows.files[self._rows.file[turn]].session_id
        return render(self._role(turn), raw, results, session_id=session_id, repaired=turn in self._links.repaired)

    def parent_of(self, message_id: str) -> str | None:
        """The id of a message's parent."""
        row = self._rows.row_with(message_id)
        parent = NONE if row == UNKNOWN else self._turns.parent[row]
        return None if parent == NONE else self.uuid(parent)

    def _text(self, row: int) -> bytes:
        file = self._rows.file[row]
        if file not in self._open:
            _close(self._open)
            self._open[file] = self._rows.files[file].source.open()
        stream = self._open[file]
        stream.seek(self._rows.offset[row])
        return stream.read(self._rows.length[row])

    def _raw(self, row: int, outputs: dict[int, list[Value]]) -> Raw:
        turns, blocks = self._turns, self._rows.blocks_of(row)
        if self._rows.kind[row] & Kind.ASSISTANT:
            given = [None if block in turns.dropped else outputs.get(block, ()) for block in blocks]
            return Raw(self.value(row), outputs=given)
        return Raw(self.value(row), answers=[turns.answers[block] != NONE for block in blocks])

    def _blocks(self, row: int, value: Value) -> Iterator[tuple[int, Value]]:
        """The calls or results of a row with their blocks."""
        wanted = wanted_blocks(self._rows.kind[row])
        blocks = [one for one in value["message"]["content"] if isinstance(one, dict) and one.get("type") == wanted]
        return zip(self._rows.blocks_of(row), blocks, strict=False)

    def _role(self, turn: int) -> str:
        kind = self._rows.kind[turn]
        return "assistant" if kind & Kind.ASSISTANT else "tool" if kind & Kind.RESULTS else "user"


class TurnMessages:
    """The messages of one conversation, in log order."""

    def __init__(self, reader: Reader, turns: array[int], overlays: int) -> None:
        self._reader = reader
        self._turns = turns
        self.overlays = overlays

    def __len__(self) -> int:
        """How many messages there are."""
        return len(self._turns)

    def __iter__(self) -> Iterator[RecordedMessage]:
        """Each message."""
        return map(self._reader.message, self._turns)

    def parent_of(self, message_id: str) -> str | None:
        """The id of a message's parent; None for a root and for an unknown message."""
        return self._reader.parent_of(message_id)


def _close(streams: dict[int, BinaryIO]) -> None:
    while streams:
        streams.popitem()[1].close()
