"""What every log promises of reading: bounds, direction, pages, types, unknown events, immutability."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from eventstore import rows
from eventstore.envelope import UnreadableEvent
from eventstore.errors import EventStoreError, IntegrityError, InvalidArgumentError
from eventstore.events import LeafSelected, MessageAppended
from eventstore.log import EventLog
from eventstore.ports import Tx
from tests.eventstore.support import Tally, everything, message, note, notes, sql, stream, take, text_of, texts_of

COLUMNS = "position, stream_no, version, event_id, type, schema, recorded_at, salt, payload, payload_digest, hash"


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read three events at a time, so that few events are many pages."""
    monkeypatch.setattr(rows, "PAGE_EVENTS", 3)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1, None),
        (4, None),
        (1, 7),
        (3, 3),
        (3, 8),
        (10, 10),
        (11, None),
        (5, 4),
        (0, 2),
        (1, 0),
        (9, 99),
    ],
)
async def test_stream_between_versions(log: EventLog, low: int, high: int | None, backwards: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A stream is read between two versions, both included, in either direction, over pages of any size."""
    for name in ("other", "s"):
        await log.append(name, notes(*range(1, 11)))
    found = await stream(log, from_version=low, to_version=high, backwards=backwards)
    wanted = [version for version in range(1, 11) if low <= version <= (10 if high is None else high)]
    assert [e.version for e in found] == (wanted[::-1] if backwards else wanted)
    assert {e.stream_id for e in found} <= {"s"}


async def test_unknown_stream_is_empty(log: EventLog) -> None:
    """A stream that does not exist reads as empty and is at version 0."""
    await log.append("s", notes("a"))
    assert await stream(log, "t") == []
    assert await stream(log, "t", backwards=True) == []
    assert await log.stream_version("t") == 0


async def test_empty_log(log: EventLog) -> None:
    """An empty log reads as empty, and its high water is 0."""
    assert await everything(log) == []
    assert await log.high_water() == 0


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("after", [0, 1, 4, 11, 12, 99])
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 4, 100])
async def test_log_after_a_position(log: EventLog, after: int, limit: int | None) -> None:
    """The log is read after a position, in position order, up to a limit, over pages of any size."""
    for number in range(12):
        await log.append(f"s{number % 3}", notes(number))
    found = await everything(log, after=after, limit=limit)
    assert [e.position for e in found] == [p for p in range(1, 13) if p > after][:limit]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("limit", [None, 1, 5])
async def test_log_of_some_types(log: EventLog, limit: int | None) -> None:
    """`types` keeps the events of those types, over pages that hold none of them too."""
    for number in range(30):
        await log.append("s", [message(f"m{number}") if number % 7 else note(number)])
    assert texts_of(await everything(log, types={"leaf_selected"}, limit=limit)) == ["0", "7", "14", "21", "28"][:limit]
    assert await everything(log, types=["no_such_type"]) == []
    assert await everything(log, types=()) == []
    assert len(await everything(log, types=["message_appended", "leaf_selected"])) == 30


@pytest.mark.parametrize("types", ["leaf_selected", 5, [1], {"leaf_selected": 1}, [b"leaf_selected"]])
async def test_what_is_no_collection_of_types_is_refused(log: EventLog, types: Any) -> None:
    """Types that are one text, or no texts, are refused wherever they are given."""
    await log.append("s", notes("a"))
    reads: list[Callable[[], Awaitable[Any]]] = [
        lambda: everything(log, types=types),
        lambda: take(log.subscribe(after=0, types=types), 1),
    ]
    for read in reads:
        with pytest.raises(InvalidArgumentError) as refused:
            await read()
        assert refused.value.argument == "types"


async def test_large_events_are_read_in_small_pages(log: EventLog) -> None:
    """A page ends at a bound of bytes too, so that large events do not gather in memory."""
    await log.append("s", [message(f"m{number}", "x" * (rows.PAGE_BYTES // 2)) for number in range(6)])
    page, last = await log.read(lambda tx: rows.page_of_all(tx, 0, None))
    assert (len(page), last) == (2, 2)
    assert len(await everything(log)) == 6


async def test_reading_goes_on_while_others_write(log: EventLog) -> None:
    """Appends between two pages neither repeat nor hide what a reader has yet to come to."""
    await log.append("s", notes(*range(1_500)))
    found = []
    async for envelope in log.read_all():
        found.append(envelope.position)
        if len(found) == 10:
            await log.append("s", notes(*range(1_500, 2_000)))
    assert found == list(range(1, 2_001))


async def test_stream_s_end_is_fixed_when_reading_begins(log: EventLog) -> None:
    """A read of a stream ends where the stream ended when the reading began."""
    await log.append("s", notes(*range(10)))
    reading = log.read_stream("s")
    assert (await anext(reading)).version == 1
    await log.append("s", notes("late"))
    assert [e.version async for e in reading] == list(range(2, 11))


async def test_reading_can_be_left_early(log: EventLog) -> None:
    """A reader who leaves in the middle of a page holds up nobody."""
    await log.append("s", notes(*range(100)))
    for _ in range(20):
        async for _envelope in log.read_stream("s"):
            break
        async for _envelope in log.read_all():
            break
    async with asyncio.timeout(2):
        await log.append("s", notes("more"))
        assert await log.stream_version("s") == 101


async def test_many_readers_at_once(log: EventLog) -> None:
    """More readers than there are connections all get everything, also beside a writer."""
    await log.append("s", notes(*range(300)))
    writing = asyncio.ensure_future(asyncio.gather(*(log.append("t", notes(n)) for n in range(50))))
    found = await asyncio.gather(*(stream(log) for _ in range(40)))
    await writing
    assert {len(one) for one in found} == {300}


async def test_read_sees_one_state(log: EventLog, tally: Tally) -> None:
    """A query sees one state of the database, tables and log alike, while others write."""

    def query(tx: Tx) -> tuple[int, int]:
        return rows.high_water(tx), tx.fetch(sql(f"SELECT COUNT(*) FROM {tally.tables[0].name}"))[0][0]

    writing = asyncio.ensure_future(asyncio.gather(*(log.append("s", notes(n)) for n in range(200))))
    while not writing.done():
        end, count = await log.read(query)
        assert end == count
    await writing


@pytest.mark.parametrize("error", [ValueError, StopIteration, KeyError])
async def test_error_in_a_query_is_its_caller_s(log: EventLog, error: type[Exception]) -> None:
    """A query that raises fails its caller at once, and the next ones work."""

    def query(_tx: Tx) -> None:
        raise error("mine")

    async with asyncio.timeout(2):
        for _ in range(20):
            with pytest.raises((error, RuntimeError), match="mine"):
                await log.read(query)
        assert await log.high_water() == 0


async def test_wrong_sql_in_a_query_is_a_typed_error(log: EventLog) -> None:
    """No exception of the driver comes out of a query."""
    with pytest.raises(EventStoreError):
        await log.read(lambda tx: tx.fetch(sql("SELECT 1 FROM nowhere")))


async def test_events_read_back_equal(log: EventLog) -> None:
    """Every value of a message reads back equal, with its keys in their order."""
    given: dict[str, Any] = {
        "z": 1,
        "a": [1.5, -0.0, 1e300, 1 << 70, -(1 << 63), True, None, "\0 \u2028 \U0001f469\u200d\U0001f467 \\u0000 \ud7ff"],
        "": {"nested": {"": []}},
    }
    event = message("m", "text", **given)
    await log.append("s", [event])
    [envelope] = await stream(log)
    assert isinstance(envelope.event, MessageAppended)
    assert msgspec.json.encode(envelope.event.message) == msgspec.json.encode(event.message)
    assert list(envelope.event.message) == ["id", "role", "parts", "z", "a", ""]


async def insert_events(log: EventLog, *events: tuple[int, str, int, str]) -> None:
    """Insert the events of a new stream by SQL, as another program might: position, type, schema and payload."""
    names = COLUMNS.split(", ")
    event = sql(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join(':' + name for name in names)})", *names)
    rows = [
        (position, 1, version, f"id{position}", kind, schema, 0, b"", payload, b"", b"")
        for version, (position, kind, schema, payload) in enumerate(events, start=1)
    ]
    await log.database.write(lambda tx: tx.executemany(event, rows))
    head = sql(
        f"INSERT INTO streams (stream_no, stream_id, version, hash, recorded_at) VALUES (1, 's', {len(events)}, x'', 0)"
    )
    await log.database.write(lambda tx: tx.execute(head))


def payload_of(text: str) -> str:
    """Return the stored payload of a small event."""
    return f'{{"event":{{"type":"leaf_selected","message_id":"{text}"}}}}'


@pytest.mark.parametrize(
    ("kind", "schema", "payload", "reason"),
    [
        ("future.v9", 1, '{"event":{"type":"future.v9"},"metadata":{"a":1}}', "unknown event type"),
        ("leaf_selected", 1, '{"event":{"type":"leaf_selected","message', "broken payload"),
        ("leaf_selected", 1, "", "broken payload"),
        ("leaf_selected", 1, "[]", "broken payload"),
        ("leaf_selected", 1, '{"event":{"type":"leaf_selected"}}', "message_id"),
        ("leaf_selected", 1, '{"event":{"type":"leaf_selected","message_id":7}}', "message_id"),
        ("leaf_selected", 1, '{"event":{"type":"session_created","name":"x"}}', "session_created"),
        ("leaf_selected", 2, '{"event":{"type":"leaf_selected","message_id":"x"}}', "newer"),
        ("leaf_selected", 1, '{"event":' + "[" * 100_000, "broken payload"),
    ],
    ids=["type", "cut off", "empty", "no object", "field missing", "field of another kind", "tag", "schema", "deep"],
)
async def test_event_that_nobody_understands_stops_nobody(
    log: EventLog, kind: str, schema: int, payload: str, reason: str
) -> None:
    """An event that this code cannot read is handed out raw with a reason, and those around it as always."""
    await insert_events(log, (1, "leaf_selected", 1, payload_of("a")), (2, kind, schema, payload))
    await log.append("s", notes("b"), expected=2)
    following = log.subscribe(after=0)
    live = [await anext(following) for _ in range(3)]
    for found in (live, await stream(log), await everything(log), (await stream(log, backwards=True))[::-1]):
        first, odd, last = found
        assert (text_of(first), text_of(last)) == ("a", "b")
        assert isinstance(odd.event, UnreadableEvent)
        assert (odd.type, odd.schema, odd.event.type, odd.event.payload) == (kind, schema, kind, payload)
        assert reason in odd.event.reason


async def test_unknown_keys_are_left_alone(log: EventLog) -> None:
    """An event written by newer code with keys more than are known is read for what is known."""
    payload = '{"new":1,"event":{"x":[],"message_id":"a","type":"leaf_selected"}}'
    await insert_events(log, (1, "leaf_selected", 1, payload))
    assert texts_of(await stream(log)) == ["a"]


def inserting(verb: str, **keys: str) -> str:
    """Return SQL that inserts a copy of the first event under other keys, which are new unless they are given."""
    new = {"position": "99", "stream_no": "1", "version": "99", "event_id": "'new'", **keys}
    columns = ", ".join(new.get(column, column) for column in COLUMNS.split(", "))
    return f"{verb} INTO events SELECT {columns} FROM events WHERE position = 1"


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE events SET payload = '{}' WHERE position = 1",
        "UPDATE events SET payload = NULL, salt = NULL",
        "UPDATE events SET position = 50 WHERE position = 2",
        "UPDATE OR REPLACE events SET position = 1 WHERE position = 2",
        "UPDATE OR IGNORE events SET version = 1 WHERE position = 2",
        "DELETE FROM events WHERE position = 2",
        "DELETE FROM events",
        inserting("INSERT", position="1"),
        inserting("INSERT OR REPLACE", position="1"),
        inserting("INSERT OR REPLACE", version="1"),
        inserting("INSERT OR REPLACE", event_id="event_id"),
        inserting("INSERT OR IGNORE", position="1"),
        inserting("REPLACE", position="'1'"),
        inserting("REPLACE", stream_no="'1'", version="1.0"),
        inserting("INSERT", position="1") + " ON CONFLICT (position) DO UPDATE SET payload = '{}'",
    ],
)
async def test_log_cannot_be_changed(log: EventLog, tampering: str) -> None:
    """The database itself refuses to change, delete or replace an event, by whatever key and by whatever verb."""
    await log.append("s", notes("a", "b", "c"))
    before = await log.read(lambda tx: tx.fetch(sql("SELECT * FROM events")))
    with pytest.raises(IntegrityError, match="append-only"):
        await log.database.write(lambda tx: tx.execute(sql(tampering.replace(":", "\\:"))))
    assert await log.read(lambda tx: tx.fetch(sql("SELECT * FROM events"))) == before
    await log.append("s", notes("d"))


async def test_event_with_new_keys_can_be_inserted(log: EventLog) -> None:
    """What refuses replacement lets a row pass whose keys are all new, so it refuses nothing else."""
    await log.append("s", notes("a"))
    await log.database.write(lambda tx: tx.execute(sql(inserting("INSERT"))))
    assert [e.position for e in await everything(log)] == [1, 99]


@pytest.mark.parametrize("backwards", [False, True])
async def test_stream_that_claims_more_than_there_is(log: EventLog, *, backwards: bool) -> None:
    """A stream whose head was changed to a later version is read to its last event, and the reading ends there."""
    await log.append("s", notes("a", "b"))
    await log.database.write(lambda tx: tx.execute(sql("UPDATE streams SET version = 9")))
    async with asyncio.timeout(2):
        assert [e.version for e in await stream(log, backwards=backwards)] == [2, 1][:: 1 if backwards else -1]


async def test_positions_may_have_gaps(log: EventLog) -> None:
    """Gaps between positions, as a pruned log has, hide nothing from readers, and are not filled later."""
    await insert_events(log, (1, "leaf_selected", 1, payload_of("a")), (5_000, "leaf_selected", 1, payload_of("b")))
    position = (await log.append("s", notes("c"))).envelopes[0].position
    assert texts_of(await everything(log)) == ["a", "b", "c"]
    assert position > 5_000


async def test_frozen_values(log: EventLog) -> None:
    """Envelopes and events are values that cannot be changed."""
    envelope: Any = (await log.append("s", notes("a"))).envelopes[0]
    for thing, name in ((envelope, "version"), (envelope.event, "message_id")):
        with pytest.raises(AttributeError):
            setattr(thing, name, 7)
    assert isinstance(envelope.event, LeafSelected)
