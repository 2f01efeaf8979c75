"""How much there is: events and bytes by day, type and session, and what was used by model."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import msgspec
from sqlalchemy import LargeBinary, cast, func, literal, select

from eventstore import codec
from eventstore.events import UsageAdded
from eventstore.ports import Tx
from eventstore.statements import Statement
from eventstore.tables import events, streams
from projections.directory import sessions

MICROS_OF_DAY = 86_400_000_000
EPOCH = dt.date(1970, 1, 1)

_day = (events.c.recorded_at // literal(MICROS_OF_DAY, literal_execute=True)).label("day")
_count = func.count().label("count")
# As bytes, since the length of a text is counted in characters.
_bytes = func.coalesce(func.sum(func.length(cast(events.c.payload, LargeBinary))), 0)
_DAYS = Statement(select(_day, _count, _bytes).group_by(_day).order_by(_day.desc()))
_TYPES = Statement(select(events.c.type, _count, _bytes).group_by(events.c.type).order_by(_count.desc(), events.c.type))
_SESSIONS = Statement(
    select(streams.c.stream_id, sessions.c.name, _count, _bytes)
    .select_from(events)
    .join(streams, streams.c.stream_no == events.c.stream_no)
    .outerjoin(sessions, sessions.c.stream_no == events.c.stream_no)
    .group_by(streams.c.stream_id, sessions.c.name)
    .order_by(_count.desc(), streams.c.stream_id)
)
_USAGE = Statement(
    select(events.c.schema, events.c.payload, sessions.c.model)
    .select_from(events)
    .outerjoin(sessions, sessions.c.stream_no == events.c.stream_no)
    .where(events.c.type == literal(UsageAdded.__struct_config__.tag, literal_execute=True))
    .order_by(events.c.position)
)
_TOTALS = Statement(
    select(
        select(func.count()).select_from(events).scalar_subquery(),
        select(func.count()).select_from(sessions).scalar_subquery(),
        select(func.max(events.c.position)).scalar_subquery(),
    )
)


class OfDay(msgspec.Struct, frozen=True, kw_only=True, tag_field="by", tag="day"):
    """The events recorded on a day of UTC; `bytes` are those of their payloads."""

    day: dt.date
    events: int
    bytes: int


class OfType(msgspec.Struct, frozen=True, kw_only=True, tag_field="by", tag="type"):
    """The events of a type."""

    type: str
    events: int
    bytes: int


class OfSession(msgspec.Struct, frozen=True, kw_only=True, tag_field="by", tag="session"):
    """The events of a session; one that was deleted has no name any more."""

    session: str
    name: str | None
    events: int
    bytes: int


class OfModel(msgspec.Struct, frozen=True, kw_only=True, tag_field="by", tag="model"):
    """What was used of a model; None stands for usage of which nobody said the model."""

    model: str | None
    events: int
    input_tokens: int
    output_tokens: int
    cost: float


class Totals(msgspec.Struct, frozen=True):
    """How many events and sessions there are, and the highest position."""

    events: int
    sessions: int
    high_water: int


def totals(tx: Tx) -> Totals:
    """The numbers of the whole store."""
    ((count, known, position),) = tx.fetch(_TOTALS)
    return Totals(count, known, position or 0)


def by_day(tx: Tx) -> Iterator[OfDay]:
    """What each day has, the newest first."""
    for day, count, size in tx.iterate(_DAYS):
        yield OfDay(day=EPOCH + dt.timedelta(days=day), events=count, bytes=size)


def by_type(tx: Tx) -> Iterator[OfType]:
    """What each type has, the one with the most events first."""
    for kind, count, size in tx.iterate(_TYPES):
        yield OfType(type=kind, events=count, bytes=size)


def by_session(tx: Tx) -> Iterator[OfSession]:
    """What each session has, the one with the most events first."""
    for session_id, name, count, size in tx.iterate(_SESSIONS):
        yield OfSession(session=session_id, name=name, events=count, bytes=size)


def by_model(tx: Tx) -> Iterator[OfModel]:
    """What was used of each model, the dearest first; usage that names no model is of its session's."""
    # Added up here: events are stored in the shape of their time, and sums may be more than a database can hold.
    found: dict[str | None, OfModel] = {}
    for schema, payload, session_model in tx.iterate(_USAGE):
        used, _ = codec.decode(str(UsageAdded.__struct_config__.tag), schema, payload)
        if not isinstance(used, UsageAdded):
            continue
        model = used.model or session_model
        before = found.get(model) or OfModel(model=model, events=0, input_tokens=0, output_tokens=0, cost=0.0)
        found[model] = OfModel(
            model=model,
            events=before.events + 1,
            input_tokens=before.input_tokens + used.input_tokens,
            output_tokens=before.output_tokens + used.output_tokens,
            cost=before.cost + used.cost,
        )
    yield from sorted(
        found.values(), key=lambda one: (-one.cost, -one.input_tokens - one.output_tokens, str(one.model))
    )
