"""The message tree: every message in a run and its place there, so that a path is a few index ranges.

Appends behind the tip add rows and touch none; edits and deletions change the rows they name and their
neighbours, and leave what they change for all that hangs below to the corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from sqlalchemy import bindparam, insert, select, update

from eventstore.envelope import Envelope
from eventstore.events import (
    CompactionAdded,
    LeafSelected,
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    SessionDeleted,
)
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from projections import compactions
from projections.base import Projection
from projections.changes import clear_messages, delete_messages, update_message
from projections.corrections import corrections
from projections.message import own_time, with_own_time
from projections.paths import nearest_below
from projections.stored import Tree, keep_tree, take_tree
from projections.tokens import estimate_parts_tokens
from projections.tree_tables import messages, place_columns, runs, spent_ids, trees

_with_id = (messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id"))
_PLACE = Statement(select(*place_columns).where(*_with_id), "stream_no", "id")
_INSERT_MESSAGE = Statement(insert(messages), *messages.columns.keys())
_INSERT_RUN = Statement(insert(runs), *runs.columns.keys())
_INSERT_TREE = Statement(insert(trees), *trees.columns.keys())
_tree_state = ("tip", "messages", "leaves", "spent", "deleted", "position")
_UPDATE_TREE = Statement(
    update(trees)
    .where(trees.c.stream_no == bindparam("the_stream"))
    .values({name: bindparam(f"to_{name}") for name in (*_tree_state, "estimator")}),
    *(f"to_{name}" for name in (*_tree_state, "estimator")),
    "the_stream",
)


class MessageTree(Projection):
    """Messages, their runs, each session's tip and its compactions.

    `estimate` gives a text's tokens for the cached sums; a session's row names the one used when it was written.
    """

    name = "message_tree"
    revision = 3
    handles = (
        MessageAppended,
        MessageUpdated,
        MessagesDeleted,
        MessagesCleared,
        LeafSelected,
        CompactionAdded,
        SessionDeleted,
    )
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
    # A further child starts a run: the ordinal behind it is taken, or was.
    taken: bool = False
    has_children: bool = False


class _Group:
    """The rows that a group of events makes, with what they build on read once.

    Appends are collected and written together; whatever else changes messages finds the tables up to date.
    """

    def __init__(self, tx: Tx, estimate: Callable[[str], int], estimator: str) -> None:
        self._tx = tx
        self._estimate = estimate
        self._estimator = estimator
        self._places: dict[tuple[int, str], _Place] = {}
        self._trees: dict[int, Tree] = {}
        self._message_rows: list[Row] = []
        self._run_rows: list[Row] = []

    def apply(self, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        tree = self._tree(stream_no)
        if envelope.position <= tree.position:
            return
        if isinstance(event, MessageAppended):
            self._append(envelope, event, tree)
            return
        if isinstance(event, LeafSelected):
            tree.tip = self._place(stream_no, event.message_id).row_id
        else:
            self.write()
            tree = self._tree(stream_no)
            if isinstance(event, MessageUpdated):
                update_message(self._tx, stream_no, event, self._estimate)
            elif isinstance(event, MessagesDeleted):
                gone = delete_messages(self._tx, stream_no, event.message_ids)
                tree.messages -= gone.messages
                tree.spent += gone.messages
                tree.leaves += gone.leaves
                tree.tip = tree.tip if gone.tip is None else gone.tip
            elif isinstance(event, MessagesCleared | SessionDeleted):
                clear_messages(self._tx, stream_no)
                tree.tip = tree.messages = tree.leaves = tree.spent = 0
                tree.deleted = int(isinstance(event, SessionDeleted))
            elif isinstance(event, CompactionAdded):
                self._compact(envelope, event)
            # What was read of places before this event may be so no longer.
            self._places.clear()
        tree.position = envelope.position
        tree.turn()

    def write(self) -> None:
        """Write what was collected, and forget what was read."""
        turned = [(no, tree.is_new, tree.row) for no, tree in self._trees.items() if tree.row]
        new = [(no, *row, self._estimator) for no, is_new, row in turned if is_new]
        old = [(*row, self._estimator, no) for no, is_new, row in turned if not is_new]
        self._tx.executemany(_INSERT_RUN, self._run_rows)
        self._tx.executemany(_INSERT_MESSAGE, self._message_rows)
        self._tx.executemany(_INSERT_TREE, new)
        self._tx.executemany(_UPDATE_TREE, old)
        self._keep()
        self._places, self._trees, self._message_rows, self._run_rows = {}, {}, [], []

    def _keep(self) -> None:
        """Remember the trees whose tip was just appended: most messages hang on it."""
        for (stream_no, message_id), place in self._places.items():
            tree = self._trees.get(stream_no)
            if tree is not None and tree.tip == place.row_id and not place.taken and not place.has_children:
                tree.message_id, tree.is_new, tree.row = message_id, False, None
                tree.place = (place.row_id, place.run, place.ordinal, place.path_tokens, place.path_bytes, 0, 0)
                keep_tree(self._tx, stream_no, tree)

    def _append(self, envelope: Envelope, event: MessageAppended, tree: Tree) -> None:
        stream_no, message = envelope.stream_no, event.message
        message_id = message["id"]
        content = bytes(event.raw) if event.created_at is None else with_own_time(message, event.created_at)
        tokens = estimate_parts_tokens(message["parts"], self._estimate)
        run, parent_run, fork_ordinal = envelope.version, 0, 0
        path_tokens, path_bytes = tokens, len(content)
        follows = False
        if event.parent_id is None:
            tree.leaves += 1
        else:
            parent = self._place(stream_no, event.parent_id)
            path_tokens += parent.path_tokens
            path_bytes += parent.path_bytes
            fork_ordinal = parent.ordinal
            if parent.taken:
                parent_run = parent.run
            else:
                run = parent.run
            follows = parent.row_id == tree.tip and not parent.taken
            tree.leaves += parent.has_children
            parent.taken = parent.has_children = True
        if run == envelope.version:
            self._run_rows.append((stream_no, run, parent_run, fork_ordinal))
        place = _Place(
            envelope.position, run, fork_ordinal + 1, path_tokens, path_bytes, taken=False, has_children=False
        )
        self._places[stream_no, message_id] = place
        tree.tip = tree.position = place.row_id
        tree.messages += 1
        if not follows:
            tree.turn()
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
            place = self._known(stream_no, message_id, self._tx.fetch(_PLACE, (stream_no, message_id))[0])
        return place

    def _known(self, stream_no: int, message_id: str, row: Row) -> _Place:
        row_id, run, ordinal, path_tokens, path_bytes, sealed, continued = row
        # Only of a sealed message something may hang in another run alone.
        has_children = continued or (sealed and bool(nearest_below(self._tx, stream_no, run, ordinal)))
        place = _Place(row_id, run, ordinal, path_tokens, path_bytes, bool(sealed or continued), bool(has_children))
        self._places[stream_no, message_id] = place
        return place

    def _tree(self, stream_no: int) -> Tree:
        tree = self._trees.get(stream_no)
        if tree is None:
            tree = self._trees[stream_no] = take_tree(self._tx, stream_no)
            if tree.message_id is not None:
                # Most messages hang on the tip: its place is read along.
                self._known(stream_no, tree.message_id, tree.place)
        return tree
