"""The history that a compaction function is given, and what its answer means in it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from eventstore.errors import InvalidCompactionError
from sessions.compaction_function import is_compaction_message
from sessions.message import Message


class Stretch(msgspec.Struct, frozen=True):
    """What a compaction is to stand for: some messages of a view, and the ids that they stand for themselves."""

    messages: Sequence[Message]
    ids: Sequence[str]

    @property
    def replaces_one_overlay(self) -> bool:
        """Whether it is one overlay and nothing else, so that a new one in its place shortens little."""
        return len(self.messages) == 1 and is_compaction_message(self.messages[0])


class CompactionView(msgspec.Struct, frozen=True):
    """The messages of a view, and for each of them what it stands for.

    `ids` are the messages from the root to the leaf, covered ones included. `edges` has for each message of the view
    the first and the last index in `ids` of what it stands for: twice its own, or the ends of an overlay.
    """

    messages: list[Message]
    ids: list[str]
    edges: list[tuple[int, int]]

    def choose(self, from_id: object, to_id: object, session_id: str) -> Stretch | None:
        """The stretch between two ids, each a message's, an overlay's, or one that an overlay in the view covers.

        It is extended back over overlays that stand right before it, whose summaries the function was given with the
        rest, unless it begins with an overlay by itself. None when an id is not in the view. Raises
        InvalidCompactionError when the ids are not in order.
        """
        first, last = self._find(from_id), self._find(to_id)
        if first is None or last is None:
            return None
        if first > last:
            raise InvalidCompactionError(session_id, "the compaction function's range is reversed")
        if not is_compaction_message(self.messages[first]):
            while first > 0 and is_compaction_message(self.messages[first - 1]):
                first -= 1
        return Stretch(self.messages[first : last + 1], self.ids[self.edges[first][0] : self.edges[last][1] + 1])

    def _find(self, wanted: object) -> int | None:
        """The index in the view of a message, or of the overlay that covers it."""
        for index, message in enumerate(self.messages):
            if message.id == wanted:
                return index
        if wanted not in self.ids:
            return None
        place = self.ids.index(str(wanted))
        return next(index for index, (first, last) in enumerate(self.edges) if first <= place <= last)
