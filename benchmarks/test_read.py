"""Reading a linear history, beside the same rows by an index range, decoded (R)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import Corpus
from benchmarks.floors import Floor, append_in_groups
from benchmarks.ours import Ours, append_in_batches
from benchmarks.rounds import Contestant, milliseconds, race


class Readable(Protocol):
    """What is looked at of a message."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def role(self) -> str:
        """Its role."""

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Its parts."""


def touch(messages: Iterable[Readable]) -> int:
    """Look at every message, so that decoding it later saves nothing; the length of all texts."""
    return sum(len(message.parts[0]["text"]) for message in messages if message.id and message.role)


@pytest.mark.parametrize(("count", "times"), [(1_000, 10), (10_000, 1)])
def test_linear_history(
    benchmark: BenchmarkFixture, post: Post, runner: asyncio.Runner, folder: Path, count: int, times: int
) -> None:
    """A whole history, without branches."""
    messages = Corpus(seed=12).messages(count)
    with closing(Ours(runner, folder / "ours.db")) as ours, closing(Floor(folder / "floor.db")) as floor:
        append_in_groups(floor, "chat", messages, size=1_000)
        ours.run(append_in_batches(ours.session("chat"), messages))

        async def read() -> int:
            session = ours.session("chat")
            return sum([touch(await session.get_history()) for _ in range(times)])

        us, r = race(
            benchmark,
            Contestant(lambda: None, lambda _: ours.run(read())),
            Contestant(lambda: None, lambda _: sum(touch(floor.read("chat", count)) for _ in range(times))),
        )
    assert {lap.result for lap in us} == {lap.result for lap in r}
    post(
        ratio(
            "read a linear history ÷ R",
            size=f"{count:,}",
            ours=milliseconds(us, times),
            beside=milliseconds(r, times),
            unit=" ms",
            label="R",
            goal=at_most(1.6),
        )
    )
