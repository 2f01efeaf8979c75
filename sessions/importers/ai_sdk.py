"""Messages of the AI SDK (UIMessage, versions 4 to 6): lists of messages, bare or wrapped, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sessions.importers.ai_sdk_parts import NAME, Value, is_message, own_time, role_of, to_message
from sessions.importers.conversation import Conversation, Problem, SourceMessage, content_id
from sessions.importers.document import Document, Entry
from sessions.importers.format import Format
from sessions.importers.times import EPOCH

RANDOM_ID: Final = 16
"""From this length on an id is taken for one that was made to be the only one of its kind."""
_ID_BYTES: Final = 200


def recognises(value: object) -> bool:
    """Whether a value is a message of this format, or holds a list in which there is one."""
    if isinstance(value, dict) and is_message(value):
        return True
    listed = _listed(value)
    return listed is not None and any(isinstance(item, dict) and is_message(item) for item in listed)


def parse(document: Document) -> Iterator[Conversation | Problem]:
    """The conversations of a document: each list of messages is one, and so are all messages that stand in none."""
    loose: list[object] = []
    where: Entry | None = None
    for item in document.read():
        if isinstance(item, Problem):
            yield item
            continue
        entry, value = item
        listed = _listed(value)
        if listed is not None:
            yield _conversation(value if isinstance(value, dict) else None, listed, document.file, entry)
        elif isinstance(value, dict) and ("role" in value or is_message(value)):
            loose.append(value)
            where = where or entry
        else:
            yield document.problem(entry, "no message, and no list of messages")
    if loose:
        place = where if len(loose) == 1 and where is not None else Entry(b"")
        yield _conversation(None, loose, document.file, place)


FORMAT: Final = Format(NAME, recognises, parse)


def _listed(value: object) -> list[object] | None:
    """The list of messages that a value is or wraps."""
    if isinstance(value, dict):
        value = None if is_message(value) else value.get("messages")
    return value if isinstance(value, list) else None


def _conversation(wrapper: Value | None, listed: list[object], file: str, entry: Entry) -> Conversation:
    own_id = wrapper.get("id") if wrapper is not None else None
    title = wrapper.get("title") if wrapper is not None else None
    messages = list(_messages(listed))
    times = [time for item in listed if isinstance(item, dict) and (time := own_time(item))]
    rest = {key: item for key, item in (wrapper or {}).items() if key != "messages"}
    return Conversation(
        format=NAME,
        source_id=own_id if isinstance(own_id, str) and own_id else _derived_id(listed),
        title=title if isinstance(title, str) and title else None,
        messages=tuple(messages),
        leaf_id=messages[-1].id if messages else None,
        created_at=min(times, default=EPOCH) if times else None,
        metadata={NAME: rest} if rest else None,
        file=file,
        line=entry.line,
        index=entry.index,
    )


def _messages(listed: list[object]) -> Iterator[SourceMessage]:
    """The messages in a chain; of those whose ids have been used the later ones get another."""
    seen: set[str] = set()
    parent: str | None = None
    for number, item in enumerate(listed):
        value = item if isinstance(item, dict) else {"content": item}
        message_id = _free_id(_own_id(value) or f"{number}-{content_id(item)[:RANDOM_ID]}", seen)
        seen.add(message_id)
        yield SourceMessage(to_message(value, message_id, role_of(value)), parent)
        parent = message_id


def _own_id(value: Value) -> str | None:
    own = value.get("id")
    usable = isinstance(own, str) and own and "\0" not in own and len(own.encode(errors="replace")) <= _ID_BYTES
    return own if usable and isinstance(own, str) else None


def _free_id(wanted: str, seen: set[str]) -> str:
    number = 1
    free = wanted
    while free in seen:
        number += 1
        free = f"{wanted}-{number}"
    return free


def _derived_id(listed: list[object]) -> str:
    """The id of a list without one: the first of a message's that is surely no other's, else one made of the content.

    So a list that has grown since is known again.
    """
    ids: Iterator[Any] = (item.get("id") for item in listed if isinstance(item, dict))
    long = (own for own in ids if isinstance(own, str) and RANDOM_ID <= len(own) <= _ID_BYTES)
    return next(long, None) or content_id(listed)
