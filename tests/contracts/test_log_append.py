"""What every log promises of an append: expected versions, numbers, several streams, what was written."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import msgspec
import pytest

from eventstore.errors import (
    InvalidArgumentError,
    InvalidMessageError,
    LimitExceededError,
    ReservedIdError,
    StoreClosedError,
    VersionConflictError,
)
from eventstore.events import LeafSelected, MessageAppended, UsageAdded
from eventstore.expected import ANY, NO_STREAM, STREAM_EXISTS, ExpectedVersion
from eventstore.heads import Head, Proposal
from eventstore.log import EventLog
from eventstore.ports import Tx
from tests.eventstore.support import NOON, Tally, everything, note, notes, opened, stream, tallied, texts_of


async def test_append_returns_what_was_recorded(log: EventLog) -> None:
    """An append returns its envelopes as they are read afterwards."""
    committed = await log.append("s", notes("a", "b"), metadata={"actor": "ann"})
    assert committed.result is None
    assert committed.envelopes == await stream(log) == await everything(log)
    first, second = committed.envelopes
    assert (first.version, second.version, first.position, second.position) == (1, 2, 1, 2)
    assert (first.stream_id, first.type, first.schema, first.metadata) == ("s", "leaf_selected", 1, {"actor": "ann"})
    assert first.event == note("a")
    assert first.recorded_at.utcoffset() == dt.timedelta(0)
    assert first.event_id != second.event_id


@pytest.mark.parametrize(
    ("expected", "length", "holds"),
    [
        (ANY, 0, True),
        (ANY, 2, True),
        (NO_STREAM, 0, True),
        (NO_STREAM, 2, False),
        (STREAM_EXISTS, 0, False),
        (STREAM_EXISTS, 2, True),
        (0, 0, True),
        (0, 2, False),
        (2, 2, True),
        (1, 2, False),
        (3, 2, False),
        (1, 0, False),
        (1 << 80, 2, False),
    ],
)
async def test_expected_version_decides(log: EventLog, expected: ExpectedVersion, length: int, holds: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """An append is written exactly when the stream is where its writer believes, else nothing of it is."""
    if length:
        await log.append("s", notes(*range(length)))
    if holds:
        committed = await log.append("s", notes("new"), expected=expected)
        assert committed.envelopes[0].version == length + 1
    else:
        with pytest.raises(VersionConflictError) as caught:
            await log.append("s", notes("new", "newer"), expected=expected)
        error = caught.value
        assert (error.stream_id, error.expected, error.actual) == ("s", expected, length)
    assert await log.stream_version("s") == length + holds
    assert len(await everything(log)) == length + holds


@pytest.mark.parametrize("expected", [-1, True, False, "2", 2.0, None])
async def test_impossible_expectation_is_refused(log: EventLog, expected: Any) -> None:
    """What can never be a version is refused before anything is asked of the database."""
    with pytest.raises(InvalidArgumentError, match="expected"):
        await log.append("s", notes("a"), expected=expected)
    assert await everything(log) == []


async def test_chained_appends_never_conflict(log: EventLog) -> None:
    """A writer who passes on the version that its last append returned never meets a conflict by itself."""
    version = 0
    for number in range(100):
        version = (await log.append("s", notes(number), expected=version)).envelopes[-1].version
    assert version == 100


async def test_one_of_many_same_beliefs_wins(log: EventLog) -> None:
    """Of many tasks that append at the same expected version one succeeds and the others conflict."""
    outcomes = await asyncio.gather(
        *(log.append("s", notes(number), expected=0) for number in range(20)), return_exceptions=True
    )
    lost = [outcome for outcome in outcomes if isinstance(outcome, VersionConflictError)]
    assert len(lost) == 19
    assert {error.actual for error in lost} == {1}
    assert await log.stream_version("s") == 1


async def test_conflict_wins_over_the_decision_s_error(log: EventLog) -> None:
    """When a decision fails on a stream that is not as expected, the conflict is what its caller learns."""

    def refuse(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        raise ReservedIdError("compaction_1")

    with pytest.raises(VersionConflictError):
        await log.transact("s", refuse, expected=STREAM_EXISTS)
    with pytest.raises(ReservedIdError):
        await log.transact("s", refuse, expected=NO_STREAM)


async def test_empty_append_writes_nothing(log: EventLog) -> None:
    """An append of no events succeeds, writes nothing and makes no stream."""
    assert (await log.append("s", [])).envelopes == []
    assert await log.stream_version("s") == 0
    assert (await log.append("s", notes("a"), expected=NO_STREAM)).envelopes[0].position == 1


@pytest.mark.parametrize("events", [None, "ab", b"ab", {"a": note("a")}, iter([note("a")]), note("a")], ids=range(6))
async def test_what_is_no_list_of_events_is_refused(log: EventLog, events: Any) -> None:
    """What is no list of events, one event or a generator of them too, is refused, and nothing is written."""
    with pytest.raises(InvalidArgumentError) as refused:
        await log.append("s", events)
    assert refused.value.argument == "events"
    assert await log.stream_version("s") == 0


UNFIT: dict[str, Any] = {
    "no event": "a",
    "an event of its own making": msgspec.defstruct("Made", [("a", int)])(1),
    "no JSON value": LeafSelected(message_id=object()),  # type: ignore[arg-type]
    "a number for a text": LeafSelected(message_id=5),  # type: ignore[arg-type]
    "a text for a number": UsageAdded(input_tokens="many", output_tokens=1, cost=0.0),  # type: ignore[arg-type]
    "an integer for a float": UsageAdded(input_tokens=1, output_tokens=1, cost=1),
    "torn JSON": MessageAppended(raw=msgspec.Raw(b"{")),
    "no JSON at all": MessageAppended(raw=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("unfit", UNFIT)
async def test_event_that_could_not_be_read_back_is_refused(log: EventLog, unfit: str) -> None:
    """An event that would not be read back as it was given is refused with its batch, before anything is written."""
    with pytest.raises(InvalidArgumentError) as refused:
        await log.append("s", [note("before"), UNFIT[unfit]])
    assert refused.value.argument == "events"
    assert await log.stream_version("s") == 0


async def test_numbers_have_no_holes(log: EventLog) -> None:
    """Under many tasks versions and positions rise by one, and every caller is told its own."""

    async def write(task: int) -> list[tuple[str, int, int]]:
        told = []
        for number in range(10):
            name = f"s{(task + number) % 4}"
            texts = [f"{task}.{number}.{part}" for part in range(1 + number % 3)]
            committed = await log.append(name, notes(*texts))
            assert texts_of(committed.envelopes) == texts
            told += [(name, e.version, e.position) for e in committed.envelopes]
        return told

    told = [one for task in await asyncio.gather(*map(write, range(20))) for one in task]
    events = await everything(log)
    assert [e.position for e in events] == list(range(1, len(told) + 1))
    assert sorted(told) == sorted((e.stream_id, e.version, e.position) for e in events)
    for name in {name for name, _, _ in told}:
        found = await stream(log, name)
        assert [e.version for e in found] == list(range(1, len(found) + 1))
        assert await log.stream_version(name) == len(found)


async def test_append_is_seen_by_its_caller(log: EventLog) -> None:
    """What was appended is there for every read that begins after the append returned."""
    for number in range(30):
        await log.append("s", notes(number))
        assert await log.stream_version("s") == await log.high_water() == number + 1
        assert await log.read(lambda tx: len(tallied(tx))) == number + 1


async def test_streams_are_told_apart_by_their_bytes(log: EventLog) -> None:
    """Stream ids are compared byte by byte, whatever they look like."""
    names = ["a", "A", "a ", "ä", "a\u0308", "%", "_", "'; --", "", "é" * 256, "\U0001f600", "1", "01"]
    for name in names:
        await log.append(name, notes(name), expected=NO_STREAM)
    for name in names:
        assert texts_of(await stream(log, name)) == [name]


@pytest.mark.parametrize(
    ("stream_id", "error"),
    [("a\0b", InvalidArgumentError), (7, InvalidArgumentError), ("é" * 257, LimitExceededError)],
)
async def test_bad_stream_id_is_refused(log: EventLog, stream_id: Any, error: type[Exception]) -> None:
    """A stream id that is no string, holds NUL or is too long is refused."""
    with pytest.raises(error, match="stream_id"):
        await log.append(stream_id, notes("a"))


async def test_lone_surrogate_in_stream_id_is_replaced(log: EventLog) -> None:
    """A lone surrogate in a stream id becomes U+FFFD, and a pair becomes its character."""
    committed = await log.append("a\ud800\ud83d\ude00", notes("a"))
    assert committed.envelopes[0].stream_id == "a\ufffd\U0001f600"


@pytest.mark.parametrize(
    ("metadata", "path"),
    [({"a": [1, {"b": float("nan")}]}, "metadata.a[1].b"), ({"a": {1: 2}}, "metadata.a"), ({"a": b"x"}, "metadata.a")],
)
async def test_metadata_must_be_json(log: EventLog, metadata: dict[str, Any], path: str) -> None:
    """Metadata that JSON has no place for is refused with its path, and nothing is written."""
    with pytest.raises(InvalidMessageError) as caught:
        await log.append("s", notes("a"), metadata=metadata)
    assert caught.value.path == path
    assert await everything(log) == []


@pytest.mark.parametrize("metadata", [["a"], "a", 7, [("a", 1)]])
async def test_metadata_must_be_an_object(log: EventLog, metadata: Any) -> None:
    """Metadata that is no dict is refused, since nobody could read it back."""
    with pytest.raises((InvalidArgumentError, InvalidMessageError)):
        await log.append("s", notes("a"), metadata=metadata)
    assert await everything(log) == []


async def test_metadata_is_what_was_given_then(log: EventLog) -> None:
    """Metadata reads back equal, and is not what its caller does to the dict later."""
    given = {"actor": "ann", "n": [1, 2.5, None, True, 1 << 70], "nested": {"\u00e9": "\0"}}
    metadata = dict(given)
    appending = asyncio.ensure_future(log.append("s", notes("a"), metadata=metadata))
    await asyncio.sleep(0)
    metadata["actor"] = "bob"
    assert (await appending).envelopes[0].metadata == given
    assert (await stream(log))[0].metadata == given


async def test_recorded_time_never_goes_back(url: str) -> None:
    """Recorded times come from the clock, in UTC, and never go back within a stream when the clock does."""
    zone = dt.timezone(dt.timedelta(hours=-5))
    times = [NOON, NOON - dt.timedelta(hours=1), NOON.astimezone(zone) + dt.timedelta(microseconds=1)]
    hands = iter(times)
    async with opened(url, clock=lambda: next(hands)) as log:
        recorded = [(await log.append("s", notes(n))).envelopes[0].recorded_at for n in range(3)]
    assert recorded == [NOON, NOON, NOON + dt.timedelta(microseconds=1)]
    assert {time.tzinfo for time in recorded} == {dt.UTC}


async def test_naive_clock_is_refused(url: str) -> None:
    """A clock that gives naive times is refused at the append, and nothing is written."""
    async with opened(url, clock=lambda: NOON.replace(tzinfo=None)) as log:
        with pytest.raises(InvalidArgumentError, match="clock"):
            await log.append("s", notes("a"))
        assert await everything(log) == []


async def test_closed_log_refuses(log: EventLog) -> None:
    """After close every call is a StoreClosedError, and closing again does nothing."""
    await log.append("s", notes("a"))
    await log.close()
    await log.close()
    for call in (log.append("s", notes("b")), log.stream_version("s"), log.high_water(), everything(log)):
        with pytest.raises(StoreClosedError):
            await call
    for after in (0, None):
        with pytest.raises(StoreClosedError):
            log.subscribe(after=after)


async def test_close_commits_what_waits(url: str, tally: Tally) -> None:
    """Closing first commits every append that was called before."""
    async with opened(url, tally) as log:
        calls = [asyncio.ensure_future(log.append("s", notes(number))) for number in range(30)]
        await asyncio.sleep(0)
        await log.close()
        assert [(await call).envelopes[0].version for call in calls] == list(range(1, 31))
