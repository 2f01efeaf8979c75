"""Ways through the tree: the path to a place as index ranges, and what is next to a place up and down.

A place is a run and an ordinal in it, whether or not its message is still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from sqlalchemy import BigInteger, bindparam, func, select

from eventstore.ports import Tx
from eventstore.statements import Statement
from projections.tree_tables import messages, runs, tip_ordinal, tip_run, trees, with_tips

END = (1 << 62) - 1
"""Behind every ordinal."""


class Range(msgspec.Struct, frozen=True):
    """A stretch of a run, both ordinals included; a path is such ranges from the root on."""

    run: int
    first: int
    last: int


class Neighbour(msgspec.Struct, frozen=True, order=True):
    """A message found next to a place; in the order of the log."""

    row_id: int
    id: str
    run: int
    ordinal: int


_found = (messages.c.row_id, messages.c.id, messages.c.run, messages.c.ordinal)
_of_run = (messages.c.stream_no == bindparam("stream_no"), messages.c.run == bindparam("run"))
_between = (*_of_run, messages.c.ordinal.between(bindparam("first"), bindparam("last")))
_FIRST = Statement(
    select(*_found).where(*_between).order_by(messages.c.ordinal).limit(1), "stream_no", "run", "first", "last"
)
_LAST = Statement(
    select(*_found).where(*_between).order_by(messages.c.ordinal.desc()).limit(1), "stream_no", "run", "first", "last"
)
_PLACE = Statement(
    select(messages.c.run, messages.c.ordinal).where(
        messages.c.stream_no == bindparam("stream_no"), messages.c.id == bindparam("id")
    ),
    "stream_no",
    "id",
)
_TIP_PLACE = Statement(
    select(tip_run, tip_ordinal)
    .select_from(with_tips(trees))
    .where(trees.c.stream_no == bindparam("stream_no"), trees.c.tip > 0),
    "stream_no",
)
_up = (
    select(runs.c.run, bindparam("ordinal", type_=BigInteger).label("last"), runs.c.parent_run, runs.c.fork_ordinal)
    .where(runs.c.stream_no == bindparam("stream_no"), runs.c.run == bindparam("run"))
    .cte("up", recursive=True)
)
_up = _up.union_all(
    select(runs.c.run, _up.c.fork_ordinal, runs.c.parent_run, runs.c.fork_ordinal).where(
        runs.c.stream_no == bindparam("stream_no"), runs.c.run == _up.c.parent_run
    )
)
_PATH = Statement(select(_up.c.run, _up.c.fork_ordinal + 1, _up.c.last), "stream_no", "run", "ordinal")
_beginning = (
    (messages.c.stream_no == runs.c.stream_no)
    & (messages.c.run == runs.c.run)
    & (messages.c.ordinal == runs.c.fork_ordinal + 1)
)
_FORKS = Statement(
    select(runs.c.run, runs.c.fork_ordinal, *_found)
    .join_from(runs, messages, _beginning, isouter=True)
    .where(
        runs.c.stream_no == bindparam("stream_no"),
        runs.c.parent_run == bindparam("run"),
        runs.c.fork_ordinal.between(bindparam("first"), bindparam("last")),
    ),
    "stream_no",
    "run",
    "first",
    "last",
)
_of_stream = runs.c.stream_no == bindparam("stream_no")
_below = (
    select(runs.c.run)
    .where(_of_stream, runs.c.parent_run == bindparam("run"), runs.c.fork_ordinal >= bindparam("ordinal"))
    .cte("below", recursive=True)
)
_below = _below.union_all(select(runs.c.run).where(_of_stream, runs.c.parent_run == _below.c.run))


def _newest_of(run: object) -> object:
    last = messages.alias("last")
    newest = select(last.c.row_id).where(last.c.stream_no == bindparam("stream_no"), last.c.run == run)
    return newest.order_by(last.c.ordinal.desc()).limit(1).scalar_subquery()


_NEWEST_BELOW = Statement(select(func.max(_newest_of(_below.c.run))).select_from(_below), "stream_no", "run", "ordinal")
_NEWEST = Statement(select(func.max(_newest_of(runs.c.run))).where(_of_stream), "stream_no")


def place_of(tx: Tx, stream_no: int, message_id: str | None) -> tuple[int, int] | None:
    """The run and the ordinal of a message, or of the tip for None; None when there is no such message."""
    rows = tx.fetch(_TIP_PLACE, (stream_no,)) if message_id is None else tx.fetch(_PLACE, (stream_no, message_id))
    return (rows[0][0], rows[0][1]) if rows else None


def path_to_place(tx: Tx, stream_no: int, run: int, ordinal: int) -> list[Range]:
    """The path from its root to a place."""
    # A run begins after the message that it forks from: by their names they stand in the order of the path.
    return [Range(*row) for row in sorted(tx.fetch(_PATH, (stream_no, run, ordinal)))]


def path_to(tx: Tx, stream_no: int, leaf_id: str | None) -> list[Range] | None:
    """The path from its root to a message, or to the tip for None; None when there is no such message."""
    place = place_of(tx, stream_no, leaf_id)
    if place is None:
        return [] if leaf_id is None else None
    return path_to_place(tx, stream_no, *place)


def lies_on(path: Iterable[Range], run: int, ordinal: int) -> bool:
    """Whether a path, or a stretch of one, goes through a place."""
    return any(part.run == run and part.first <= ordinal <= part.last for part in path)


def first_on(tx: Tx, stream_no: int, path: Iterable[Range]) -> Neighbour | None:
    """The first message that is there on a path or a stretch of one."""
    for part in path:
        for row in tx.fetch(_FIRST, (stream_no, part.run, part.first, part.last)):
            return Neighbour(*row)
    return None


def last_on(tx: Tx, stream_no: int, path: Sequence[Range]) -> Neighbour | None:
    """The last message that is there on a path or a stretch of one."""
    for part in reversed(path):
        for row in tx.fetch(_LAST, (stream_no, part.run, part.first, part.last)):
            return Neighbour(*row)
    return None


def nearest_below(tx: Tx, stream_no: int, run: int, ordinal: int) -> list[Neighbour]:
    """The messages that have nothing but holes between them and a place above them, in log order: its children."""
    found: list[Neighbour] = []
    places = [(run, ordinal)]
    while places:
        run, ordinal = places.pop()
        following = first_on(tx, stream_no, [Range(run, ordinal + 1, END)])
        if following:
            found.append(following)
        stop = following.ordinal - 1 if following else END
        for fork, fork_ordinal, *row in tx.fetch(_FORKS, (stream_no, run, ordinal, stop)):
            if row[0] is None:
                places.append((fork, fork_ordinal))
            else:
                found.append(Neighbour(*row))
    found.sort()
    return found


def newest_below(tx: Tx, stream_no: int, top: Neighbour | None) -> int:
    """The row of the newest leaf at or below a message, or of all for None; 0 when there is none.

    A message is always older than what hangs below it, so the newest of all that are there is a leaf.
    """
    if top is None:
        newest: int | None = tx.fetch(_NEWEST, (stream_no,))[0][0]
        return newest or 0
    own = last_on(tx, stream_no, [Range(top.run, top.ordinal, END)]) or top
    below: int | None = tx.fetch(_NEWEST_BELOW, (stream_no, top.run, top.ordinal))[0][0]
    return max(own.row_id, below or 0)
