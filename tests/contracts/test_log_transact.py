"""What every log promises of decisions and of the groups they are committed in."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable

import pytest

from eventstore.errors import (
    EventStoreError,
    ProjectionError,
    ReservedIdError,
    StoreUnavailableError,
    VersionConflictError,
)
from eventstore.heads import Committed, Head, Proposal
from eventstore.log import EventLog
from eventstore.ports import Tx
from tests.eventstore.support import (
    Tally,
    everything,
    note,
    notes,
    opened,
    sql,
    stream,
    tallied,
    text_of,
    texts_of,
)

Outcome = Committed | BaseException


async def beside(log: EventLog, *bad: Callable[[Tx, Head], tuple[Proposal, None]]) -> list[Outcome]:
    """Submit bad decisions among good appends, so that they share a group; return what became of the bad ones."""
    good = [asyncio.ensure_future(log.append("s", notes(number))) for number in range(10)]
    failing = [asyncio.ensure_future(log.transact("s", decide)) for decide in bad]
    more = [asyncio.ensure_future(log.append("s", notes(number))) for number in range(10, 20)]
    outcomes = await asyncio.gather(*good, *more)
    assert sorted(int(text_of(c.envelopes[0])) for c in outcomes) == list(range(20))
    assert [e.version for e in await stream(log)] == list(range(1, 21))
    assert len(await everything(log)) == 20
    return await asyncio.gather(*failing, return_exceptions=True)


async def test_decision_sees_where_the_stream_stands(log: EventLog) -> None:
    """A decision is told the stream's version and the events before it that are not applied yet."""
    seen: list[tuple[int, int, int]] = []

    def decide(tx: Tx, head: Head) -> tuple[Proposal, int]:
        applied = len(tallied(tx))
        seen.append((head.version, len(head.pending), applied))
        assert [text_of(e) for e in head.pending] == [str(v) for v in range(applied + 1, head.version + 1)]
        return notes(head.version + 1), head.version

    results = await asyncio.gather(*(log.transact("s", decide) for _ in range(30)))
    assert [committed.result for committed in results] == list(range(30))
    assert [version for version, _, _ in seen] == list(range(30))
    assert all(version == pending + applied for version, pending, applied in seen)


async def test_flush_applies_what_is_pending(log: EventLog) -> None:
    """After `tx.flush()` the tables show every event decided before, and nothing is pending."""

    def decide(tx: Tx, head: Head) -> tuple[Proposal, None]:
        tx.flush()
        assert len(tallied(tx)) == head.version
        assert head.pending == []
        assert head.stored_version == head.version
        tx.flush()
        return notes(head.version + 1), None

    await asyncio.gather(*(log.transact("s", decide) for _ in range(20)))
    assert texts_of(await stream(log)) == [str(number) for number in range(1, 21)]
    assert await log.read(tallied) == [str(number) for number in range(1, 21)]


async def test_several_streams_are_one_transaction(log: EventLog) -> None:
    """A decision may give events for several streams, and positions rise in the order it gives them."""

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, str]:
        return {"b": notes(1, 2), "a": [(note(3), "k")], "none": []}, "result"

    committed = await log.transact("a", decide, expected=0, metadata={"actor": "ann"})
    assert committed.result == "result"
    assert [(e.stream_id, e.version, e.position) for e in committed.envelopes] == [
        ("b", 1, 1),
        ("b", 2, 2),
        ("a", 1, 3),
    ]
    assert {e.metadata["actor"] for e in committed.envelopes} == {"ann"}
    assert await everything(log) == committed.envelopes
    assert await log.stream_version("none") == 0


async def test_expected_version_is_the_named_stream_s(log: EventLog) -> None:
    """The expected version is asked of the stream that `transact` names, even when only others get events."""
    await log.append("other", notes("x"))

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        return {"other": notes("y")}, None

    await log.transact("s", decide, expected=0)
    with pytest.raises(VersionConflictError) as caught:
        await log.transact("s", decide, expected=1)
    assert (caught.value.stream_id, caught.value.actual) == ("s", 0)
    assert await log.stream_version("other") == 2


