"""The message tree: every message in a run and its place there, so that a path is a few index ranges.

Appends add rows and touch one row of their session, its tip; edits and deletions change the rows they name and their
neighbours, and leave what they change for all that hangs below to the corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from sqlalchemy import bindparam, delete, insert, select, update

from eventstore.envelope import Envelope
from eventstore.events import (
    CompactionAdded,
    LeafSelected,
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
)
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from projections import compactions, paths
from projections.base import Projection
from projections.corrections import Correction, add_corrections, corrections, forget_corrections
from projections.message import own_time, with_own_time
from projections.tokens import estimate_parts_tokens
from projections.tree_tables import messages, runs, spent_ids, trees

_next = messages.alias("next")
_continues = (
    select(1)
    .where(
        _next.c.stream_no == messages.c.stream_no,
        _next.c.run == messages.c.run,
        _next.c.ordinal == messages.c.ordinal + 1,
    )
    .exists()
)
_place = (
    messages.c.row_id,
    messages.c.run,
    messages.c.ordinal,
    messages.c.path_tokens,
    messages.c.path_bytes,
    (messages.c.sealed == 1) | _continues,
)
_with_id = (messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id"))
_PLACE = Statement(select(*_place).where(*_with_id), "stream_no", "id")
_TREE = Statement(
    select(trees.c.tip, trees.c.messages, trees.c.leaves, trees.c.spent, trees.c.version, messages.c.id, *_place)
    .join_from(trees, messages, messages.c.row_id == trees.c.tip, isouter=True)
    .where(trees.c.stream_no == bindparam("stream_no")),
    "stream_no",
)
_CHANGING = Statement(
    select(
        messages.c.row_id,
        messages.c.parent_id,
        messages.c.run,
        messages.c.ordinal,
        messages.c.tokens,
        messages.c.bytes,
        (messages.c.sealed == 1)
        | _continues
        | select(1)
        .where(
            runs.c.stream_no == messages.c.stream_no,
            runs.c.parent_run == messages.c.run,
            runs.c.fork_ordinal == messages.c.ordinal,
        )
        .exists(),
    ).where(*_with_id),
    "stream_no",
    "id",
)
_INSERT_MESSAGE = Statement(insert(messages), *messages.columns.keys())
_INSERT_RUN = Statement(insert(runs), *runs.columns.keys())
_INSERT_SPENT = Statement(insert(spent_ids), "stream_no", "id")
_INSERT_TREE = Statement(insert(trees), *trees.columns.keys())
_tree_state = ("tip", "messages", "leaves", "spent", "version", "estimator")
_UPDATE_TREE = Statement(
    update(trees)
    .where(trees.c.stream_no == bindparam("the_stream"))
    .values({name: bindparam(f"to_{name}") for name in _tree_state}),
    *(f"to_{name}" for name in _tree_state),
    "the_stream",
)
_this_row = messages.c.row_id == bindparam("the_row")
_UPDATE_MESSAGE = Statement(
    update(messages)
    .where(_this_row)
    .values(
        role=bindparam("to_role"),
        content=bindparam("to_content"),
        tokens=bindparam("to_tokens"),
        bytes=bindparam("to_bytes"),
        path_tokens=messages.c.path_tokens + bindparam("more_tokens"),
        path_bytes=messages.c.path_bytes + bindparam("more_bytes"),
    ),
    "to_role",
    "to_content",
    "to_tokens",
    "to_bytes",
    "more_tokens",
    "more_bytes",
    "the_row",
)
_SET_TIME = Statement(update(messages).where(_this_row).values(created_at=bindparam("to_time")), "to_time", "the_row")
_SET_PARENT = Statement(
    update(messages).where(_this_row).values(parent_id=bindparam("to_parent")), "to_parent", "the_row"
)
_SEAL = Statement(update(messages).where(_this_row).values(sealed=1), "the_row")
_DELETE = Statement(delete(messages).where(_this_row), "the_row")
_FORGET = tuple(
    Statement(delete(table).where(table.c.stream_no == bindparam("stream_no")), "stream_no")
    for table in (messages, runs, spent_ids)
)


class MessageTree(Projection):
    """Messages, their runs, each session's tip and its compactions.

    `estimate` gives a text's tokens for the cached sums; a session's row names the one that was used last.
    """

    name = "message_tree"
    revision = 2
    handles = (MessageAppended, MessageUpdated, MessagesDeleted, MessagesCleared, LeafSelected, CompactionAdded)
    tables = (messages, runs, trees, spent_ids, corrections, compactions.compactions)
    caches = ("tokens", "path_tokens", "estimator")

    def __init__(self, estimate: Callable[[str], int]) -> None:
        self._estimate = estimate
        named = estimate if hasattr(estimate, "__qualname__") else type(estimate)
        self._estimator = f"{named.__module__}.{named.__qualname__}"

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Give each message its place below its parent, carry out what was edited and deleted, move the tips."""
        group = _Group(tx, self._estimate, self._estimator)
        for envelope in envelopes:
            group.apply(envelope)
        group.write()


