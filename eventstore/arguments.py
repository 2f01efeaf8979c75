"""What callers hand to the log, checked before anything is done with it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from eventstore import codec
from eventstore.envelope import UnreadableEvent
from eventstore.errors import InvalidArgumentError
from eventstore.events import Event
from eventstore.limits import Limits, check_id

LAST: Final = 1 << 62
"""More than any version or position."""


def check_number(value: object, name: str) -> None:
    """Raise InvalidArgumentError for what can be no version, position or count."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LAST:
        raise InvalidArgumentError(name, "must be a number from 0 on")


def check_types(types: Collection[str] | None) -> None:
    """Raise InvalidArgumentError for what is no collection of event types."""
    is_collection = isinstance(types, (list, tuple, set, frozenset)) and all(isinstance(kind, str) for kind in types)
    if types is not None and not is_collection:
        raise InvalidArgumentError("types", "must be a collection of event types")


def checked_events(events: Sequence[Event]) -> list[Event]:
    """The events, of which every one can be read back; raises InvalidArgumentError."""
    if not isinstance(events, (list, tuple)):
        raise InvalidArgumentError("events", f"must be a list of events, not {type(events).__name__}")
    for event in events:
        _check_event(event)
    return list(events)


def checked_ids(event_ids: Sequence[Any], events: Sequence[Event], limits: Limits) -> list[str]:
    """The ids, one for each event, as text; raises InvalidArgumentError or LimitExceededError."""
    if not isinstance(event_ids, (list, tuple)) or len(event_ids) != len(events):
        raise InvalidArgumentError("event_ids", "must be a list with an id for each event")
    as_text = [str(event_id) if isinstance(event_id, uuid.UUID) else event_id for event_id in event_ids]
    return [check_id(event_id, "event_ids", limits) for event_id in as_text]


def _check_event(event: object) -> None:
    if not isinstance(event, Event):
        raise InvalidArgumentError("events", f"must be events, not {type(event).__name__}")
    try:
        stored, _ = codec.decode(event.type, event.schema, codec.encode(event, {}).decode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError("events", f"{event.type} cannot be stored: {error}") from error
    if isinstance(stored, UnreadableEvent):
        raise InvalidArgumentError("events", f"{event.type} could not be read back: {stored.reason}")
    for field in msgspec.structs.fields(event):
        given, kept = getattr(event, field.name), getattr(stored, field.name)
        if not isinstance(given, type(kept)):
            raise InvalidArgumentError("events", f"{event.type}.{field.name} has the wrong type")
