"""What calls on sessions take: checks that give the value as it is stored, or raise a typed error."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from eventstore.errors import InvalidArgumentError, InvalidCompactionError, LimitExceededError
from eventstore.limits import Limits, check_id, clean_text
from projections.directory import NO_SESSION
from sessions.appending import Auto, Parent
from sessions.message import Message, lookup_id
from sessions.store import Opening, Store

Given = Message | Mapping[str, Any]


def checked_store(store: object) -> Store:
    """The store itself; raises InvalidArgumentError for what is none, like one that was never awaited."""
    check_awaited(store)
    if not isinstance(store, Store):
        raise InvalidArgumentError("store", f"must be an open store, not {type(store).__name__}")
    return store


def check_awaited(store: object) -> None:
    """Raise InvalidArgumentError for a store that nobody has opened yet."""
    if isinstance(store, Opening):
        raise InvalidArgumentError("store", "is not open yet: await open_store(...)")


def checked_session_id(session_id: object, store: Store, name: str = "session_id") -> str:
    """A session id as it is stored; raises InvalidArgumentError or LimitExceededError."""
    checked = check_id(session_id, name, store.limits)
    if checked.startswith(NO_SESSION):
        raise InvalidArgumentError(name, f"must not start with {' or '.join(NO_SESSION)}")
    return checked


def checked_parent(parent_id: object) -> Parent:
    """A parent as it is looked up: an id, None for a root, or AUTO."""
    if isinstance(parent_id, str):
        return lookup_id(parent_id, "parent_id")
    if parent_id is not None and not isinstance(parent_id, Auto):
        raise InvalidArgumentError("parent_id", f"must be a string, not {type(parent_id).__name__}")
    return parent_id


def checked_messages(messages: object) -> Iterable[Given]:
    """Messages to append; raises InvalidArgumentError for one message where a list of them belongs."""
    if not isinstance(messages, Iterable) or isinstance(messages, (str, bytes, Mapping)):
        raise InvalidArgumentError("messages", f"must be a list of messages, not {type(messages).__name__}")
    return messages


def checked_ids(ids: object) -> list[str]:
    """Ids of messages, each once; raises InvalidArgumentError for one id where a list of them belongs."""
    if not isinstance(ids, Iterable) or isinstance(ids, (str, bytes)):
        raise InvalidArgumentError("ids", f"must be a list of ids, not {type(ids).__name__}")
    return list(dict.fromkeys(lookup_id(one, f"ids[{index}]") for index, one in enumerate(ids)))


def checked_time(time: object, name: str) -> dt.datetime:
    """An aware time in UTC."""
    if not isinstance(time, dt.datetime) or time.tzinfo is None:
        raise InvalidArgumentError(name, "must be an aware time")
    try:
        return time.astimezone(dt.UTC)
    except OverflowError:
        raise InvalidArgumentError(name, "lies beyond the years 1 to 9999 in UTC") from None


def checked_summary(summary: object, session_id: str, limits: Limits) -> str:
    """The summary of a compaction as it is stored; a blank one is an InvalidCompactionError."""
    if not isinstance(summary, str):
        raise InvalidArgumentError("summary", f"must be a string, not {type(summary).__name__}")
    text = clean_text(str.__str__(summary))
    if not text.strip():
        raise InvalidCompactionError(session_id, "the summary is blank")
    if len(text.encode()) > limits.message_bytes:
        raise LimitExceededError("message_bytes", limits.message_bytes, "summary")
    return text


def check_count(value: object, name: str, *, least: int = 0) -> None:
    """Raise InvalidArgumentError for what is no whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgumentError(name, f"must be a number from {least} on")


def checked_function(value: Any, name: str, *, or_none: bool = False) -> Any:
    """A function; raises InvalidArgumentError for what cannot be called."""
    if not callable(value) and not (or_none and value is None):
        raise InvalidArgumentError(name, f"must be a function, not {type(value).__name__}")
    return value


def check_search(query: object, limit: object, order: object) -> None:
    """Raise InvalidArgumentError for what cannot be searched; any text can."""
    if not isinstance(query, str):
        raise InvalidArgumentError("query", f"must be a string, not {type(query).__name__}")
    check_count(limit, "limit")
    if order not in ("relevance", "newest"):
        raise InvalidArgumentError("order", "must be 'relevance' or 'newest'")
