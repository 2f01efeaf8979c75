"""Compactions that a source brings along, as events of the session that its conversation becomes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eventstore.errors import InvalidCompactionError, told
from eventstore.events import CompactionAdded
from eventstore.heads import Head
from eventstore.limits import Limits, check_id
from eventstore.ports import Tx
from projections.compactions import find_ends
from projections.message import COMPACTION_PREFIX
from projections.paths import lies_on, path_to, place_of
from sessions.arguments import checked_summary
from sessions.importers.conversation import Conversation, Problem, content_id, problem_of
from sessions.importers.refusing import REFUSALS
from sessions.message import lookup_id

Parents = Mapping[str, str | None]


class Compactions:
    """Decides which compactions among a conversation's overlays the session does not have yet.

    An overlay is one when it has a `summary`, a `from_message_id` and a `to_message_id`, both on one path; its `id` is
    kept, and without one it gets the same id each time. What is none is told, or raised when `strict`.
    """

    def __init__(self, conversation: Conversation, limits: Limits, *, strict: bool) -> None:
        self._conversation = conversation
        self._limits = limits
        self._strict = strict

    def events(
        self, tx: Tx, head: Head, added: Parents, known: Collection[str]
    ) -> tuple[list[CompactionAdded], list[Problem]]:
        """The new compactions, and what is wrong with others.

        `added` are the messages that are about to be appended, each with its parent; the others are looked up, so what
        was decided before must have been written. So are compactions, but for those in `known`.
        """
        events: list[CompactionAdded] = []
        problems: list[Problem] = []
        taken: set[str] = set()
        for overlay in self._conversation.overlays:
            try:
                compaction = self._checked(overlay, head.stream_id)
                if compaction.id in taken:
                    raise InvalidCompactionError(head.stream_id, "another compaction before it has its id")
                if not (compaction.id in known or _is_stored(tx, head, compaction.id)):
                    _check_ends(tx, head, added, compaction)
                    events.append(compaction)
                taken.add(compaction.id)
            except REFUSALS as error:
                if self._strict:
                    raise
                reason = f"compaction {told(overlay.get('id'))} refused: {error}"
                problems.append(problem_of(self._conversation, reason))
        return events, problems

    def _checked(self, overlay: Mapping[str, Any], session_id: str) -> CompactionAdded:
        summary, *ends = (overlay.get(key) for key in ("summary", "from_message_id", "to_message_id"))
        own_id = overlay.get("id") or content_id([*ends, summary])
        return CompactionAdded(
            id=check_id(own_id, "id", self._limits),
            summary=checked_summary(summary, session_id, self._limits),
            from_message_id=lookup_id(ends[0], "from_message_id"),
            to_message_id=lookup_id(ends[1], "to_message_id"),
        )


def _is_stored(tx: Tx, head: Head, compaction_id: str) -> bool:
    return head.version > 0 and find_ends(tx, head.stream_no, COMPACTION_PREFIX + compaction_id) is not None


def _check_ends(tx: Tx, head: Head, added: Parents, compaction: CompactionAdded) -> None:
    """Raise InvalidCompactionError unless both ends lie on one path of what is stored and what is added."""
    at: str | None = compaction.to_message_id
    while at is not None and at in added and at != compaction.from_message_id:
        at = added[at]
    is_found = at == compaction.from_message_id and at in added
    if not is_found and not _is_on_stored_path(tx, head, compaction.from_message_id, at):
        raise InvalidCompactionError(head.stream_id, "its ends do not lie on one path")


def _is_on_stored_path(tx: Tx, head: Head, start: str, end: str | None) -> bool:
    if end is None or head.version == 0:
        return False
    place, path = place_of(tx, head.stream_no, start), path_to(tx, head.stream_no, end)
    return place is not None and lies_on(path or (), *place)
