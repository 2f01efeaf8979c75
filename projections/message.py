"""What the projections read in a message: its text for search, and the time it says it was made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any


def message_text(message: Mapping[str, Any]) -> str:
    """The text parts of a message joined by newlines; other parts are not searched."""
    return "\n".join(
        part["text"] for part in message["parts"] if part["type"] == "text" and isinstance(part.get("text"), str)
    )


def own_time(message: Mapping[str, Any]) -> dt.datetime | None:
    """The time in a message's `createdAt`, in UTC; None without one or when it cannot be read as ISO-8601.

    A time without a zone is taken as UTC, so that it means the same on every machine.
    """
    given = message.get("createdAt")
    if not isinstance(given, str):
        return None
    try:
        time = dt.datetime.fromisoformat(given)
        return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