async def test_decision_may_decide_nothing(log: EventLog) -> None:
    """A decision without events returns its result and writes nothing."""
    committed = await log.transact("s", lambda _tx, head: ([], head.version))
    assert (committed.envelopes, committed.result) == ([], 0)
    assert await everything(log) == []


async def test_typed_error_fails_its_caller_alone(log: EventLog) -> None:
    """A typed error of one decision is that caller's, and nobody else's append is touched."""

    def refuse(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        raise ReservedIdError("compaction_1")

    def refuse_later(tx: Tx, _head: Head) -> tuple[Proposal, None]:
        tx.flush()
        raise ReservedIdError("compaction_2")

    first, second = await beside(log, refuse, refuse_later)
    assert isinstance(first, ReservedIdError)
    assert isinstance(second, ReservedIdError)
    assert (first.message_id, second.message_id) == ("compaction_1", "compaction_2")


@pytest.mark.parametrize(
    "error", [RuntimeError, KeyError, StopIteration, AssertionError, ValueError, MemoryError, asyncio.CancelledError]
)
async def test_unexpected_error_fails_its_caller_alone(log: EventLog, error: type[BaseException]) -> None:
    """Whatever a decision raises is its own caller's, and nobody else's append is touched."""

    def fail(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        raise error("mine")

    async with asyncio.timeout(5):
        [outcome] = await beside(log, fail)
        await log.append("after", notes("works"))
    assert isinstance(outcome, Exception)
    assert "mine" in str(outcome)


async def test_error_after_reading_fails_its_caller_alone(log: EventLog) -> None:
    """A decision whose own SQL is wrong fails alone, with a typed error."""

    def misread(tx: Tx, _head: Head) -> tuple[Proposal, None]:
        tx.fetch(sql("SELECT 1 FROM nowhere"))
        return notes("bad"), None

    [outcome] = await beside(log, misread)
    assert isinstance(outcome, EventStoreError)
    assert not isinstance(outcome, StoreUnavailableError)


@pytest.mark.parametrize("bad", [None, notes("x"), (None, None), ("x",), ({"t": [7]}, None), ([note("x"), 7], None)])
async def test_malformed_decision_fails_its_caller_alone(log: EventLog, bad: object) -> None:
    """A decision that returns something else than events and a result fails its own caller alone."""
    [outcome] = await beside(log, lambda _tx, _head: bad)  # type: ignore[arg-type, return-value]
    assert isinstance(outcome, Exception)


async def test_failing_projection_fails_its_cause_alone(log: EventLog, tally: Tally) -> None:
    """When a projection cannot apply an event, that append alone fails and leaves nothing behind."""
    tally.fails_on = "poison"
    calls = [log.append("s", notes(number)) for number in range(8)]
    calls[3:3] = [log.append("t", notes("sweet", "poison")), log.append("t", notes("honey"))]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(failed) == 1
    assert isinstance(failed[0], ProjectionError)
    assert (failed[0].name, failed[0].reason) == ("tally", "RuntimeError: poison")
    assert texts_of(await stream(log, "t")) == await log.read(lambda tx: tallied(tx, "t")) == ["honey"]
    assert texts_of(await stream(log)) == await log.read(tallied) == [str(number) for number in range(8)]
    assert [e.position for e in await everything(log)] == list(range(1, 10))


async def test_projection_that_fails_under_flush_fails_its_cause_alone(log: EventLog, tally: Tally) -> None:
    """An event that cannot be applied fails its own append, not that of the decision which asked for the tables."""
    tally.fails_on = "poison"

    def decide(tx: Tx, head: Head) -> tuple[Proposal, None]:
        tx.flush()
        return notes(head.version), None

    outcomes = await asyncio.gather(
        log.transact("s", decide), log.append("s", notes("poison")), log.transact("s", decide), return_exceptions=True
    )
    assert [isinstance(outcome, ProjectionError) for outcome in outcomes] == [False, True, False]
    assert texts_of(await stream(log)) == ["0", "1"]


async def test_projection_with_wrong_sql_fails_its_cause_alone(log: EventLog, tally: Tally) -> None:
    """A projection that gives the database a wrong statement fails that append alone, as a ProjectionError."""
    whole = tally.apply

    def apply(tx: Tx, envelopes: list[object]) -> None:
        whole(tx, envelopes)  # type: ignore[arg-type]
        if "poison" in texts_of(envelopes):  # type: ignore[arg-type]
            tx.execute(sql("INSERT INTO nowhere VALUES (1)"))

    tally.apply = apply  # type: ignore[method-assign, assignment]
    outcomes = await asyncio.gather(
        log.append("s", notes("a")),
        log.append("s", notes("poison")),
        log.append("s", notes("b")),
        return_exceptions=True,
    )
    assert [isinstance(outcome, ProjectionError) for outcome in outcomes] == [False, True, False]
    assert texts_of(await stream(log)) == ["a", "b"]


class DiskError(sqlite3.OperationalError):
    """What the driver raises when the disk fails."""

    sqlite_errorcode = sqlite3.SQLITE_IOERR


async def test_failing_disk_fails_the_whole_group(log: EventLog, tally: Tally) -> None:
    """When the database itself fails, even under a decision's flush, nobody of the group is told of a success."""
    tally.fails_on, tally.error = "poison", DiskError

    def decide(tx: Tx, head: Head) -> tuple[Proposal, None]:
        tx.flush()
        return notes(head.version), None

    calls = [log.append("s", notes("a")), log.append("s", notes("poison")), log.transact("s", decide)]
    outcomes = await asyncio.gather(*calls, log.append("s", notes("b")), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailableError] * 4
    assert await everything(log) == []
    assert (await log.append("s", notes("c"), expected=0)).envelopes[0].position == 1


async def test_failed_append_leaves_no_trace(log: EventLog, tally: Tally) -> None:
    """After a failed append versions and positions go on as if it had never been called."""
    tally.fails_on = "poison"
    await log.append("s", notes("a"))
    for _ in range(3):
        with pytest.raises(ProjectionError):
            await log.append("s", notes("poison"), expected=1)
        with pytest.raises(ProjectionError):
            await log.append("new", notes("poison"), expected=0)
    committed = await log.append("new", notes("b"), expected=0)
    assert (committed.envelopes[0].position, committed.envelopes[0].stream_no) == (2, 2)


async def test_same_error_object_is_nobody_else_s(log: EventLog) -> None:
    """Callers whose decisions fail get errors of their own, not one shared object."""

    def refuse(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        raise ReservedIdError("compaction_1")

    first, second = await beside(log, refuse, refuse)
    assert first is not second


async def test_large_append_is_whole(log: EventLog) -> None:
    """A single append may be larger than a page or a group."""
    committed = await log.append("s", notes(*range(2_500)))
    assert texts_of(committed.envelopes) == texts_of(await stream(log)) == [str(n) for n in range(2_500)]


async def test_more_waiting_than_a_group_holds(log: EventLog) -> None:
    """More appends at once than a group takes are all written, each caller told its own."""
    outcomes = await asyncio.gather(*(log.append("s", notes(number)) for number in range(1_300)))
    assert [outcome.envelopes[0].version for outcome in outcomes] == list(range(1, 1_301))
    assert texts_of(await stream(log)) == [str(number) for number in range(1_300)]


async def test_inline_projections_apply_in_the_order_of_the_log(url: str) -> None:
    """Every projection gets each event once, in position order, of the types that it handles."""
    tally = Tally()
    async with opened(url, tally) as log:
        names = [f"s{number % 3}" for number in range(60)]
        await asyncio.gather(*(log.append(name, notes(number)) for number, name in enumerate(names)))
        for name in set(names):
            assert await log.read(lambda tx, name=name: tallied(tx, name)) == texts_of(await stream(log, name))  # type: ignore[misc]
    assert sum(tally.groups) == 60
