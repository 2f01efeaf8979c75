"""Edits and deletions in the tree's tables: a row and its neighbours change, and the sums of what hangs below.

A deletion leaves a hole where the message stood. What hung below it hangs on its nearest surviving ancestor, and the
run goes on behind the hole; the message before it is sealed, since the ordinals of holes are not given again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from sqlalchemy import bindparam, delete, insert, select, update

from eventstore.events import MessageUpdated
from eventstore.ports import Tx
from eventstore.statements import Statement
from projections.compactions import forget_compactions, mark_stale, shrink
from projections.corrections import Correction, add_corrections, forget_corrections
from projections.message import own_time
from projections.paths import END, Range, last_on, nearest_below, newest_below, path_to_place, place_of
from projections.tokens import estimate_parts_tokens
from projections.tree_tables import continues, messages, runs, spent_ids

_with_id = (messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id"))
_CHANGING = Statement(
    select(
        messages.c.row_id,
        messages.c.parent_id,
        messages.c.run,
        messages.c.ordinal,
        messages.c.tokens,
        messages.c.bytes,
        (messages.c.sealed == 1)
        | continues
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
_HAS_FORKS = Statement(
    select(1).where(runs.c.stream_no == bindparam("stream_no"), runs.c.parent_run == bindparam("run")).limit(1),
    "stream_no",
    "run",
)
_PARENT_RUN = Statement(
    select(runs.c.parent_run).where(runs.c.stream_no == bindparam("stream_no"), runs.c.run == bindparam("run")),
    "stream_no",
    "run",
)
_DROP_RUN = Statement(
    delete(runs).where(runs.c.stream_no == bindparam("stream_no"), runs.c.run == bindparam("run")), "stream_no", "run"
)
_INSERT_SPENT = Statement(insert(spent_ids), "stream_no", "id")
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


class Deleted(msgspec.Struct, frozen=True):
    """What a deletion takes from a tree: messages and, below zero, leaves; and the row of its new tip, if it moves."""

    messages: int
    leaves: int
    tip: int | None


def update_message(tx: Tx, stream_no: int, event: MessageUpdated, estimate: Callable[[str], int]) -> None:
    """Replace a message's content."""
    message, content = event.message, bytes(event.raw)
    row_id, _, run, ordinal, tokens, size, has_children = tx.fetch(_CHANGING, (stream_no, message["id"]))[0]
    new_tokens = estimate_parts_tokens(message["parts"], estimate)
    change = Correction(0, new_tokens - tokens, len(content) - size)
    # Of a message with nothing below it the sums are its own.
    on_row = (0, 0) if has_children else (change.tokens, change.bytes)
    tx.execute(_UPDATE_MESSAGE, (message["role"], content.decode(), new_tokens, len(content), *on_row, row_id))
    if has_children:
        add_corrections(tx, {(stream_no, run, ordinal): change})
    time = own_time(message)
    if time is not None:
        tx.execute(_SET_TIME, (tx.dialect.time(time), row_id))
    mark_stale(tx, stream_no, run, ordinal)


def delete_messages(tx: Tx, stream_no: int, message_ids: Iterable[str]) -> Deleted:
    """Delete messages, all of which are there, and splice what hung below them."""
    tip = place_of(tx, stream_no, None)
    gone = {name: row for name in message_ids for row in tx.fetch(_CHANGING, (stream_no, name))}
    places = {name: (row[2], row[3]) for name, row in gone.items()}
    leaves = -sum(not nearest_below(tx, stream_no, *place) for place in places.values())
    tx.executemany(_DELETE, [(row[0],) for row in gone.values()])
    tx.executemany(_INSERT_SPENT, [(stream_no, name) for name in gone])
    corrections = {(stream_no, *places[name]): Correction(-1, -row[4], -row[5]) for name, row in gone.items()}
    add_corrections(tx, corrections)
    before = [last_on(tx, stream_no, [Range(run, 1, ordinal - 1)]) for run, ordinal in places.values()]
    tx.executemany(_SEAL, [(row_id,) for row_id in {one.row_id for one in before if one}])
    tops = {name: row[1] for name, row in gone.items() if row[1] not in gone}
    for name, parent_id in tops.items():
        below = nearest_below(tx, stream_no, *places[name])
        tx.executemany(_SET_PARENT, [(parent_id, child.row_id) for child in below])
    for parent_id in {*tops.values()} - {None}:
        place = place_of(tx, stream_no, parent_id)
        leaves += place is not None and not nearest_below(tx, stream_no, *place)
    shrink(tx, stream_no, {*places.values()})
    new_tip = None
    if tip is not None and tip in places.values():
        new_tip = newest_below(tx, stream_no, last_on(tx, stream_no, path_to_place(tx, stream_no, *tip)))
    for run in {run for run, _ in places.values()}:
        _drop_empty_runs(tx, stream_no, run)
    return Deleted(len(gone), leaves, new_tip)


def _drop_empty_runs(tx: Tx, stream_no: int, run: int) -> None:
    """Drop a run that nothing is left of, in it or forking from it, and then those above it of which this holds too.

    Where one reply after the other is deleted and given again, their runs would have to be looked through for ever.
    """
    while run and not last_on(tx, stream_no, [Range(run, 1, END)]) and not tx.fetch(_HAS_FORKS, (stream_no, run)):
        parents = tx.fetch(_PARENT_RUN, (stream_no, run))
        tx.execute(_DROP_RUN, (stream_no, run))
        forget_corrections(tx, stream_no, run)
        run = parents[0][0] if parents else 0


def clear_messages(tx: Tx, stream_no: int) -> None:
    """Delete everything that a session's tree holds."""
    for statement in _FORGET:
        tx.execute(statement, (stream_no,))
    forget_corrections(tx, stream_no)
    forget_compactions(tx, stream_no)
