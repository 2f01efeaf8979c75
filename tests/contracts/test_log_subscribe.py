"""What every log promises of following it live: each event once, in order, no seam, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from eventstore import rows
from eventstore.envelope import Envelope
from eventstore.log import EventLog
from tests.eventstore.support import (
    Tally,
    eventually,
    everything,
    is_idle,
    message,
    note,
    notes,
    opened,
    take,
    texts_of,
)


def readers(log: EventLog) -> int:
    """Return how many subscribers the log still wakes."""
    return log._hints.readers


async def test_from_the_start(log: EventLog) -> None:
    """From position 0 a subscriber gets the whole history, then what is appended."""
    await log.append("s", notes("a", "b"))
    events = log.subscribe(after=0)
    assert texts_of(await take(events, 2)) == ["a", "b"]
    await log.append("t", notes("c"))
    assert texts_of(await take(events, 1)) == ["c"]
    assert await is_idle(events)


async def test_from_a_position(log: EventLog) -> None:
    """A subscriber gets what comes after its position, and not the event at it."""
    await log.append("s", notes("a", "b", "c"))
    events = log.subscribe(after=2)
    await log.append("s", notes("d"))
    assert texts_of(await take(events, 2)) == ["c", "d"]


async def test_from_a_position_beyond_the_end(log: EventLog) -> None:
    """A position beyond the end waits until the log has passed it."""
    await log.append("s", notes("a"))
    events = log.subscribe(after=3)
    await log.append("s", notes("b", "c", "d", "e"))
    assert texts_of(await take(events, 2)) == ["d", "e"]


@pytest.mark.parametrize("begun", [False, True], ids=["unread", "waiting"])
async def test_stream_from_a_position_beyond_the_end(log: EventLog, begun: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A position beyond the end is waited for by a stream's subscriber too."""
    await log.append("s", notes("a"))
    events = log.subscribe(after=3, stream_id="s")
    first = asyncio.ensure_future(anext(events))
    if begun:
        await asyncio.sleep(0.05)
    for text in "bcde":
        await log.append("s", notes(text))
    assert texts_of([await first, *await take(events, 1)]) == ["d", "e"]


@pytest.mark.parametrize("stream_id", [None, "s"])
@pytest.mark.parametrize("pause", [0, 1, 3, 20])
async def test_from_now_begins_with_the_call(log: EventLog, stream_id: str | None, pause: int) -> None:
    """From now on means from the call on: what was appended before is not seen, what is appended next is."""
    for number in range(20):
        await log.append("s", notes(f"before {number}"))
        events = log.subscribe(stream_id=stream_id)
        for _ in range(pause):
            await asyncio.sleep(0)
        await log.append("s", notes(f"after {number}"))
        await log.append("s", notes(f"later {number}"))
        assert texts_of(await take(events, 2)) == [f"after {number}", f"later {number}"]


async def test_from_now_on_an_empty_log(log: EventLog) -> None:
    """A subscriber from now on an empty log gets its very first event."""
    events = log.subscribe()
    await log.append("s", notes("a"))
    assert texts_of(await take(events, 1)) == ["a"]


async def test_from_now_read_much_later(log: EventLog) -> None:
    """What was appended between the call and the first read is all there, in order."""
    await log.append("s", notes("old"))
    events = log.subscribe()
    await asyncio.gather(*(log.append("s", notes(number)) for number in range(50)))
    assert texts_of(await take(events, 50)) == texts_of((await everything(log))[1:])


async def test_only_a_stream(log: EventLog) -> None:
    """A stream's subscriber gets the events of that stream alone, also of one that does not exist yet."""
    events = log.subscribe(after=0, stream_id="s")
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0.02)
    await log.append("t", notes("x"))
    await log.append("s", notes("a"))
    await log.append("t", notes("y"))
    await log.append("s", notes("b"))
    assert texts_of([await first, *await take(events, 1)]) == ["a", "b"]


