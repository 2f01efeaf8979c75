"""The log tells its publisher what it has written, and never depends on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventstore import hints
from eventstore.errors import StoreUnavailableError
from eventstore.publisher import InProcessPublisher
from tests.eventstore.support import MEMORY, Tally, eventually, file_at, notes, opened, take, texts_of


class Recorder:
    """A publisher of somebody else's, which keeps what it is given, and waits or fails as it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Keep a message."""
        await self.go.wait()
        if self.error is not None:
            raise self.error
        self.heard.append((channel, message))


async def test_every_commit_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """After every commit the publisher hears the last position, in rising order."""
    recorder = Recorder()
    async with opened(MEMORY, publisher=recorder) as log:
        await log.append("s", notes("a", "b"))
        await log.append("s", notes("c"))
        await asyncio.gather(*(log.append("s", notes(n)) for n in range(50)))
    assert [channel for channel, _ in recorder.heard] == ["log"] * len(recorder.heard)
    positions = [message["position"] for _, message in recorder.heard]
    assert positions[:2] == [2, 3]
    assert positions == sorted(set(positions))
    assert positions[-1] == 53
    assert caplog.records == []


async def test_nothing_is_told_of_what_was_not_written() -> None:
    """An append that fails, repeats or holds nothing is no news."""
    recorder = Recorder()
    async with opened(MEMORY, Tally("poison"), publisher=recorder) as log:
        await log.append("s", notes("a"), event_ids=["k"])
        await log.append("s", notes("a"), event_ids=["k"])
        await log.append("s", [])
        await asyncio.gather(log.append("s", notes("poison")), return_exceptions=True)
        await asyncio.gather(log.append("s", notes("x"), expected=0), return_exceptions=True)
    assert recorder.heard == [("log", {"position": 1})]


async def test_in_process_followers_hear_positions() -> None:
    """Who follows the log's channel of the in-process publisher hears positions."""
    publisher = InProcessPublisher()
    async with opened(MEMORY, publisher=publisher) as log:
        hints = publisher.subscribe("log")
        first = asyncio.ensure_future(anext(hints))
        await eventually(lambda: publisher.listening("log"))
        await log.append("s", notes("a", "b"))
        assert await first == {"position": 2}


async def test_failing_publisher_fails_no_append(caplog: pytest.LogCaptureFixture) -> None:
    """A publisher that raises costs a warning, without its message, and nothing else."""
    recorder = Recorder()
    recorder.error = RuntimeError("secret address")
    async with opened(MEMORY, publisher=recorder) as log:
        events = log.subscribe()
        await log.append("s", notes("a"))
        assert texts_of(await take(events, 1)) == ["a"]
        recorder.error = None
        await log.append("s", notes("b"))
    assert recorder.heard == [("log", {"position": 2})]
    [record] = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "eventstore.log")
    assert "RuntimeError" in record.getMessage()
    assert "secret" not in caplog.text


