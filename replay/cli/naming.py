"""What a short name stands for: the beginning of a message's id in its session, the position or the id of an event."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, select

from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.statements import Statement
from eventstore.tables import events
from projections.message import COMPACTION_PREFIX
from projections.tree_tables import messages
from replay.cli.failures import NOT_FOUND, USAGE, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replay.cli.options import Run
    from sessions.store import Store

MOST: Final = 4
"""How many that a name could stand for are looked up: one more than are told."""
LAST_CHARACTER: Final = chr(0x10FFFF)

_of_stream = messages.c.stream_no == bindparam("stream_no")
_MESSAGE = Statement(select(messages.c.id).where(_of_stream, messages.c.id == bindparam("id")), "stream_no", "id")
_MESSAGES = Statement(
    select(messages.c.id)
    .where(
        _of_stream,
        messages.c.id.between(bindparam("first"), bindparam("last")),
        func.substr(messages.c.id, 1, bindparam("length")) == bindparam("beginning"),
    )
    .order_by(messages.c.id)
    .limit(MOST),
    "stream_no",
    "first",
    "last",
    "length",
    "beginning",
)
_AT = Statement(select(events.c.position).where(events.c.position == bindparam("position")), "position")
_EVENT = Statement(
    select(events.c.position).where(events.c.event_id == bindparam("event_id")).order_by(events.c.position).limit(MOST),
    "event_id",
)
_EVENTS = Statement(
    select(events.c.position)
    .where(
        events.c.event_id.between(bindparam("first"), bindparam("last")),
        func.substr(events.c.event_id, 1, bindparam("length")) == bindparam("beginning"),
    )
    .order_by(events.c.position)
    .limit(MOST),
    "first",
    "last",
    "length",
    "beginning",
)


async def find_message(run: Run, store: Store, session_id: str, name: str) -> str:
    """The id of the message that a person means: by its id, or by a beginning that no other id of the session has."""
    graph = f"`{run.hint('graph', session_id)}` shows them"
    if not name:
        raise Failure("the id of a message is empty", graph, exit_code=USAGE)
    found = await store.log.read(partial(_match_messages, session_id=session_id, name=name))
    if not found:
        raise Failure(f"session {session_id!r} has no message {name!r}", graph, exit_code=NOT_FOUND)
    return _only("message", name, found, f"give more of the id: {graph}")


async def find_place(run: Run, store: Store, session_id: str, name: str) -> str:
    """The id of a message, as `find_message` finds it, or that of an overlay, which means the last one it covers."""
    return name if name.startswith(COMPACTION_PREFIX) else await find_message(run, store, session_id, name)


async def find_event(run: Run, store: Store, name: str) -> int:
    """The position of the event that a person means: by its position, its id, or a beginning of the id."""
    log = f"`{run.hint('log', '--all')}` lists them"
    if not name:
        raise Failure("the position or id of an event is empty", log, exit_code=USAGE)
    found = await store.log.read(partial(_match_events, name=name))
    if not found:
        raise Failure(f"there is no event {name!r}", log, exit_code=NOT_FOUND)
    positions = [str(position) for position in found]
    return int(_only("event", name, positions, f"`{run.hint('event', positions[0])}` shows the one at this position"))


def _match_messages(tx: Tx, session_id: str, name: str) -> list[str]:
    stream_no, _ = find_stream(tx, session_id)
    rows = tx.fetch(_MESSAGE, (stream_no, name))
    rows = rows or tx.fetch(_MESSAGES, (stream_no, name, name + LAST_CHARACTER, len(name), name))
    return [row[0] for row in rows]


def _match_events(tx: Tx, name: str) -> list[int]:
    # No position begins with a zero, and the ids that are given by themselves all do.
    rows = tx.fetch(_AT, (int(name),)) if _is_position(name) else []
    rows = rows or tx.fetch(_EVENT, (name,)) or tx.fetch(_EVENTS, (name, name + LAST_CHARACTER, len(name), name))
    return [row[0] for row in rows]


def _is_position(name: str) -> bool:
    return name.isascii() and name.isdecimal() and not name.startswith("0") and len(name) < len(str(1 << 63))


def _only(what: str, name: str, found: Sequence[str], hint: str) -> str:
    if len(found) > 1:
        first = ", ".join(found[: MOST - 1])
        more = " …" if len(found) == MOST else ""
        raise Failure(f"{name!r} stands for more than one {what}: {first}{more}", hint, exit_code=USAGE)
    return found[0]