@pytest.mark.parametrize("stream_id", [None, "s"])
async def test_only_some_types(log: EventLog, stream_id: str | None) -> None:
    """A subscriber of some types gets the events of those types alone."""
    await log.append("s", [message("m1"), note("a")])
    events = log.subscribe(after=0, stream_id=stream_id, types={"leaf_selected"})
    assert texts_of(await take(events, 1)) == ["a"]
    await log.append("s", [message("m2"), message("m3")])
    await log.append("s", [message("m4"), note("b")])
    assert texts_of(await take(events, 1)) == ["b"]


async def test_stream_after_a_version(log: EventLog) -> None:
    """A stream can be followed after one of its versions, before and beyond its end."""
    await log.append("t", notes("x", "y"))
    await log.append("s", notes("a", "b"))
    second, third = log.subscribe_stream("s", after_version=1), log.subscribe_stream("s", after_version=2)
    waiting = asyncio.ensure_future(anext(third))
    await asyncio.sleep(0.02)
    await log.append("s", notes("c"))
    assert texts_of(await take(second, 2)) == ["b", "c"]
    assert texts_of([await waiting]) == ["c"]


@pytest.mark.parametrize("page", [3, 1_000])
@pytest.mark.parametrize("stream_id", [None, "s0"])
async def test_no_seam_under_concurrent_appends(
    log: EventLog, monkeypatch: pytest.MonkeyPatch, page: int, stream_id: str | None
) -> None:
    """Subscribers that come at any moment of a storm of appends get each event once, in order, none missing."""
    monkeypatch.setattr(rows, "PAGE_EVENTS", page)

    async def write(task: int) -> None:
        for number in range(15):
            await log.append(f"s{(task + number) % 2}", notes(*(f"{task}.{number}.{part}" for part in range(2))))

    async def follow(events: AsyncIterator[Envelope], seen: list[Envelope]) -> None:
        async for envelope in events:
            seen.append(envelope)  # noqa: PERF401 - what was seen so far is looked at meanwhile

    following: list[tuple[int | None, list[Envelope], asyncio.Task[None]]] = []
    writing = asyncio.ensure_future(asyncio.gather(*map(write, range(10))))
    while not writing.done():
        for after in (0, await log.high_water(), None):
            seen: list[Envelope] = []
            events = log.subscribe(after=after, stream_id=stream_id)
            following.append((after, seen, asyncio.ensure_future(follow(events, seen))))
        await asyncio.sleep(0.01)
    await writing
    written = [e for e in await everything(log) if stream_id in {None, e.stream_id}]
    assert len(written) == (300 if stream_id is None else 150)
    for after, seen, task in following:
        if after is not None:
            wanted = [e.position for e in written if e.position > after]
            await eventually(lambda seen=seen, wanted=wanted: len(seen) >= len(wanted), within=5)
        else:
            # Where it began is not known here, but from there on it must be all of it.
            await eventually(lambda seen=seen: not seen or seen[-1].position == written[-1].position, within=5)
            wanted = [e.position for e in written][len(written) - len(seen) :]
        assert [e.position for e in seen] == wanted
        task.cancel()
    await asyncio.wait([task for _, _, task in following])
    assert readers(log) == 0


async def test_slow_reader_misses_nothing(log: EventLog, tally: Tally) -> None:
    """A reader that stops for thousands of events goes on where it stopped, and nothing is kept for it meanwhile."""
    await log.append("s", notes("first"))
    events = log.subscribe(after=0)
    assert texts_of(await take(events, 1)) == ["first"]
    await asyncio.gather(*(log.append("s", notes(*range(n, n + 100))) for n in range(0, 5_000, 100)))
    assert sum(tally.groups) == 5_001
    assert texts_of(await take(events, 5_000, within=10)) == [str(number) for number in range(5_000)]


async def test_slow_reader_holds_up_nobody(log: EventLog) -> None:
    """Readers who have stopped in the middle of the log take nothing that others need."""
    await log.append("s", notes(*range(10)))
    slow = [log.subscribe(after=0) for _ in range(50)]
    for events in slow:
        await anext(events)
    async with asyncio.timeout(5):
        await asyncio.gather(*(log.append("s", notes(n)) for n in range(50)))
        assert len(await everything(log)) == 60
    for events in slow:
        assert len(await take(events, 59)) == 59


