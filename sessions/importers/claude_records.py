"""The records of Claude Code files, one by one: of each a few numbers are kept, whatever it says.

Rows are numbered in file order over all files. A uuid that comes again is dropped with all that its record says, but a
record that is well-formed takes the place of one that is not.
"""

from __future__ import annotations

import codecs
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from sessions.importers.claude_lines import (
    TOOL_CALL,
    TOOL_RESULT,
    Kind,
    Record,
    damaged_record,
    kind_of,
    read_record,
)
from sessions.importers.conversation import Problem
from sessions.importers.decoding import is_json
from sessions.importers.ids import UNKNOWN, Ids, Runs
from sessions.importers.kind import HEAD_BYTES
from sessions.importers.lines import examine, read_lines
from sessions.importers.sources import Source, is_nested

CALL: Final = 1
RESULT: Final = 2
AGENT_FILE: Final = "agent-"


class File:
    """What a file says beside its tree."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.session_id: str | None = None
        self.custom_title: str | None = None
        self.ai_title: str | None = None
        self.summaries: list[tuple[str, str]] = []
        # The agent whose file it is, where its records do not say so.
        name = PurePosixPath(source.name).stem
        self.agent = name.removeprefix(AGENT_FILE) if is_nested(source.name) else None


class Rows:
    """The tree records of some files. Every array has a number per row, and some more at their ends."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.uuids, self.sessions, self.agents, self.responses, self.tools = Ids(), Ids(), Ids(), Ids(), Ids()
        self.row_of = array("i")
        self.file, self.session, self.agent = Runs(), Runs(), Runs()
        self.offset, self.length = array("q"), array("I")
        self.uuid, self.parent, self.response = array("i"), array("i"), array("i")
        self.kind = array("H")
        # The tool calls and results, in the order of their rows.
        self.block_kind, self.block_tool, self.block_row = array("b"), array("i"), array("i")

    def __len__(self) -> int:
        """How many there are."""
        return len(self.uuid)

    def blocks_of(self, row: int) -> range:
        """The tool calls and results of a row."""
        first = bisect_left(self.block_row, row)
        return range(first, bisect_right(self.block_row, row, first))

    def row_with(self, uuid: str) -> int:
        """The row of a record, or UNKNOWN."""
        number = self.uuids.find(uuid)
        return self.row_of[number] if number != UNKNOWN else UNKNOWN

    def read(self, source: Source) -> Iterator[Problem]:
        """Add the records of a file; gives what cannot be read, and what was damaged."""
        file = File(source)
        self.files.append(file)
        with source.open() as stream:
            for line in read_lines(stream):
                record = read_record(line.text)
                if record is not None:
                    self._add(record, file, line.offset, len(line.text))
                    continue
                torn = examine(line.text)
                yield Problem(source.name, torn.reason, line=line.number)
                for start, end in torn.records:
                    whole = damaged_record(line.text[start:end])
                    if whole is not None:
                        self._add(whole, file, line.offset + start, end - start)

    def _add(self, record: Record, file: File, offset: int, length: int) -> None:
        if file.session_id is None and isinstance(record.sessionId, str) and record.sessionId:
            file.session_id = record.sessionId
        if not isinstance(record.uuid, str) or not record.uuid:
            _note_title(file, record)
            return
        kind = kind_of(record)
        if file.agent is not None and (record.isSidechain is not False or isinstance(record.agentId, str)):
            kind |= Kind.SIDE
        uuid = self._number(record.uuid)
        first = self.row_of[uuid]
        if first != UNKNOWN:
            if not self.kind[first] & Kind.MALFORMED or kind & Kind.MALFORMED:
                return
            self.kind[first] |= Kind.DROPPED
        self.row_of[uuid] = len(self)
        self._append(record, kind, uuid, len(self.files) - 1, offset, length)

    def _append(self, record: Record, kind: int, uuid: int, file: int, offset: int, length: int) -> None:
        row = len(self)
        self.file.append(row, file)
        self.offset.append(offset)
        self.length.append(length)
        self.uuid.append(uuid)
        self.parent.append(UNKNOWN if record.parentUuid is None else self._number(_text(record.parentUuid)))
        self.kind.append(kind)
        self.session.append(row, _add_text(self.sessions, record.sessionId))
        agent = record.agentId if isinstance(record.agentId, str) and record.agentId else self.files[file].agent
        self.agent.append(row, _add_text(self.agents, agent if kind & Kind.SIDE else None))
        said = record.message
        self.response.append(_add_text(self.responses, said.id if said is not None and kind & Kind.ASSISTANT else None))
        wanted = wanted_blocks(kind)
        for block in said.content if wanted and said is not None and isinstance(said.content, list) else ():
            if block.type == wanted:
                is_call = wanted == TOOL_CALL
                self.block_kind.append(CALL if is_call else RESULT)
                self.block_tool.append(_add_text(self.tools, block.id if is_call else block.tool_use_id))
                self.block_row.append(row)

    def _number(self, uuid: str) -> int:
        number = self.uuids.add(uuid)
        if number == len(self.row_of):
            self.row_of.append(UNKNOWN)
        return number


def wanted_blocks(kind: int) -> str | None:
    """The type of the blocks of a record that are calls or results."""
    if kind & Kind.SUMMARY:
        return None
    return TOOL_CALL if kind & Kind.ASSISTANT else TOOL_RESULT if kind & Kind.USER else None


def recognises(stream: BinaryIO) -> bool:
    """Whether a file holds a record of this format."""
    stream.seek(0)
    head = stream.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8).lstrip()
    # One array over many lines, or in one that may be all of a very large file, is no file of records.
    if head.startswith(b"[") and not is_json(head.partition(b"\n")[0]):
        return False
    stream.seek(0)
    for line in stream:
        if b'"sessionId"' in line and b'"uuid"' in line:
            record = read_record(line.removeprefix(codecs.BOM_UTF8).strip())
            if record is not None and isinstance(record.uuid, str) and isinstance(record.sessionId, str):
                return True
    return False


def in_order(sources: Sequence[Source]) -> list[Source]:
    """Sessions' own files first, then those of subagents, each in the order of their names."""
    return sorted(sources, key=lambda source: (is_nested(source.name), PurePosixPath(source.name).parts))


def _note_title(file: File, record: Record) -> None:
    if record.type == "custom-title" and record.customTitle and isinstance(record.customTitle, str):
        file.custom_title = record.customTitle
    elif record.type == "ai-title" and record.aiTitle and isinstance(record.aiTitle, str):
        file.ai_title = record.aiTitle
    elif record.type == "summary" and isinstance(record.summary, str) and isinstance(record.leafUuid, str):
        file.summaries.append((record.summary, record.leafUuid))


def _add_text(ids: Ids, value: object) -> int:
    return ids.add(value) if isinstance(value, str) and value else UNKNOWN


def _text(value: object) -> str:
    # A parent that is no text names no record: as text it is as unknown as it was.
    return value if isinstance(value, str) else repr(value)
