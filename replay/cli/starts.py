"""Where a list of events begins: at a position, at a time, or so many events before the end."""

from __future__ import annotations

import datetime as dt
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

from pytimeparse.timeparse import timeparse
from sqlalchemy import bindparam, func, select

from eventstore.envelope import to_micros
from eventstore.ports import Tx
from eventstore.rows import find_stream
from eventstore.statements import Statement
from eventstore.tables import events
from replay.cli.failures import USAGE, Failure

NOWHERE: Final = 1 << 62
"""A position, or a version, beyond the end of every log."""
DAYS: Final = {"today": 0, "yesterday": 1}

_of_stream = events.c.stream_no == bindparam("stream_no")
_BACKWARDS = Statement(select(events.c.position, events.c.type).order_by(events.c.position.desc()))
_STREAM_BACKWARDS = Statement(
    select(events.c.version, events.c.type).where(_of_stream).order_by(events.c.version.desc()), "stream_no"
)
_SINCE = Statement(select(func.min(events.c.position)).where(events.c.recorded_at >= bindparam("time")), "time")
_STREAM_SINCE = Statement(
    select(func.min(events.c.version)).where(_of_stream, events.c.recorded_at >= bindparam("time")), "stream_no", "time"
)
_STREAM_FROM = Statement(
    select(func.min(events.c.version)).where(_of_stream, events.c.position >= bindparam("position")),
    "stream_no",
    "position",
)


def parse_start(text: str | None, now: dt.datetime) -> int | dt.datetime | None:
    """What a person means by a start: a position, or a time; one without a zone is in this machine's."""
    if text is None:
        return None
    try:
        if text.isdecimal():
            return min(int(text), NOWHERE)
        return parse_time(text, now)
    except (ValueError, OverflowError):
        raise Failure(
            f"{text!r} is neither a position nor a time",
            "a position is 120, a time 2h, yesterday, 2026-05-01 or 2026-05-01T12:00Z",
            exit_code=USAGE,
        ) from None


def parse_time(text: str, now: dt.datetime) -> dt.datetime:
    """The time that a person means: a day's name, an age, or ISO-8601; raises ValueError or OverflowError."""
    if text in DAYS:
        midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        return (midnight - dt.timedelta(days=DAYS[text])).astimezone(dt.UTC)
    # With a colon it is rather a time of day than an age, and one with a sign is not over yet.
    age = None if ":" in text or text[:1] in {"+", "-"} else timeparse(text)
    if age is not None:
        return now - dt.timedelta(seconds=age)
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def start_of(tx: Tx, stream_id: str | None, wanted: int | dt.datetime | None, *, types: str, newest: int | None) -> int:
    """The position, in a stream the version, to begin at; `newest` counts from the end if nothing is wanted."""
    stream = () if stream_id is None else (find_stream(tx, stream_id)[0],)
    if isinstance(wanted, dt.datetime):
        ((first,),) = tx.fetch(_STREAM_SINCE if stream else _SINCE, (*stream, to_micros(wanted)))
        return NOWHERE if first is None else int(first)
    if wanted is not None:
        if not stream:
            return wanted
        ((first,),) = tx.fetch(_STREAM_FROM, (*stream, wanted))
        return NOWHERE if first is None else int(first)
    if not newest:
        return 1
    most = min(newest, NOWHERE)
    backwards = tx.iterate(_STREAM_BACKWARDS if stream else _BACKWARDS, stream)
    places = [place for place, _ in islice((row for row in backwards if fnmatchcase(row[1], types)), most)]
    return places[-1] if places else NOWHERE