async def test_unread_subscription_leaves_nothing(log: EventLog) -> None:
    """A subscription that is dropped before its first read was never there."""
    for after in (None, 0, 5):
        events = log.subscribe(after=after)
        del events
    gc.collect()
    assert readers(log) == 0
    await log.append("s", notes("a"))
    assert readers(log) == 0


async def test_leaving_the_loop_unsubscribes(log: EventLog) -> None:
    """A reader that breaks out of its loop is forgotten without a further event."""
    await log.append("s", notes("a", "b"))
    async for _envelope in log.subscribe(after=0):
        assert readers(log) == 1
        break
    await eventually(lambda: readers(log) == 0)


async def test_closing_the_iterator_unsubscribes(log: EventLog) -> None:
    """A reader that closes its iterator is forgotten at once."""
    await log.append("s", notes("a", "b"))
    events = log.subscribe(after=0)
    await anext(events)
    await events.aclose()
    assert readers(log) == 0


@pytest.mark.parametrize("ticks", [0, 1, 2, 5, 50, None])
@pytest.mark.parametrize("after", [0, None])
async def test_cancelling_an_idle_reader_unsubscribes(log: EventLog, ticks: int | None, after: int | None) -> None:
    """A reader that is cancelled while it waits is forgotten without a further event, at whatever moment."""
    events = log.subscribe(after=after)
    reading = asyncio.ensure_future(anext(events))
    for _ in range(ticks or 0):
        await asyncio.sleep(0)
    if ticks is None:
        await asyncio.sleep(0.05)
        assert readers(log) == 1
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await eventually(lambda: readers(log) == 0)
    await log.append("s", notes("a"))


async def test_close_ends_every_iterator(url: str) -> None:
    """Closing ends the subscribers that wait, that read and that have not begun, without an error."""
    async with opened(url) as log:
        await log.append("s", notes("a"))
        waiting = [
            log.subscribe(after=1),
            log.subscribe(),
            log.subscribe(after=9),
            log.subscribe(after=0, stream_id="t"),
        ]
        ends = [asyncio.ensure_future(anext(events, None)) for events in waiting]
        inside, unread, unread_now = log.subscribe(after=0), log.subscribe(after=0), log.subscribe()
        assert texts_of(await take(inside, 1)) == ["a"]
        await asyncio.sleep(0.03)
        async with asyncio.timeout(2):
            await log.close()
            assert await asyncio.gather(*ends) == [None] * len(ends)
            assert [envelope async for envelope in inside] == []
            assert [envelope async for envelope in unread] == []
            assert [envelope async for envelope in unread_now] == []
        assert readers(log) == 0


@pytest.mark.parametrize("ticks", [*range(12), 20, 40, 80])
async def test_close_at_any_moment_ends_iterators(url: str, ticks: int) -> None:
    """Closing while subscribers are in the middle of reading ends them without an error too."""

    async def follow(log: EventLog, after: int | None) -> int:
        return len([envelope async for envelope in log.subscribe(after=after)])

    async with opened(url) as log:
        await log.append("s", notes(*range(20)))
        following = [asyncio.ensure_future(follow(log, after)) for after in (0, 10, 30, None) * 4]
        for _ in range(ticks):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await log.close()
            seen = await asyncio.gather(*following)
    assert set(seen) <= {0, 10, 20}


async def test_two_subscribers_do_not_disturb_each_other(log: EventLog) -> None:
    """Each subscriber has its own place, and one that leaves takes nothing from the other."""
    first, second = log.subscribe(after=0), log.subscribe(after=0)
    await log.append("s", notes("a", "b"))
    assert texts_of(await take(first, 2)) == ["a", "b"]
    assert texts_of(await take(second, 1)) == ["a"]
    await first.aclose()
    await log.append("s", notes("c"))
    assert texts_of(await take(second, 2)) == ["b", "c"]
