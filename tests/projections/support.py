"""What the tests of projections share: events to fold, stores to fold them in, queries on one session."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import select

from eventstore import CompactionAdded, MessageAppended, MessagesCleared, MessagesDeleted, MessageUpdated
from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.statements import Row, Statement
from projections import Projection
from projections.stored import tree_of
from projections.tree_tables import messages
from sessions import Session, Store, open_store

T = TypeVar("T")

NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


class Tip(NamedTuple):
    """Where a tree stands: the tip's id, and how many ids are in use and spent."""

    message_id: str | None = None
    messages: int = 0
    spent: int = 0


def tip_of(tx: Tx, stream_no: int) -> Tip:
    """Return where a tree stands."""
    tree = tree_of(tx, stream_no)
    return Tip(tree.message_id, tree.messages, tree.spent)


def _raw(name: str, text: str, role: str, more: dict[str, Any]) -> msgspec.Raw:
    message = {"id": name, "role": role, "parts": [{"type": "text", "text": text}], **more}
    return msgspec.Raw(msgspec.json.encode(message))


def appended(name: str, parent: str | None = None, text: str = "a b c", **event: Any) -> MessageAppended:
    """Return the event that appends a message."""
    return MessageAppended(raw=_raw(name, text, "user", {}), parent_id=parent, **event)


def chain(*names: str, parent: str | None = None) -> list[MessageAppended]:
    """Return the events that append messages, each under the one before it."""
    return [appended(name, above) for name, above in zip(names, (parent, *names), strict=False)]


def updated(name: str, text: str, *, role: str = "user", **more: Any) -> MessageUpdated:
    """Return the event that replaces a message's content."""
    return MessageUpdated(raw=_raw(name, text, role, more))


def deleted(*names: str) -> MessagesDeleted:
    """Return the event that deletes messages."""
    return MessagesDeleted(message_ids=list(names))


def cleared() -> MessagesCleared:
    """Return the event that clears a session."""
    return MessagesCleared()


def compacted(name: str, first: str, last: str, summary: str = "in short") -> CompactionAdded:
    """Return the event that puts a summary over a stretch of a path."""
    return CompactionAdded(id=name, summary=summary, from_message_id=first, to_message_id=last)


def opened(**options: Any) -> Any:
    """Open a store in memory whose clock stands still."""
    return open_store("sqlite://", clock=lambda: NOON, **options)


async def on(store: Store, query: Callable[[Tx, int], T], session_id: str = "s") -> T:
    """Run a query with the number of a session's stream."""
    return await store.log.read(lambda tx: query(tx, find_stream(tx, session_id)[0]))


async def rows(store: Store, *columns: Any) -> list[Row]:
    """Return these columns of every message, in the order of the log."""
    query = Statement(select(*columns).order_by(messages.c.row_id))
    return await store.log.read(lambda tx: tx.fetch(query))


async def dump(store: Store, name: str = "message_tree", stream_no: int | None = None) -> list[Row]:
    """Return every row that a projection holds, or those of one stream."""
    chosen = next(one for one in store.log.projections if isinstance(one, Projection) and one.name == name)
    return await store.log.read(lambda tx: list(chosen.dump(tx, stream_no)))


async def say(
    store: Store, names: Sequence[str], parent: str | None = None, *, size: int = 1, session: str = "s"
) -> None:
    """Append messages with texts of this size, each under the one before it."""
    given = [{"id": name, "role": "user", "parts": [{"type": "text", "text": "x" * size}]} for name in names]
    await Session.create(store).for_session(session).append_messages(given, parent)


def ids(found: Iterable[Row]) -> list[str]:
    """Return the ids in rows that begin with a message's content."""
    return [msgspec.json.decode(row[0])["id"] for row in found]
