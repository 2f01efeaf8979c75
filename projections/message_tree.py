"""The message tree: every message in a run and its place there, so that a path is a few index ranges.

A run is an unbranched stretch: the first child of a message continues its parent's run, every further child starts a
run of its own, and so does a root. A message's ordinal is its depth, 1 for a root, and a run is named by the version
of its first message. A row is numbered by the position of the event that appended its message, so that rows are
always added at the end of the table: grouped by session they would touch twice as many pages per append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    insert,
    select,
    update,
)

from eventstore.dialect import BigKey
from eventstore.envelope import Envelope
from eventstore.events import LeafSelected, MessageAppended
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata
from projections.base import Projection
from projections.message import own_time
from projections.tokens import estimate_parts_tokens

messages = Table(
    "assistant_messages",
    metadata,
    Column("row_id", BigKey, primary_key=True, autoincrement=False),
    Column("stream_no", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("parent_id", Text),
    Column("role", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("run", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("path_tokens", BigInteger, nullable=False),
    UniqueConstraint("stream_no", "id"),
    UniqueConstraint("stream_no", "run", "ordinal"),
)

runs = Table(
    "message_runs",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("run", BigInteger, primary_key=True),
    Column("parent_run", BigInteger, nullable=False),
    Column("fork_ordinal", BigInteger, nullable=False),
    Index("ix_message_runs_fork", "stream_no", "parent_run", "fork_ordinal"),
)

trees = Table(
    "message_trees",
    metadata,
    Column("stream_no", BigKey, primary_key=True, autoincrement=False),
    Column("tip", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("leaves", BigInteger, nullable=False),
    Column("estimator", Text, nullable=False),
)

_next = messages.alias("next")
_place = (
    messages.c.row_id,
    messages.c.run,
    messages.c.ordinal,
    messages.c.path_tokens,
    select(1)
    .where(
        _next.c.stream_no == messages.c.stream_no,
        _next.c.run == messages.c.run,
        _next.c.ordinal == messages.c.ordinal + 1,
    )
    .exists(),
)
_PLACE = Statement(
    select(*_place).where(messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id")),
    "stream_no",
    "id",
)
_TREE = Statement(
    select(trees.c.messages, trees.c.leaves, messages.c.id, *_place)
    .join_from(trees, messages, messages.c.row_id == trees.c.tip)
    .where(trees.c.stream_no == bindparam("stream_no")),
    "stream_no",
)
_INSERT_MESSAGE = Statement(insert(messages), *messages.columns.keys())
_INSERT_RUN = Statement(insert(runs), "stream_no", "run", "parent_run", "fork_ordinal")
_INSERT_TREE = Statement(insert(trees), "stream_no", "tip", "messages", "leaves", "estimator")
_UPDATE_TREE = Statement(
    update(trees)
    .where(trees.c.stream_no == bindparam("the_stream"))
    .values(
        tip=bindparam("to_tip"),
        messages=bindparam("to_messages"),
        leaves=bindparam("to_leaves"),
        estimator=bindparam("to_estimator"),
    ),
    "to_tip",
    "to_messages",
    "to_leaves",
    "to_estimator",
    "the_stream",
)
_TIP = Statement(
    select(messages.c.id)
    .join_from(trees, messages, messages.c.row_id == trees.c.tip)
    .where(trees.c.stream_no == bindparam("stream_no")),
    "stream_no",
)
_STORED = Statement(
    select(messages.c.row_id, messages.c.content, messages.c.created_at).where(
        messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id")
    ),
    "stream_no",
    "id",
)


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as its row holds it: the position of its append, JSON text, and the time as the engine stores it."""

    position: int
    content: str
    created_at: Any


def find_message(tx: Tx, stream_no: int, message_id: str) -> StoredMessage | None:
    """The message with this id."""
    rows = tx.fetch(_STORED, (stream_no, message_id))
    return StoredMessage(*rows[0]) if rows else None


def tip_id(tx: Tx, stream_no: int) -> str | None:
    """The id of the message that was appended or selected last."""
    rows = tx.fetch(_TIP, (stream_no,))
    return rows[0][0] if rows else None


class _Place(msgspec.Struct):
    row_id: int
    run: int
    ordinal: int
    path_tokens: int
    continued: bool = False


class _Tree(msgspec.Struct):
    tip: int
    messages: int
    leaves: int
    is_new: bool = False


