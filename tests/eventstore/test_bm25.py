from __future__ import annotations

import random

import pytest
from sqlalchemy import select

from eventstore.bm25 import count
from eventstore.ports import Tx
from eventstore.statements import Statement
from tests.eventstore.support import MEMORY, opened

PHRASES = [("a",), ("a", "a"), ("a", "b"), ("c",), ("b", "a", "b")]


@pytest.mark.parametrize(
    ("tokens", "phrase", "times"),
    [
        ("a b a", ("a",), 2),
        ("a a a", ("a", "a"), 2),
        ("a b a b a b", ("a", "b", "a"), 2),
        ("a b", ("b", "a"), 0),
        ("", ("a",), 0),
        ("a", ("a", "a"), 0),
    ],
)
def test_phrases_are_counted_where_they_begin(tokens: str, phrase: tuple[str, ...], times: int) -> None:
    """A phrase is counted at every place where it begins, overlapping ones included."""
    assert count(tokens.split(), phrase) == times


@pytest.mark.parametrize("seed", range(5))
async def test_ranks_are_those_that_the_index_gives(seed: int) -> None:
    """A row that is not in an index yet is given the rank that the index gives it once it is, to the last digits."""
    chance = random.Random(seed)
    rows = [chance.choices("abcd", k=chance.randrange(1, 30)) for _ in range(40)]
    indexed = chance.choice([0, 1, 25, 39])

    def begin(tx: Tx) -> None:
        index = tx.dialect.text_index("words")
        index.create(tx)
        index.add(tx, [(number, rows[number], 1) for number in range(indexed)])

    def end(tx: Tx) -> None:
        tx.dialect.text_index("words").add(tx, [(number, rows[number], 1) for number in range(indexed, len(rows))])

    def told(tx: Tx) -> list[dict[int, float]]:
        index = tx.dialect.text_index("words")
        return [dict(enumerate(index.ranks_of(tx, [one], rows[indexed:]), start=indexed)) for one in PHRASES]

    def given(tx: Tx) -> list[dict[int, float]]:
        index = tx.dialect.text_index("words")
        hits = index.hits()
        query = Statement(select(hits.c.row_no, hits.c.rank), "query")
        return [dict(tx.fetch(query, (index.query([one]),))) for one in PHRASES]

    async with opened(MEMORY) as log:
        await log.database.write(begin)
        expected = await log.read(told)
        await log.database.write(end)
        for ranks, found in zip(expected, await log.read(given), strict=True):
            assert len(ranks) == len(rows) - indexed
            assert ranks == pytest.approx({row: found.get(row, 0.0) for row in ranks})
