"""Compactions that a source brings along, as events of the session that its conversation becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventstore.events import CompactionAdded
from eventstore.heads import Head
from eventstore.ports import Tx
from projections.compactions import find_ends
from projections.message import COMPACTION_PREFIX
from projections.paths import lies_on, path_to, place_of
from sessions.importers.conversation import content_id


def compaction_events(
    tx: Tx, head: Head, overlays: Sequence[Mapping[str, Any]], added: Mapping[str, str | None]
) -> list[CompactionAdded]:
    """The compactions among a conversation's overlays that the session does not have yet.

    An overlay is one when it has a `summary`, a `from_message_id` and a `to_message_id`, both on one path; its `id`
    is kept, and without one it gets the same id each time. `added` are the messages that are about to be appended, each
    with its parent; the others are looked up, so what was decided before must have been written.
    """
    events: list[CompactionAdded] = []
    for overlay in overlays:
        summary, start, end = (overlay.get(key) for key in ("summary", "from_message_id", "to_message_id"))
        if not (isinstance(summary, str) and summary.strip() and isinstance(start, str) and isinstance(end, str)):
            continue
        compaction_id = str(overlay.get("id") or content_id([start, end, summary]))
        is_known = head.version > 0 and find_ends(tx, head.stream_no, COMPACTION_PREFIX + compaction_id) is not None
        if not is_known and _on_one_path(tx, head, added, start, end):
            added_compaction = CompactionAdded(
                id=compaction_id, summary=summary, from_message_id=start, to_message_id=end
            )
            events.append(added_compaction)
    return events


def _on_one_path(tx: Tx, head: Head, added: Mapping[str, str | None], start: str, end: str) -> bool:
    at: str | None = end
    while at is not None and at in added:
        if at == start:
            return True
        at = added[at]
    if at is None or start in added or head.version == 0:
        return False
    place, path = place_of(tx, head.stream_no, start), path_to(tx, head.stream_no, at)
    return place is not None and lies_on(path or (), *place)
