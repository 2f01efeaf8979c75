from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import func, insert, select

from eventstore.log import EventLog
from eventstore.ports import Tx
from eventstore.statements import Statement
from projections import MessageTree
from projections.corrections import (
    LEVELS,
    Correction,
    Sums,
    add_corrections,
    corrections,
    forget_corrections,
    sums_of,
)
from projections.paths import Range
from projections.tree_tables import messages
from tests.eventstore.support import MEMORY
from tests.eventstore.support import opened as log_opened
from tests.projections.support import chain, deleted, on, opened, updated

_ADD_MESSAGE = Statement(insert(messages), *messages.columns.keys())
_COUNT = Statement(select(func.count()).select_from(corrections))

EDGES = [64**level * times + off for level in range(7) for times in (1, 2, 63) for off in (-1, 0, 1)]
ORDINALS = st.one_of(
    st.integers(1, 200), st.sampled_from([edge for edge in EDGES if 1 <= edge <= 1 << 40]), st.integers(1, 1 << 40)
)
CORRECTIONS = st.builds(Correction, st.integers(-1, 0), st.integers(-(1 << 20), 1 << 20), st.integers(-999, 999))
PLACES = st.tuples(st.sampled_from([1, 2]), ORDINALS)
Steps = Sequence[dict[tuple[int, int], Correction]]


def add_message(tx: Tx, stream_no: int, run: int, ordinal: int) -> None:
    """Put a row of 3 tokens at a place, on a path of 1,000 tokens and 2,000 bytes."""
    row_id = tx.fetch(Statement(select(func.count()).select_from(messages)))[0][0] + 1
    row = (row_id, stream_no, f"m{row_id}", "s", None, "user", "", run, ordinal, 0, 3, 1_000, 7, 2_000, "")
    tx.execute(_ADD_MESSAGE, row)


def plainly(steps: Steps, path: Sequence[Range]) -> Sums:
    """Add up a path the plain way: every correction that lies on it."""
    sums = Sums(path[-1].last, 1_000, 2_000)
    for step in steps:
        for (run, ordinal), correction in step.items():
            if any(part.run == run and ordinal <= part.last for part in path):
                sums.messages += correction.messages
                sums.tokens += correction.tokens
                sums.bytes += correction.bytes
    return sums


async def summed(steps: Steps, paths: Sequence[Sequence[Range]]) -> list[Sums]:
    """Add corrections step by step, beside those of another stream, and return the sums of some paths."""
    async with log_opened(MEMORY, MessageTree(len)) as log:

        def work(tx: Tx) -> list[Sums]:
            for step in steps:
                here = {(1, run, ordinal): correction for (run, ordinal), correction in step.items()}
                there = {(2, run, ordinal): Correction(-9, 9, 9) for run, ordinal in step}
                add_corrections(tx, here | there)
            for run, last in dict.fromkeys((path[-1].run, path[-1].last) for path in paths):
                add_message(tx, 1, run, last)
            return [sums_of(tx, 1, path) for path in paths]

        return await log.database.write(work)


@given(st.lists(st.dictionaries(PLACES, CORRECTIONS, max_size=8), max_size=4), st.lists(ORDINALS, max_size=4))
@example([{(1, edge): Correction(0, 1, 1) for edge in EDGES}], [64, 63, 4_095, 4_096, 64**3 - 1, 64**3, 64**4, 1 << 40])
@example([{(1, 64**4 + 64): Correction(0, 5, 0)}], [64**4 + 63, 64**4 + 64, 64**4 + 65])
def test_sums_are_those_of_the_plain_way(steps: Steps, more: list[int]) -> None:
    """The sum up to any ordinal, on one run or through two, counts each correction on the path once and no other."""
    ordinals = {*more, *(ordinal for step in steps for _, ordinal in step), 1}
    lasts = {near for ordinal in ordinals for near in (ordinal - 1, ordinal, ordinal + 1) if near >= 1}
    paths = [[Range(1, 1, last)] for last in sorted(lasts)]
    paths += [[Range(1, 1, last), Range(2, last + 1, last + 70)] for last in sorted(lasts)]
    assert asyncio.run(summed(steps, paths)) == [plainly(steps, path) for path in paths]


def test_sums_of_a_correction_at_every_ordinal() -> None:
    """With a correction at each of many ordinals, the sum up to every one of them is right."""
    steps = [{(1, ordinal): Correction(-(ordinal % 2), ordinal, -ordinal) for ordinal in range(1, 4_200)}]
    paths = [[Range(1, 1, last)] for last in (*range(1, 70), *range(4_030, 4_200, 3))]
    assert asyncio.run(summed(steps, paths)) == [plainly(steps, path) for path in paths]


@pytest.mark.parametrize("order", [1, -1])
async def test_corrections_add_up_in_place(order: int) -> None:
    """Corrections at the same place, whether they come together or one after the other, take no more rows."""
    async with log_opened(MEMORY, MessageTree(len)) as log:
        steps = [Correction(0, 5, 1), Correction(0, -2, 1), Correction(-1, -3, -2)][::order]

        def work(tx: Tx) -> tuple[int, Sums]:
            for correction in steps:
                add_corrections(tx, {(1, 1, 100): correction})
            add_message(tx, 1, 1, 200)
            return tx.fetch(_COUNT)[0][0], sums_of(tx, 1, [Range(1, 1, 200)])

        assert await log.database.write(work) == (LEVELS, Sums(199, 1_000, 2_000))


async def test_forgotten_corrections_are_one_streams() -> None:
    """Forgetting the corrections of a stream leaves those of every other."""
    async with log_opened(MEMORY, MessageTree(len)) as log:

        def work(tx: Tx) -> list[Sums]:
            for stream_no in (1, 2):
                add_corrections(tx, {(stream_no, 1, 5): Correction(-1, -10, -20)})
                add_message(tx, stream_no, 1, 9)
            forget_corrections(tx, 1)
            return [sums_of(tx, stream_no, [Range(1, 1, 9)]) for stream_no in (1, 2)]

        assert await log.database.write(work) == [Sums(9, 1_000, 2_000), Sums(8, 990, 1_980)]


async def test_no_corrections_are_no_work() -> None:
    """Adding no corrections writes nothing, and an empty path comes to nothing."""
    async with log_opened(MEMORY, MessageTree(len)) as log:
        await log.database.write(lambda tx: add_corrections(tx, {}))
        assert await count(log) == 0
        assert await log.read(lambda tx: sums_of(tx, 1, [])) == Sums()


async def count(log: EventLog) -> int:
    """Return how many rows of corrections there are."""
    found: int = await log.read(lambda tx: tx.fetch(_COUNT)[0][0])
    return found


async def test_appends_and_edits_of_the_tip_leave_no_corrections() -> None:
    """What touches nothing below it needs no correction: only edits inside a path and deletions write some."""
    async with opened(estimate_tokens=len) as store:
        await store.log.append("s", [*chain("1", "2", "3"), updated("3", "longer"), updated("3", "the longest")])
        assert await count(store.log) == 0
        await store.log.append("s", [updated("2", "x")])
        assert await count(store.log) == LEVELS
        await store.log.append("s", [deleted("2")])
        assert await count(store.log) == LEVELS
        sums = await on(store, lambda tx, no: sums_of(tx, no, [Range(1, 1, 3)]))
        assert (sums.messages, sums.tokens) == (2, (4 + 5) + (4 + 11))
