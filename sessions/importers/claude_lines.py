"""One line of a Claude Code session as far as the tree needs it; what is said in it is skipped, not decoded."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sessions.importers.decoding import UnreadableError, decode

TOOL_CALL: Final = "tool_use"
TOOL_RESULT: Final = "tool_result"
NOT_TYPED: Final = (
    "<command-name>",
    "<local-command",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
    "Caveat: The messages below",
)
"""How texts begin that stand in a user's messages and that no person has typed."""


class Kind:
    """What a record is, as bits of a number."""

    USER: Final = 1
    ASSISTANT: Final = 2
    MESSAGE: Final = 3
    SIDE: Final = 4
    TYPED: Final = 8
    SUMMARY: Final = 16
    BOUNDARY: Final = 32
    RESULTS: Final = 64
    MALFORMED: Final = 128
    DROPPED: Final = 256
    AGAIN: Final = 512
    PROSE: Final = 1024


class Block(msgspec.Struct):
    """A block of a message's content."""

    type: Any = None
    id: Any = None
    tool_use_id: Any = None
    text: Any = None


class Said(msgspec.Struct):
    """The message of a record; content that is neither text nor a list is None."""

    id: Any = None
    content: list[Block] | str | None = None


class Record(msgspec.Struct):
    """A record; a message that is no object is None."""

    type: Any = None
    uuid: Any = None
    parentUuid: Any = None  # noqa: N815 - as it is written in the files, here and below
    isSidechain: Any = None  # noqa: N815
    sessionId: Any = None  # noqa: N815
    agentId: Any = None  # noqa: N815
    isMeta: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    supersedesUuids: Any = None  # noqa: N815
    subtype: Any = None
    customTitle: Any = None  # noqa: N815
    aiTitle: Any = None  # noqa: N815
    summary: Any = None
    leafUuid: Any = None  # noqa: N815
    message: Said | None = None


_decode = msgspec.json.Decoder(Record).decode


def read_record(text: bytes) -> Record | None:
    """The record that a line is; None when it is not just one object in whole UTF-8."""
    try:
        record = _decode(text)
        # What is skipped is not looked at closely.
        if not text.isascii():
            text.decode()
    except msgspec.ValidationError:
        return _unusual(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unusual(text) if b"\\u" in text else None
    return record


def damaged_record(text: bytes) -> Record | None:
    """The record that damaged text is, if it can be read at all."""
    try:
        value = decode(text).value
    except UnreadableError:
        return None
    return _of_value(value) if isinstance(value, dict) else None


def kind_of(record: Record) -> int:
    """What a record is, by itself."""
    kind = Kind.SIDE if record.isSidechain is True else 0
    if record.type not in ("user", "assistant"):
        return kind | Kind.BOUNDARY if record.subtype == "compact_boundary" else kind
    said = record.message
    if said is None:
        return kind | Kind.MALFORMED
    kind |= Kind.USER if record.type == "user" else Kind.ASSISTANT
    if said.content is None:
        kind |= Kind.MALFORMED
    if record.supersedesUuids:
        kind |= Kind.AGAIN
    if record.isCompactSummary is True:
        return kind | Kind.SUMMARY
    if kind & Kind.USER:
        blocks = said.content if isinstance(said.content, list) else []
        if blocks and all(block.type == TOOL_RESULT for block in blocks):
            kind |= Kind.RESULTS
        elif record.isMeta is not True and (text := typed_text(said)) is not None:
            kind |= Kind.TYPED if text.lstrip().startswith("<") else Kind.TYPED | Kind.PROSE
    return kind


def typed_text(said: Said) -> str | None:
    """The first text in a message that a person has typed, if it holds no result of a tool."""
    blocks = said.content if isinstance(said.content, list) else [Block("text", text=said.content)]
    if any(block.type == TOOL_RESULT for block in blocks):
        return None
    texts = (block.text for block in blocks if block.type == "text" and isinstance(block.text, str))
    return next((text for text in texts if text.strip() and not text.lstrip().startswith(NOT_TYPED)), None)


def _unusual(text: bytes) -> Record | None:
    """A record in which something stands that does not stand in others: it is decoded as a whole."""
    try:
        decoded = decode(text)
    except UnreadableError:
        return None
    return _of_value(decoded.value) if isinstance(decoded.value, dict) and decoded.damage is None else None


def _of_value(value: dict[str, Any]) -> Record:
    message = value.get("message")
    told = {name: value.get(name) for name in Record.__struct_fields__ if name != "message"}
    return Record(**told, message=_said(message) if isinstance(message, dict) else None)


def _said(message: dict[str, Any]) -> Said:
    content = message.get("content")
    if isinstance(content, list):
        return Said(message.get("id"), [_block(item) for item in content])
    return Said(message.get("id"), content if isinstance(content, str) else None)


def _block(item: object) -> Block:
    if isinstance(item, dict):
        return Block(**{name: item.get(name) for name in Block.__struct_fields__})
    return Block("text", text=item) if isinstance(item, str) else Block()
