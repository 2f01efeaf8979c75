"""Measuring several things in turn, so that whatever slows the machine slows all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles
from typing import Any, Generic, TypeVar

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

ROUNDS = 9

T = TypeVar("T")


def _leave(_load: object) -> None:
    return


@dataclass(frozen=True)
class Contestant(Generic[T]):
    """Something to measure: only `run` is timed, on what `prepare` made for this round; `finish` cleans up."""

    prepare: Callable[[], T]
    run: Callable[[T], Any]
    finish: Callable[[T], object] = _leave


@dataclass(frozen=True)
class Lap:
    """One timed run: its seconds, and what it returned."""

    seconds: float
    result: Any


class _Track(Generic[T]):
    """The laps of one contestant."""

    def __init__(self, contestant: Contestant[T]) -> None:
        self._contestant = contestant
        self.laps: list[Lap] = []

    def lap(self) -> None:
        load = self.prepare()
        self.run(load)
        self.finish(load)

    def prepare(self) -> T:
        load = self._contestant.prepare()
        gc.collect()
        return load

    def run(self, load: T) -> None:
        # As timeit does: nobody pays for collecting what another one, or the preparation, left behind.
        gc.disable()
        try:
            start = time.perf_counter()
            result = self._contestant.run(load)
            self.laps.append(Lap(time.perf_counter() - start, result))
        finally:
            gc.enable()

    def finish(self, load: T) -> None:
        self._contestant.finish(load)


def race(
    benchmark: BenchmarkFixture, ours: Contestant[Any], *others: Contestant[Any], rounds: int = ROUNDS
) -> list[list[Lap]]:
    """The laps of ours and of each of the others, after a round that does not count; who starts rotates.

    Ours are also what pytest-benchmark's own table shows.
    """
    if benchmark.disabled:
        pytest.skip("benchmarks are switched off")
    tracks = [_Track(contestant) for contestant in (ours, *others)]
    for track in tracks:
        track.lap()
        track.laps.clear()
    first = tracks[0]
    later: list[_Track[Any]] = []

    def run_up() -> tuple[tuple[Any], dict[str, Any]]:
        start = len(first.laps) % len(tracks)
        order = tracks[start:] + tracks[:start]
        place = order.index(first)
        later[:] = order[place + 1 :]
        for track in order[:place]:
            track.lap()
        return (first.prepare(),), {}

    def run_out(load: object) -> None:
        first.finish(load)
        for track in later:
            track.lap()

    benchmark.pedantic(first.run, setup=run_up, teardown=run_out, rounds=rounds)  # type: ignore[no-untyped-call]
    return [track.laps for track in tracks]


def rates(laps: list[Lap], work: int) -> list[float]:
    """How many a second, when a lap does so many."""
    return [work / lap.seconds for lap in laps]


def milliseconds(laps: list[Lap], work: int) -> list[float]:
    """How long each took, when a lap does so many."""
    return [lap.seconds * 1000 / work for lap in laps]


def p99(laps: list[Lap]) -> float:
    """The 99th percentile over all rounds, of laps that return times: one round has too few for it."""
    return float(quantiles([one for lap in laps for one in lap.result], n=100)[98])
