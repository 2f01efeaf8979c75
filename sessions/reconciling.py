"""The decision of a reconciliation: what of a client's whole list of messages is new to the session."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import msgspec

from eventstore.decoding import decode_json
from eventstore.events import Event, LeafSelected, MessageAppended, MessageUpdated
from eventstore.heads import Head
from eventstore.limits import Limits
from eventstore.ports import Tx
from eventstore.same import same_json
from projections.skills import Marks, unloaded_copies
from sessions.appending import check_open
from sessions.copies import Content, completed, merged, restored
from sessions.marking import mark
from sessions.matching import Matching, Turn
from sessions.message import Accepted, accept


class ReconcileResult(msgspec.Struct, frozen=True):
    """What became of the messages of a list: so many were new, so many changed a stored one, all others did nothing."""

    inserted: int
    updated: int
    unchanged: int


class Reconcile:
    """Decides what to append and what to update, so that a session holds what a client's list holds."""

    def __init__(self, messages: Sequence[Accepted], limits: Limits) -> None:
        # Read before the transaction, which others wait for.
        self._messages = [(message, decode_json(message.json)) for message in messages]
        self._limits = limits

    def __call__(self, tx: Tx, head: Head) -> tuple[list[Event], ReconcileResult]:
        """Decide inside the write transaction.

        Raises SessionDeletedError, DuplicateMessageError, and LimitExceededError for what two copies come to.
        """
        tree = check_open(tx, head)
        turns = Matching(tx, head.stream_no, head.stream_id).match(self._messages)
        marks = unloaded_copies(tx, head.stream_no)
        appended: list[Event] = []
        updated: list[Event] = []
        for turn in turns:
            if turn.stored_id is None:
                appended.append(MessageAppended(raw=msgspec.Raw(self._json(turn)), parent_id=turn.parent_id))
            elif not turn.is_overlay and (json := self._changed(turn, turn.stored_id, marks)) is not None:
                updated.append(MessageUpdated(raw=msgspec.Raw(json)))
        result = ReconcileResult(len(appended), len(updated), len(self._messages) - len(appended) - len(updated))
        if appended and turns[-1].stored_id is not None and tree.message_id is not None:
            # News within the list are a branch, which nobody chose.
            appended.append(LeafSelected(message_id=tree.message_id))
        return [*updated, *appended], result

    def _json(self, turn: Turn) -> bytes:
        """The JSON of a new message."""
        return self._checked(reduce(completed, turn.copies)) if len(turn.copies) > 1 else turn.json

    def _changed(self, turn: Turn, stored_id: str, marks: Marks) -> bytes | None:
        """The JSON that a stored message comes to, None if it stays as it is."""
        if len(turn.copies) == 1 and turn.json == turn.held.encode():
            return None
        held: Content = decode_json(turn.held)
        shown = mark(held, marks) if stored_id in marks else held
        first, *others = (restored(copy, held, shown) for copy in turn.copies)
        content = reduce(completed, others, merged(held, first))
        return None if same_json(content, held) else self._checked(content)

    def _checked(self, content: Content) -> bytes:
        return accept(content, self._limits).json
