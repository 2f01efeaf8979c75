from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text

from eventstore.events import UsageAdded
from eventstore.statements import Statement
from projections.statistics import OfDay, OfModel, OfSession, Totals, by_day, by_model, by_session, by_type, totals
from sessions import SessionManager, Store, open_store
from tests.cli.running import said

START = dt.datetime(2026, 5, 1, 23, 59, 59, tzinfo=dt.UTC)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Yield a store in memory whose clock goes on by half a second with each event, over midnight."""
    now = START

    def clock() -> dt.datetime:
        nonlocal now
        now += dt.timedelta(seconds=0.5)
        return now

    async with open_store("sqlite://", clock=clock) as store:
        yield store


async def sizes(store: Store) -> dict[str, int]:
    """Return the bytes of the payloads of each session."""
    query = Statement(text("SELECT stream_id, payload FROM events JOIN streams USING (stream_no)"))
    found: dict[str, int] = {}
    for stream_id, payload in await store.log.read(lambda tx: tx.fetch(query)):
        found[stream_id] = found.get(stream_id, 0) + len(payload.encode())
    return found


async def test_empty(store: Store) -> None:
    """An empty store has nothing to count."""
    assert await store.log.read(totals) == Totals(0, 0, 0)
    for query in (by_day, by_type, by_session, by_model):
        assert await store.log.read(lambda tx, query=query: list(query(tx))) == []  # type: ignore[misc]


async def test_days(store: Store) -> None:
    """Events are counted by the day of UTC on which they were recorded, the newest day first, with their bytes."""
    for name in ("Ein Straßenname", "雨", "third"):
        await SessionManager(store).create(name)
    first, second = (
        len(f'{{"event":{{"type":"session_created","name":"{name}"}}}}'.encode()) for name in ("Ein Straßenname", "雨")
    )
    days = await store.log.read(lambda tx: list(by_day(tx)))
    assert [(day.day, day.events) for day in days] == [(dt.date(2026, 5, 2), 2), (dt.date(2026, 5, 1), 1)]
    assert days[1].bytes == first
    assert days[0].bytes == sum((await sizes(store)).values()) - first > second


async def test_types_and_sessions(store: Store) -> None:
    """Events are counted by type and by session, the most first; a deleted session has its events and no name."""
    manager = SessionManager(store)
    await manager.create("First", id="a")
    await manager.get_session("b").append_messages(said("one", "two", "three"))
    await manager.delete("b")
    types = await store.log.read(lambda tx: list(by_type(tx)))
    assert [(one.type, one.events) for one in types] == [
        ("message_appended", 3),
        ("session_created", 1),
        ("session_deleted", 1),
    ]
    size = await sizes(store)
    assert await store.log.read(lambda tx: list(by_session(tx))) == [
        OfSession(session="b", name=None, events=4, bytes=size["b"]),
        OfSession(session="a", name="First", events=1, bytes=size["a"]),
    ]
    assert await store.log.read(totals) == Totals(5, 1, 5)


async def test_models(store: Store) -> None:
    """Usage is of the model that it names, else of its session's, else of none; the dearest model comes first."""
    manager = SessionManager(store)
    await manager.create("With a model", id="a", model="small")
    await manager.create("Without", id="b")
    await manager.add_usage("a", 1, 2, 0.5)
    await manager.add_usage("b", 5, 0, 0.0)
    for stream in ("a", "b"):
        used = UsageAdded(input_tokens=10, output_tokens=20, cost=1.0, model="large")
        await store.log.append(stream, [used])
    assert await store.log.read(lambda tx: list(by_model(tx))) == [
        OfModel(model="large", events=2, input_tokens=20, output_tokens=40, cost=2.0),
        OfModel(model="small", events=1, input_tokens=1, output_tokens=2, cost=0.5),
        OfModel(model=None, events=1, input_tokens=5, output_tokens=0, cost=0.0),
    ]


async def test_usage_that_nobody_understands_is_left_out(store: Store) -> None:
    """Usage that a newer program recorded counts as an event, and not towards what is known of the models."""
    await SessionManager(store).create("With a model", id="a", model="small")
    await SessionManager(store).add_usage("a", 1, 2, 0.5)
    known = await store.log.read(lambda tx: list(by_model(tx)))
    newer = Statement(
        text(
            "INSERT INTO events SELECT 99, stream_no, 99, 'newer', type, 99, recorded_at, salt, payload,"
            " payload_digest, hash FROM events WHERE type = 'usage_added'"
        )
    )
    await store.log.database.write(lambda tx: tx.execute(newer))
    assert await store.log.read(lambda tx: list(by_model(tx))) == known
    types = await store.log.read(lambda tx: list(by_type(tx)))
    assert [(one.type, one.events) for one in types] == [("usage_added", 2), ("session_created", 1)]


async def test_sums_larger_than_a_column(store: Store) -> None:
    """The sum over sessions may be larger than a database's integers."""
    manager = SessionManager(store)
    most: Any = 2**62
    for name in ("a", "b", "c"):
        await manager.create(name, id=name, model="m")
        await manager.add_usage(name, most, most, 0.0)
    ((used),) = await store.log.read(lambda tx: list(by_model(tx)))
    assert (used.input_tokens, used.output_tokens) == (3 * 2**62, 3 * 2**62)


def test_day_is_a_record() -> None:
    """A record says by what it was counted."""
    import msgspec

    encoded = msgspec.json.encode(OfDay(day=dt.date(2026, 5, 1), events=1, bytes=2))
    assert encoded == b'{"by":"day","day":"2026-05-01","events":1,"bytes":2}'
