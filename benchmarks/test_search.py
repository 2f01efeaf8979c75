"""Searching one session of 100,000 messages, beside a bare FTS5 query with the rows it finds (S)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.board import amount, at_most, ratio
from benchmarks.conftest import Post
from benchmarks.corpus import REFERENCES, Corpus
from benchmarks.floors import Floor, append_in_groups
from benchmarks.ours import Ours, append_in_batches
from benchmarks.rounds import Contestant, milliseconds, race

MESSAGES = 100_000
LIMIT = 20
RARE = [str(number) for number in REFERENCES[:50]]
COMMON = ["you"]

Index = tuple[Ours, Floor]


@pytest.fixture(scope="module")
def index(runner: asyncio.Runner) -> Iterator[Index]:
    """The same messages in a store of ours and in a floor."""
    corpus = Corpus(seed=13)
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with closing(Ours(runner, folder / "ours.db")) as ours, closing(Floor(folder / "floor.db")) as floor:
            for _ in range(MESSAGES // 5_000):
                messages = corpus.messages(5_000)
                append_in_groups(floor, "chat", messages, size=1_000)
                ours.run(append_in_batches(ours.session("chat"), messages))
            yield ours, floor


@pytest.mark.parametrize(
    ("term", "words", "order"),
    [("rare term", RARE, "relevance"), ("common term", COMMON, "relevance"), ("common term", COMMON * 50, "newest")],
)
def test_search(
    benchmark: BenchmarkFixture,
    post: Post,
    index: Index,
    term: str,
    words: list[str],
    order: Literal["relevance", "newest"],
) -> None:
    """The top 20 for a word in 1 of 1,000 messages and for one in half of them."""
    ours, floor = index

    async def search() -> list[int]:
        session = ours.session("chat")
        return [len(await session.search(word, limit=LIMIT, order=order)) for word in words]

    def bare(_: None) -> list[int]:
        return [len(floor.search("chat", word, newest_first=order == "newest")) for word in words]

    us, s = race(benchmark, Contestant(lambda: None, lambda _: ours.run(search())), Contestant(lambda: None, bare))
    assert us[0].result == s[0].result == [LIMIT] * len(words)
    size = f"top {LIMIT} of {MESSAGES:,}"
    ranked = order == "relevance"
    name = f"search, {'ranked' if ranked else 'newest first'}, {term}"
    mine = milliseconds(us, len(words))
    post(
        ratio(
            f"{name} ÷ S",
            size=size,
            ours=mine,
            beside=milliseconds(s, len(words)),
            unit=" ms",
            label="S",
            goal=at_most(1.3) if ranked else None,
        )
    )
    if not ranked:
        post(amount(name, size=size, ours=mine, unit=" ms", goal=at_most(1, " ms")))