async def test_slow_publisher_holds_up_nobody() -> None:
    """A publisher that does not return delays neither appends nor followers, and closing waits for it."""
    recorder = Recorder()
    async with opened(MEMORY, publisher=recorder) as log:
        recorder.go.clear()
        events = log.subscribe()
        async with asyncio.timeout(1):
            for number in range(20):
                await log.append("s", notes(number))
            assert len(await take(events, 20)) == 20
        closing = asyncio.ensure_future(log.close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        recorder.go.set()
        async with asyncio.timeout(1):
            await closing
    assert [message["position"] for _, message in recorder.heard] == list(range(1, 21))


async def test_readers_are_counted() -> None:
    """The log knows how many readers follow it, and none is left when all have gone."""
    async with opened(MEMORY) as log:
        await log.append("s", notes("a"))
        readers = [log.subscribe(after=0) for _ in range(5)]
        for events in readers:
            await anext(events)
        assert log._hints.readers == 5
        for events in readers:
            await events.aclose()
        assert log._hints.readers == 0


async def test_file_that_cannot_be_looked_at_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Looking for other processes' writes that fails costs a warning, and the next look finds what was written."""
    url = file_at(tmp_path)
    looks: list[int] = []

    async def fail() -> int:
        looks.append(1)
        raise StoreUnavailableError("secret path")

    async with opened(url) as here, opened(url) as there:
        with monkeypatch.context() as patch:
            patch.setattr(there.database, "data_version", fail)
            waiting = asyncio.ensure_future(take(there.subscribe(after=0), 1))
            await eventually(lambda: len(looks) >= 2)
        await here.append("s", notes("a"))
        assert texts_of(await waiting) == ["a"]
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert "store_unavailable" in caplog.text
    assert "secret" not in caplog.text


class Ending:
    """Somebody else's publisher whose messages end; what it gives is an iterator and no generator."""

    def __init__(self) -> None:
        self.asked = 0

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Drop a message."""

    def subscribe(self, channel: str) -> Ending:  # noqa: ARG002 - as it is called
        """Follow a channel."""
        return self

    def __aiter__(self) -> Ending:
        return self

    async def __anext__(self) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1:
            return {"position": "none"}
        raise StopAsyncIteration


async def test_publisher_whose_messages_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A publisher whose messages simply end, or are nonsense, costs nothing: the file tells of what was written."""
    ending, url = Ending(), file_at(tmp_path)
    async with opened(url, publisher=ending) as here, opened(url, publisher=Ending()) as there:
        waiting = asyncio.ensure_future(take(here.subscribe(after=0), 1))
        await eventually(lambda: ending.asked == 2)
        await there.append("s", notes("a"))
        assert texts_of(await waiting) == ["a"]
    assert caplog.records == []


async def test_what_was_told_is_remembered_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the hints that never come back a log remembers the last ones, and its readers miss nothing."""
    monkeypatch.setattr(hints, "REMEMBERED", 3)
    async with opened(file_at(tmp_path), publisher=Ending()) as log:
        events = log.subscribe(after=0)
        for number in range(10):
            await log.append("s", notes(number))
            assert texts_of(await take(events, 1)) == [str(number)]
        assert list(log._hints._told) == [8, 9, 10]


class Bus:
    """Somebody else's publisher that can be followed, shared by logs as if they were in several processes."""

    def __init__(self) -> None:
        self._inside = InProcessPublisher()
        self.error: Exception | None = None

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Hand a message on."""
        await self._inside.publish(channel, message)

    async def subscribe(self, channel: str) -> AsyncIterator[dict[str, Any]]:
        """Follow a channel, or fail as told."""
        async for message in self._inside.subscribe(channel):
            if self.error is not None:
                raise self.error
            yield message

    def followers(self) -> int:
        """Return how many follow the log's channel."""
        return self._inside.followers("log")


async def test_somebody_elses_publisher_wakes_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers are woken by any publisher that can be followed, and leave it alone once they have gone."""
    bus, url = Bus(), file_at(tmp_path)
    async with opened(url, publisher=bus) as here, opened(url, publisher=bus) as there:
        with monkeypatch.context() as patch:
            # Looked at once, the file is left alone, so that only the bus can wake.
            patch.setattr(hints, "POLL_SECONDS", 3600)
            events = there.subscribe(after=0)
            waiting = asyncio.ensure_future(take(events, 2))
            await eventually(lambda: bus.followers() == 1)
            await asyncio.sleep(0.05)
        await here.append("s", notes("a"))
        await here.append("s", notes("b"))
        assert texts_of(await waiting) == ["a", "b"]
        await events.aclose()
    async with opened(url, publisher=bus) as log:
        reading = asyncio.ensure_future(anext(log.subscribe()))
        await eventually(lambda: bus.followers() == 1)
        reading.cancel()
        await eventually(lambda: bus.followers() == 0)


async def test_publisher_that_cannot_be_followed_after_all(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A publisher whose messages break off costs a warning without its words, and readers go on without it."""
    bus, url = Bus(), file_at(tmp_path)
    async with opened(url, publisher=bus) as here, opened(url, publisher=bus) as there:
        events = there.subscribe(after=0)
        waiting = asyncio.ensure_future(take(events, 2))
        await eventually(lambda: bus.followers() == 1)
        bus.error = RuntimeError("secret address")
        await here.append("s", notes("a"))
        await here.append("s", notes("b"))
        assert texts_of(await waiting) == ["a", "b"]
        await eventually(lambda: bus.followers() == 0)
    [record] = caplog.records
    assert "RuntimeError" in record.getMessage()
    assert "secret" not in caplog.text
