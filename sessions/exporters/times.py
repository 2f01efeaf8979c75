"""Times as exports write them, the same on every machine."""

from __future__ import annotations

import datetime as dt


def wire_time(time: dt.datetime) -> str:
    """A time for programs: ISO-8601 in UTC, with all its digits."""
    return time.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
