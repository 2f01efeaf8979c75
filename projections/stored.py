"""Single look-ups in the tree: one message, the tip, what a decision has to know."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import bindparam, select

from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from projections.tree_tables import messages, place_columns, spent_ids, trees

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
        trees.c.tip,
        trees.c.messages,
        trees.c.leaves,
        trees.c.spent,
        trees.c.deleted,
        trees.c.version,
        messages.c.id,
        *place_columns,
    )
    .join_from(trees, messages, messages.c.row_id == trees.c.tip, isouter=True)
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
    many ids are in use and spent; `deleted` is 1 for a session that was deleted; `version` is the one that the tables
    show. `place` is the tip's: row, run, ordinal, sums, sealed, continued. `is_new` says that it has no row yet.
    """

    tip: int = 0
    messages: int = 0
    leaves: int = 0
    spent: int = 0
    deleted: int = 0
    version: int = 0
    message_id: str | None = None
    place: Row = ()
    is_new: bool = False


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
        for tip, size, leaves, spent, deleted, version, message_id, *place in tx.fetch(_TREE, (stream_no,)):
            tx.memo[key] = Tree(tip, size, leaves, spent, deleted, version, message_id, tuple(place))
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