class _Place(msgspec.Struct):
    row_id: int
    run: int
    ordinal: int
    path_tokens: int
    path_bytes: int
    continued: bool


class _Tree(msgspec.Struct):
    tip: int = 0
    messages: int = 0
    leaves: int = 0
    spent: int = 0
    version: int = 0
    is_new: bool = False


class _Group:
    """The rows that a group of events makes, with what they build on read once.

    Appends are collected and written together; whatever else changes messages finds the tables up to date.
    """

    def __init__(self, tx: Tx, estimate: Callable[[str], int], estimator: str) -> None:
        self._tx = tx
        self._estimate = estimate
        self._estimator = estimator
        self._places: dict[tuple[int, str], _Place] = {}
        self._trees: dict[int, _Tree] = {}
        self._message_rows: list[Row] = []
        self._run_rows: list[Row] = []

    def apply(self, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        tree = self._tree(stream_no)
        if envelope.version <= tree.version:
            return
        if isinstance(event, MessageAppended):
            self._append(envelope, event, tree)
        elif isinstance(event, LeafSelected):
            tree.tip = self._place(stream_no, event.message_id).row_id
        else:
            self.write()
            tree = self._tree(stream_no)
            if isinstance(event, MessageUpdated):
                self._update(stream_no, event)
            elif isinstance(event, MessagesDeleted):
                self._delete(stream_no, event.message_ids, tree)
            elif isinstance(event, MessagesCleared):
                self._clear(stream_no, tree)
            elif isinstance(event, CompactionAdded):
                self._compact(envelope, event)
        tree.version = envelope.version

    def write(self) -> None:
        """Write what was collected, and forget what was read."""
        trees = self._trees.items()
        new = [(no, t.tip, t.messages, t.leaves, t.spent, t.version, self._estimator) for no, t in trees if t.is_new]
        old = [
            (t.tip, t.messages, t.leaves, t.spent, t.version, self._estimator, no) for no, t in trees if not t.is_new
        ]
        self._tx.executemany(_INSERT_RUN, self._run_rows)
        self._tx.executemany(_INSERT_MESSAGE, self._message_rows)
        self._tx.executemany(_INSERT_TREE, new)
        self._tx.executemany(_UPDATE_TREE, old)
        self._places, self._trees, self._message_rows, self._run_rows = {}, {}, [], []

    def _append(self, envelope: Envelope, event: MessageAppended, tree: _Tree) -> None:
        stream_no, message = envelope.stream_no, event.message
        message_id = message["id"]
        content = bytes(event.raw) if event.created_at is None else with_own_time(message, event.created_at)
        tokens = estimate_parts_tokens(message["parts"], self._estimate)
        run, parent_run, fork_ordinal = envelope.version, 0, 0
        path_tokens, path_bytes = tokens, len(content)
        if event.parent_id is None:
            tree.leaves += 1
        else:
            parent = self._place(stream_no, event.parent_id)
            path_tokens += parent.path_tokens
            path_bytes += parent.path_bytes
            fork_ordinal = parent.ordinal
            if parent.continued:
                parent_run = parent.run
                tree.leaves += 1
            else:
                run = parent.run
                parent.continued = True
        if run == envelope.version:
            self._run_rows.append((stream_no, run, parent_run, fork_ordinal))
        place = _Place(envelope.position, run, fork_ordinal + 1, path_tokens, path_bytes, continued=False)
        self._places[stream_no, message_id] = place
        tree.tip = place.row_id
        tree.messages += 1
        self._message_rows.append(
            (
                place.row_id,
                stream_no,
                message_id,
                envelope.stream_id,
                event.parent_id,
                message["role"],
                self._tx.dialect.time(event.created_at or own_time(message) or envelope.recorded_at),
                run,
                place.ordinal,
                0,
                tokens,
                path_tokens,
                len(content),
                path_bytes,
                content.decode(),
            )
        )

    def _update(self, stream_no: int, event: MessageUpdated) -> None:
        tx, message, content = self._tx, event.message, bytes(event.raw)
        row_id, _, run, ordinal, tokens, size, has_children = tx.fetch(_CHANGING, (stream_no, message["id"]))[0]
        new_tokens = estimate_parts_tokens(message["parts"], self._estimate)
        change = Correction(0, new_tokens - tokens, len(content) - size)
        # Of a message with nothing below it the sums are its own.
        on_row = (0, 0) if has_children else (change.tokens, change.bytes)
        values = (message["role"], content.decode(), new_tokens, len(content), *on_row, row_id)
        tx.execute(_UPDATE_MESSAGE, values)
        if has_children:
            add_corrections(tx, {(stream_no, run, ordinal): change})
        time = own_time(message)
        if time is not None:
            tx.execute(_SET_TIME, (tx.dialect.time(time), row_id))
        compactions.mark_stale(tx, stream_no, run, ordinal)
        self._places.clear()

    def _delete(self, stream_no: int, message_ids: Iterable[str], tree: _Tree) -> None:
        tx = self._tx
        gone = {name: row for name in message_ids for row in tx.fetch(_CHANGING, (stream_no, name))}
        places = {name: (row[2], row[3]) for name, row in gone.items()}
        tip = paths.place_of(tx, stream_no, None)
        leaves = [name for name, place in places.items() if not paths.nearest_below(tx, stream_no, *place)]
        tx.executemany(_DELETE, [(row[0],) for row in gone.values()])
        tx.executemany(_INSERT_SPENT, [(stream_no, name) for name in gone])
        removed = {(stream_no, *places[name]): Correction(-1, -row[4], -row[5]) for name, row in gone.items()}
        add_corrections(tx, removed)
        before = [paths.last_on(tx, stream_no, [paths.Range(run, 1, at - 1)]) for run, at in places.values()]
        tx.executemany(_SEAL, [(row_id,) for row_id in {one.row_id for one in before if one}])
        tree.messages -= len(gone)
        tree.spent += len(gone)
        tree.leaves -= len(leaves)
        parents = {name: row[1] for name, row in gone.items() if row[1] not in gone}
        for name, parent_id in parents.items():
            below = paths.nearest_below(tx, stream_no, *places[name])
            tx.executemany(_SET_PARENT, [(parent_id, child.row_id) for child in below])
        for parent_id in {*parents.values()} - {None}:
            place = self._place(stream_no, parent_id)
            if not paths.nearest_below(tx, stream_no, place.run, place.ordinal):
                tree.leaves += 1
        compactions.shrink(tx, stream_no, {*places.values()})
        if tip is not None and tip in places.values():
            top = paths.last_on(tx, stream_no, paths.path_to_place(tx, stream_no, *tip))
            tree.tip = paths.newest_below(tx, stream_no, top)
        self._places.clear()

    def _clear(self, stream_no: int, tree: _Tree) -> None:
        for statement in _FORGET:
            self._tx.execute(statement, (stream_no,))
        forget_corrections(self._tx, stream_no)
        compactions.forget_compactions(self._tx, stream_no)
        tree.tip = tree.messages = tree.leaves = tree.spent = 0
        self._places.clear()

    def _compact(self, envelope: Envelope, event: CompactionAdded) -> None:
        stream_no = envelope.stream_no
        start, end = (self._place(stream_no, one) for one in (event.from_message_id, event.to_message_id))
        self._tx.execute(
            compactions.INSERT_COMPACTION,
            (
                envelope.position,
                stream_no,
                event.id,
                envelope.stream_id,
                event.from_message_id,
                event.to_message_id,
                self._tx.dialect.time(envelope.recorded_at),
                start.run,
                start.ordinal,
                end.run,
                end.ordinal,
                0,
                estimate_parts_tokens([{"type": "text", "text": event.summary}], self._estimate),
                event.summary,
            ),
        )

    def _place(self, stream_no: int, message_id: str) -> _Place:
        place = self._places.get((stream_no, message_id))
        if place is None:
            place = self._places[stream_no, message_id] = _Place(*self._tx.fetch(_PLACE, (stream_no, message_id))[0])
        return place

    def _tree(self, stream_no: int) -> _Tree:
        tree = self._trees.get(stream_no)
        if tree is None:
            tree = self._trees[stream_no] = _Tree(is_new=True)
            for tip, size, leaves, spent, version, tip_id, *place in self._tx.fetch(_TREE, (stream_no,)):
                if tip_id is not None:
                    # Most messages hang on the tip: its place is read along.
                    self._places[stream_no, tip_id] = _Place(*place)
                tree = self._trees[stream_no] = _Tree(tip, size, leaves, spent, version)
        return tree
