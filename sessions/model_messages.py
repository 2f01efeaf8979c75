"""The history as a model may be given it: no half of a tool call and its result, which models refuse."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.arguments import check_count
from sessions.boundaries import align_boundary_backward
from sessions.foreign import ForeignSession
from sessions.message import Message
from sessions.pairs import sanitize_tool_pairs, tool_parts
from sessions.stored import StoredSession


async def model_messages(
    storage: StoredSession | ForeignSession, leaf_id: str | None, limit: int | None
) -> list[Message]:
    """The last messages of a view, and those before them that hold the calls of results among them.

    Then a result whose call is nowhere in the view is taken out, and a call without a result gets a stub.
    """
    if limit is None:
        return sanitize_tool_pairs(await storage.get_history(leaf_id))
    check_count(limit, "limit")
    read = limit
    while True:
        messages = await storage.get_history(leaf_id, limit=read)
        window = messages[align_boundary_backward(messages, max(len(messages) - limit, 0)) :] if limit else []
        # The calls may lie further back than was read.
        if len(messages) < read or not _lacks_a_call(window):
            return sanitize_tool_pairs(window)
        read *= 2


def _lacks_a_call(messages: Sequence[Message]) -> bool:
    called: set[str] = set()
    for message in messages:
        for part in tool_parts(message):
            if part.is_call:
                called.add(part.call_id)
            elif part.has_outcome and part.call_id not in called:
                return True
    return False
