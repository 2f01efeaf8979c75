"""Claude Code files made by hand, and what is read from them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sessions.importers import Problem
from sessions.importers.claude_code import parse
from sessions.importers.conversation import RecordedConversation
from sessions.importers.sources import FileSource

Record = dict[str, Any]
USAGE = {"input_tokens": 10, "output_tokens": 5}


def record(kind: str, uuid: str, parent: str | None, message: object, **more: object) -> Record:
    """Return a record of a session."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s",
        "type": kind,
        "uuid": uuid,
        "timestamp": "2025-07-01T10:00:00.000Z",
        "message": message,
        **more,
    }


def user(uuid: str, parent: str | None, content: object = "Said.", **more: object) -> Record:
    """Return what a person said."""
    return record("user", uuid, parent, {"role": "user", "content": content}, **more)


def assistant(
    uuid: str, parent: str | None, *blocks: object, response: str | None = None, usage: object = USAGE, **more: object
) -> Record:
    """Return a record of a response, which has an id of its own unless one is given."""
    content = list(blocks) or [{"type": "text", "text": "Answered."}]
    said = {"id": response or f"msg_{uuid}", "role": "assistant", "model": "m", "content": content, "usage": usage}
    return record("assistant", uuid, parent, said, **more)


def call(tool: str | None, name: str = "Read", **given: object) -> Record:
    """Return the block of a call."""
    return {"type": "tool_use", "name": name, "input": given, **({} if tool is None else {"id": tool})}


def result(tool: str | None, content: object = "Found.", **more: object) -> Record:
    """Return the block of a result."""
    return {"type": "tool_result", "content": content, **({} if tool is None else {"tool_use_id": tool}), **more}


def lines(records: Iterable[object]) -> bytes:
    """Return the text of a file."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


def write(path: Path, *records: object) -> Path:
    """Write a file, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(records))
    return path


def read(folder: Path, *records: object) -> list[RecordedConversation]:
    """Return the conversations of a file with these records, in which nothing may be wrong."""
    found = read_file(write(folder / "s.jsonl", *records))
    assert not any(isinstance(item, Problem) for item in found)
    return [item for item in found if isinstance(item, RecordedConversation)]


def read_file(path: Path) -> list[RecordedConversation | Problem]:
    """Return what is read in a file."""
    return list(parse([FileSource(path.name, path)]))


def tree(conversation: RecordedConversation) -> dict[str, str | None]:
    """Return the parent of every message, in log order."""
    return {message.id: message.parent_id for message in conversation.messages}


def message_of(conversation: RecordedConversation, key: str) -> dict[str, Any]:
    """Return one message."""
    return next(message.message for message in conversation.messages if message.id == key)


def parts(conversation: RecordedConversation, key: str) -> list[dict[str, Any]]:
    """Return the parts of one message."""
    found: list[dict[str, Any]] = message_of(conversation, key)["parts"]
    return found
