"""Single look-ups in the tree: one message, the tip, what a decision has to know."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import bindparam, select

from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from projections.tree_tables import (
    message_count,
    messages,
    place_columns,
    position,
    spent_ids,
    tip,
    trees,
    with_tips,
)

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
_TREE = Statement(
    select(
        message_count,
        trees.c.leaves,
        trees.c.spent,
        trees.c.deleted,
        position,
        messages.c.id,
        *place_columns,
    )
    .select_from(with_tips(trees).outerjoin(messages, messages.c.row_id == tip))
    .where(trees.c.stream_no == bindparam("stream_no")),
    "stream_no",
)


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as its row holds it: the position of its append, JSON text, and the time as the engine stores it."""

    position: int
    content: str
    created_at: Any


class Tree(msgspec.Struct):
    """Where a session's tree stands; only who has taken it changes it.

    `message_id` is the message that was appended or selected last, whose row is `tip`; `messages` and `spent` say how
    many ids are in use and spent; `deleted` is 1 for a session that was deleted; `position` is that of the last event
    that the tables show. `place` is the tip's: row, run, ordinal, sums, sealed, continued. `is_new` says that it has no
    row yet, and `row` is what is to be written of it.
    """

    tip: int = 0
    messages: int = 0
    leaves: int = 0
    spent: int = 0
    deleted: int = 0
    position: int = 0
    message_id: str | None = None
    place: Row = ()
    is_new: bool = False
    row: Row | None = None

    def turn(self) -> None:
        """Have the row written as the tree is now: what comes next is more than one message behind the other."""
        self.row = (self.tip, self.messages, self.leaves, self.spent, self.deleted, self.position)


def find_message(tx: Tx, stream_no: int, message_id: str) -> StoredMessage | None:
    """The message with this id."""
    rows = tx.fetch(_STORED, (stream_no, message_id))
    return StoredMessage(*rows[0]) if rows else None


def is_spent(tx: Tx, stream_no: int, message_id: str) -> bool:
    """Whether this is the id of a message that was deleted."""
    return bool(tx.fetch(_SPENT, (stream_no, message_id)))


def tree_of(tx: Tx, stream_no: int) -> Tree:
    """Where a session's tree stands; an empty tree for one without a row."""
    key = (trees.name, stream_no)
    if key not in tx.memo:
        tx.memo[key] = Tree(is_new=True)
        for size, leaves, spent, deleted, reached, message_id, row_id, *place in tx.fetch(_TREE, (stream_no,)):
            known = (row_id or 0, size, leaves, spent, deleted, reached, message_id)
            tx.memo[key] = Tree(*known, (row_id, *place))
    tree: Tree = tx.memo[key]
    return tree


def take_tree(tx: Tx, stream_no: int) -> Tree:
    """The same for whoever is about to change it, so that nobody remembers it."""
    tree = tree_of(tx, stream_no)
    del tx.memo[trees.name, stream_no]
    return tree


def keep_tree(tx: Tx, stream_no: int, tree: Tree) -> None:
    """Remember where a session's tree stands for whoever asks next."""
    tx.memo[trees.name, stream_no] = tree
