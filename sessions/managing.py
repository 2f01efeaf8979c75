"""The decisions about whole sessions: create, rename, delete, fork, split, usage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from eventstore.decoding import decode_json
from eventstore.errors import (
    InvalidArgumentError,
    MessageNotFoundError,
    SessionDeletedError,
    SessionExistsError,
    SessionNotFoundError,
)
from eventstore.events import (
    ContextBlockSet,
    Event,
    MessageAppended,
    PromptFrozen,
    SessionCreated,
    SessionDeleted,
    SessionEnded,
    SessionForked,
    SessionRenamed,
    UsageAdded,
)
from eventstore.heads import Head
from eventstore.ids import new_id
from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections.compactions import find_ends
from projections.context_blocks import find_prompt, list_blocks
from projections.directory import SessionInfo, find_session
from projections.history import read_view
from projections.overlay import view_of
from projections.paths import path_to
from projections.skills import Marks, unloaded_copies
from projections.stored import tree_of
from sessions.appending import check_open
from sessions.marking import mark

Events = list[Event]

FORKED_FROM = "forkedFrom"
"""The key of a copied message's metadata that names the message it is a copy of."""

SPLIT = "compaction"
"""Why a session ended that was split."""

CARRIED_OVER = "[Context from previous session]\n\n"
"""What stands before the summary that a session begins with."""

MOST_TOKENS = (1 << 63) - 1
"""What a session's sum of tokens can come to in its row."""


class CreateSession:
    """Decides the first event of a session."""

    def __init__(self, created: SessionCreated) -> None:
        self._created = created

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, None]:
        """Decide inside the write transaction; raises SessionExistsError and SessionDeletedError."""
        check_open(tx, head)
        if head.version > 0:
            raise SessionExistsError(head.stream_id)
        return [self._created], None


class Tell:
    """Decides that something is told of a session that exists."""

    def __init__(self, event: SessionRenamed | UsageAdded) -> None:
        self._event = event

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, None]:
        """Decide inside the write transaction.

        Raises SessionNotFoundError, SessionDeletedError, and InvalidArgumentError for sums too large to be stored.
        """
        check_open(tx, head)
        info = find_session(tx, head.stream_id)
        if info is None:
            raise SessionNotFoundError(head.stream_id)
        if isinstance(self._event, UsageAdded):
            _check_sums(info, self._event)
        is_known = isinstance(self._event, SessionRenamed) and self._event.name == info.name
        return ([] if is_known else [self._event]), None


def delete_session(tx: Tx, head: Head) -> tuple[Events, None]:
    """Decide to delete a session that exists."""
    tx.flush()
    is_there = head.version > 0 and not tree_of(tx, head.stream_no).deleted
    return ([SessionDeleted()] if is_there else []), None


class ForkSession:
    """Decides the events of a new session that begins as a copy of another one's path to a message."""

    def __init__(self, source_id: str, at_message_id: str, name: str) -> None:
        self._source_id = source_id
        self._at = at_message_id
        self._name = name

    def __call__(self, tx: Tx, _head: Head) -> tuple[Events, SessionInfo]:
        """Decide inside the write transaction; raises SessionNotFoundError and MessageNotFoundError."""
        tx.flush()
        source = _existing(tx, self._source_id)
        stream_no, version = find_stream(tx, self._source_id)
        ends = find_ends(tx, stream_no, self._at)
        at = ends[1] if ends else self._at
        path = path_to(tx, stream_no, at)
        if path is None:
            raise MessageNotFoundError(self._source_id, self._at)
        events: Events = [
            SessionCreated(name=self._name, parent_session_id=source.id, model=source.model, source=source.source),
            SessionForked(session_id=source.id, version=version, message_id=at),
        ]
        events += [ContextBlockSet(label=label, content=content) for label, content in list_blocks(tx, stream_no)]
        prompt = find_prompt(tx, stream_no)
        if prompt is not None:
            events.append(PromptFrozen(prompt=prompt))
        contents = (content for content, _ in read_view(tx, stream_no, view_of(tx, stream_no, path)))
        return events + list(_copies(contents, unloaded_copies(tx, stream_no))), source


class SplitSession:
    """Decides that a session ends and goes on in a new one, which begins with a summary."""

    def __init__(self, new_session_id: str, summary: str, name: str | None) -> None:
        self._new_session_id = new_session_id
        self._summary = summary
        self._name = name

    def __call__(self, tx: Tx, head: Head) -> tuple[Mapping[str, Events], SessionInfo]:
        """Decide inside the write transaction; raises SessionNotFoundError and SessionDeletedError."""
        check_open(tx, head)
        source = _existing(tx, head.stream_id)
        created = SessionCreated(
            name=source.name if self._name is None else self._name,
            parent_session_id=source.id,
            model=source.model,
            source=source.source,
        )
        text = CARRIED_OVER + self._summary
        first = {"id": new_id(), "role": "assistant", "parts": [{"type": "text", "text": text}]}
        begun: Events = [created, MessageAppended(raw=msgspec.Raw(msgspec.json.encode(first)))]
        return {head.stream_id: [SessionEnded(reason=SPLIT)], self._new_session_id: begun}, source


def _existing(tx: Tx, session_id: str) -> SessionInfo:
    source = find_session(tx, session_id)
    if source is not None:
        return source
    if tree_of(tx, find_stream(tx, session_id)[0]).deleted:
        raise SessionDeletedError(session_id)
    raise SessionNotFoundError(session_id)


def _check_sums(info: SessionInfo, used: UsageAdded) -> None:
    tokens = {
        "input_tokens": info.input_tokens + used.input_tokens,
        "output_tokens": info.output_tokens + used.output_tokens,
    }
    for name, total in tokens.items():
        if total > MOST_TOKENS:
            raise InvalidArgumentError(name, f"must not come to more than {MOST_TOKENS} in a session")
    if not math.isfinite(info.estimated_cost + used.cost):
        raise InvalidArgumentError("cost", "must come to a finite number in a session")


def _copies(contents: Iterator[str], marks: Marks) -> Iterator[MessageAppended]:
    """The messages again as they are shown, as a chain under ids of their own."""
    parent_id: str | None = None
    for content in contents:
        message: dict[str, Any] = decode_json(content)
        if message["id"] in marks:
            message = mark(message, marks)
        origin, message["id"] = message["id"], new_id()
        metadata = message.get("metadata")
        if metadata is None or isinstance(metadata, dict):
            message["metadata"] = {**(metadata or {}), FORKED_FROM: origin}
        else:
            message[FORKED_FROM] = origin
        yield MessageAppended(raw=msgspec.Raw(msgspec.json.encode(message)), parent_id=parent_id)
        parent_id = message["id"]
