"""Which stored message each message of a client's list is: the one with its id, else one of its content in its place.

A list is a path. So the place of a message that has no known id is below the one before it in the list, or above the
one behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from eventstore.decoding import decode_json
from eventstore.errors import DuplicateMessageError
from eventstore.ports import Tx
from projections.compactions import find_ends
from projections.message import COMPACTION_PREFIX
from projections.paths import last_on, nearest_below, path_to_place, place_of
from projections.stored import find_message, is_spent
from sessions.copies import Content, is_same_call, is_same_turn
from sessions.message import Accepted


class Turn(msgspec.Struct):
    """A message of a list, with all copies of it that stand there, its own one first; an overlay has none.

    `stored_id` is the id of the stored message that it is, or of the last one that an overlay stands for, `first_id`
    the same or that of the first one; `held` is that message's JSON. A message without one is new, and hangs on
    `parent_id`.
    """

    id: str
    json: bytes
    copies: list[Content]
    stored_id: str | None = None
    first_id: str | None = None
    held: str = ""
    parent_id: str | None = None

    @property
    def is_overlay(self) -> bool:
        """Whether it is a summary that comes back."""
        return not self.copies


class Matching:
    """The messages of a list as turns, matched within the transaction that writes what is new of them.

    Raises DuplicateMessageError for two messages with one id that are no copies of one.
    """

    def __init__(self, tx: Tx, stream_no: int, session_id: str) -> None:
        self._tx = tx
        self._stream_no = stream_no
        self._session_id = session_id
        self._taken: set[str] = set()

    def match(self, messages: Iterable[tuple[Accepted, Content]]) -> list[Turn]:
        """The turns in the order of the list; deleted messages, and overlays that nobody knows, are left out."""
        turns = _joined(list(self._known(messages)))
        self._taken = {turn.stored_id for turn in turns if turn.stored_id is not None and not turn.is_overlay}
        self._match_upwards(turns)
        self._match_downwards(turns)
        return turns

    def _known(self, messages: Iterable[tuple[Accepted, Content]]) -> Iterator[Turn]:
        found: dict[str, Turn] = {}
        for message, content in messages:
            turn = found.get(message.id)
            if turn is None:
                turn = Turn(message.id, message.json, [])
                if message.id.startswith(COMPACTION_PREFIX):
                    ends = find_ends(self._tx, self._stream_no, message.id)
                    turn.first_id, turn.stored_id = ends or (None, None)
                else:
                    turn.copies.append(content)
                    stored = find_message(self._tx, self._stream_no, message.id)
                    if stored is not None:
                        _hold(turn, message.id, stored.content)
                found[message.id] = turn
            elif not turn.is_overlay:
                if not is_same_turn(turn.copies[0], content):
                    raise DuplicateMessageError(self._session_id, message.id)
                turn.copies.append(content)
        for turn in found.values():
            is_gone = turn.stored_id is None and is_spent(self._tx, self._stream_no, turn.id)
            if not is_gone and (turn.stored_id is not None or not turn.is_overlay):
                yield turn

    def _match_upwards(self, turns: Sequence[Turn]) -> None:
        """Match what stands right before a known message, from the end on."""
        for index in range(len(turns) - 1, 0, -1):
            turn, following = turns[index - 1 : index + 1]
            if turn.stored_id is None and following.first_id is not None:
                self._match_one(turn, [self._above(following.first_id)])

    def _match_downwards(self, turns: Sequence[Turn]) -> None:
        """Match what stands right behind a known message, or where a path begins, and note where news hang."""
        parent_id, is_known = self._beginning(turns), True
        for turn in turns:
            turn.parent_id = parent_id
            if turn.stored_id is None and is_known:
                self._match_one(turn, self._below(parent_id))
            is_known = turn.stored_id is not None
            parent_id = turn.stored_id or turn.id

    def _beginning(self, turns: Sequence[Turn]) -> str | None:
        """What the first message of a list hangs on, going up as many from the first known one as stand before it."""
        index = next((index for index, turn in enumerate(turns) if turn.first_id is not None), 0)
        message_id = turns[index].first_id if turns else None
        while message_id is not None and index >= 0:
            message_id, index = self._above(message_id), index - 1
        return message_id

    def _match_one(self, turn: Turn, candidates: Iterable[str | None]) -> None:
        for message_id in candidates:
            if message_id is None or message_id in self._taken:
                continue
            stored = find_message(self._tx, self._stream_no, message_id)
            if stored is not None and is_same_turn(decode_json(stored.content), turn.copies[0]):
                _hold(turn, message_id, stored.content)
                self._taken.add(message_id)
                return

    def _above(self, message_id: str) -> str | None:
        run, ordinal = place_of(self._tx, self._stream_no, message_id) or (0, 0)
        found = last_on(self._tx, self._stream_no, path_to_place(self._tx, self._stream_no, run, ordinal - 1))
        return found.id if found else None

    def _below(self, message_id: str | None) -> list[str]:
        # What is no message is the place above every root.
        place = None if message_id is None else place_of(self._tx, self._stream_no, message_id)
        return [one.id for one in nearest_below(self._tx, self._stream_no, *(place or (0, 0)))]


def _hold(turn: Turn, message_id: str, held: str) -> None:
    """Note which stored message a turn is."""
    turn.stored_id = turn.first_id = message_id
    turn.held = held


def _joined(turns: Sequence[Turn]) -> list[Turn]:
    """Join a further copy of a call to its neighbour, as a client with two ids for one message has it.

    This looks at the list alone, before anything is matched by content, so that the same list gives the same turns.
    """
    kept: list[Turn] = []
    for turn, following in zip_longest(turns, turns[1:]):
        last = kept[-1] if kept else None
        if last is not None and _is_copy(turn, last):
            last.copies += turn.copies
        elif following is not None and following.stored_id is not None and _is_copy(turn, following):
            following.copies += turn.copies
        else:
            kept.append(turn)
    return kept


def _is_copy(turn: Turn, other: Turn) -> bool:
    """Whether a turn of an unknown id holds the call of another one."""
    is_open = turn.stored_id is None and not turn.is_overlay and not other.is_overlay
    return is_open and is_same_call(other.copies[0], turn.copies[0])
