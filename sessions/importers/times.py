"""Times as sources write them, and as messages carry them."""

from __future__ import annotations

import datetime as dt
from typing import Final

import msgspec

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MOST_SECONDS: Final = 10**11
MOST_MILLISECONDS: Final = 10**14


def read_time(value: object) -> dt.datetime | None:
    """The aware UTC time, in ms, of a number of seconds, ms or µs since 1970 (told apart by size) or of ISO-8601 text.

    A number is taken to the nearest ms, as a float is never exact; further digits of a text are cut. Zero, negative
    numbers and whatever is no time give None.
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _of_number(value)
        if isinstance(value, str):
            time = msgspec.convert(value, dt.datetime)
            time = time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC)
            return time.replace(microsecond=time.microsecond // 1000 * 1000)
    except (ValueError, ArithmeticError, msgspec.ValidationError):
        pass
    return None


def wire_time(time: dt.datetime) -> str:
    """A UTC time as messages carry it: ISO-8601 in ms."""
    return time.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _of_number(value: float) -> dt.datetime | None:
    if not value > 0:
        return None
    milliseconds = value * 1000 if value < MOST_SECONDS else value if value < MOST_MILLISECONDS else value / 1000
    return EPOCH + dt.timedelta(milliseconds=round(milliseconds))