class MessageTree(Projection):
    """Messages, their runs, and each session's tip.

    `estimate` gives a text's tokens for the cached sums; a session's row names the one that was used last.
    """

    name = "message_tree"
    handles = (MessageAppended, LeafSelected)
    tables = (messages, runs, trees)
    caches = ("tokens", "path_tokens", "estimator")

    def __init__(self, estimate: Callable[[str], int]) -> None:
        self._estimate = estimate
        named = estimate if hasattr(estimate, "__qualname__") else type(estimate)
        self._estimator = f"{named.__module__}.{named.__qualname__}"

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Give each message its place below its parent, and move the tips."""
        group = _Group(tx)
        for envelope in envelopes:
            event = envelope.event
            if isinstance(event, MessageAppended):
                message = event.message
                tokens = estimate_parts_tokens(message["parts"], self._estimate)
                group.append(envelope, event, message, tokens)
            elif isinstance(event, LeafSelected):
                group.tree(envelope.stream_no).tip = group.place(envelope.stream_no, event.message_id).row_id
        group.write(self._estimator)


class _Group:
    """The rows that a group of events makes, with what they build on read once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._places: dict[tuple[int, str], _Place] = {}
        self._trees: dict[int, _Tree] = {}
        self._message_rows: list[Row] = []
        self._run_rows: list[Row] = []

    def append(self, envelope: Envelope, event: MessageAppended, message: dict[str, Any], tokens: int) -> None:
        stream_no, message_id = envelope.stream_no, message["id"]
        run, parent_run, fork_ordinal, path_tokens = envelope.version, 0, 0, tokens
        tree = self.tree(stream_no)
        if event.parent_id is None:
            tree.leaves += 1
        else:
            parent = self.place(stream_no, event.parent_id)
            path_tokens += parent.path_tokens
            fork_ordinal = parent.ordinal
            if parent.continued:
                parent_run = parent.run
                tree.leaves += 1
            else:
                run = parent.run
                parent.continued = True
        if run == envelope.version:
            self._run_rows.append((stream_no, run, parent_run, fork_ordinal))
        place = _Place(envelope.position, run, fork_ordinal + 1, path_tokens)
        self._places[stream_no, message_id] = place
        tree.tip = place.row_id
        tree.messages += 1
        time = self._tx.dialect.time
        content = event.raw if event.created_at is None else _with_time(message, event)
        self._message_rows.append(
            (
                place.row_id,
                stream_no,
                message_id,
                envelope.stream_id,
                event.parent_id,
                message["role"],
                bytes(content).decode(),
                time(event.created_at or own_time(message) or envelope.recorded_at),
                run,
                place.ordinal,
                tokens,
                path_tokens,
            )
        )

    def place(self, stream_no: int, message_id: str) -> _Place:
        place = self._places.get((stream_no, message_id))
        if place is None:
            place = self._places[stream_no, message_id] = _Place(*self._tx.fetch(_PLACE, (stream_no, message_id))[0])
        return place

    def tree(self, stream_no: int) -> _Tree:
        tree = self._trees.get(stream_no)
        if tree is None:
            tree = self._trees[stream_no] = _Tree(0, 0, 0, is_new=True)
            for size, leaves, tip_id, *place in self._tx.fetch(_TREE, (stream_no,)):
                # Most messages hang on the tip: its place is read along.
                tip = self._places[stream_no, tip_id] = _Place(*place)
                tree = self._trees[stream_no] = _Tree(tip.row_id, size, leaves)
        return tree

    def write(self, estimator: str) -> None:
        trees = self._trees.items()
        new = [(no, tree.tip, tree.messages, tree.leaves, estimator) for no, tree in trees if tree.is_new]
        old = [(tree.tip, tree.messages, tree.leaves, estimator, no) for no, tree in trees if not tree.is_new]
        self._tx.executemany(_INSERT_RUN, self._run_rows)
        self._tx.executemany(_INSERT_MESSAGE, self._message_rows)
        self._tx.executemany(_INSERT_TREE, new)
        self._tx.executemany(_UPDATE_TREE, old)


def _with_time(message: dict[str, Any], event: MessageAppended) -> bytes:
    """The message's JSON with the own time that only the event knows."""
    created_at = event.created_at and event.created_at.isoformat().replace("+00:00", "Z")
    return msgspec.json.encode({**message, "createdAt": created_at})
