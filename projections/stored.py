"""Single look-ups in the tree: one message, the tip, what a decision has to know."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import bindparam, select

from eventstore.ports import Tx
from eventstore.statements import Statement
from projections.tree_tables import messages, spent_ids, trees

_STORED = Statement(
    select(messages.c.row_id, messages.c.content, messages.c.created_at).where(
        messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id")
    ),
    "stream_no",
    "id",
)
_SPENT = Statement(
    select(1).where(spent_ids.c.stream_no == bindparam("stream_no"), spent_ids.c.id == bindparam("id")),
    "stream_no",
    "id",
)
_TIP = Statement(
    select(messages.c.id, trees.c.messages, trees.c.spent, trees.c.deleted)
    .join_from(trees, messages, messages.c.row_id == trees.c.tip, isouter=True)
    .where(trees.c.stream_no == bindparam("stream_no")),
    "stream_no",
)


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as its row holds it: the position of its append, JSON text, and the time as the engine stores it."""

    position: int
    content: str
    created_at: Any


class Tip(msgspec.Struct, frozen=True):
    """The id of the message that was appended or selected last, and how many ids are in use and spent.

    `deleted` is 1 for a session that was deleted.
    """

    message_id: str | None = None
    messages: int = 0
    spent: int = 0
    deleted: int = 0


def find_message(tx: Tx, stream_no: int, message_id: str) -> StoredMessage | None:
    """The message with this id."""
    rows = tx.fetch(_STORED, (stream_no, message_id))
    return StoredMessage(*rows[0]) if rows else None


def is_spent(tx: Tx, stream_no: int, message_id: str) -> bool:
    """Whether this is the id of a message that was deleted."""
    return bool(tx.fetch(_SPENT, (stream_no, message_id)))


def tip_of(tx: Tx, stream_no: int) -> Tip:
    """Where a session's tree stands."""
    rows = tx.fetch(_TIP, (stream_no,))
    return Tip(*rows[0]) if rows else Tip()
