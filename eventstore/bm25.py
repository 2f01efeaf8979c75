"""The rank of rows that are not in a text index yet, as if they were: BM25 with the constants of SQLite's FTS5."""

from __future__ import annotations

import math
from collections.abc import Sequence

_K1, _B = 1.2, 0.75
_LEAST_WEIGHT = 1e-6
"""What a phrase counts that more than half of all rows have."""


def count(tokens: Sequence[str], phrase: Sequence[str]) -> int:
    """How often a phrase stands in a row's tokens."""
    size, wanted = len(phrase), list(phrase)
    if size == 1:
        return tokens.count(wanted[0])
    found = [index for index, token in enumerate(tokens) if token == wanted[0]]
    return sum(list(tokens[index : index + size]) == wanted for index in found)


def ranks(
    rows: Sequence[Sequence[str]],
    phrases: Sequence[Sequence[str]],
    *,
    others: int,
    tokens_of_others: int,
    hits_of_others: Sequence[int],
    extra_tokens: int,
) -> list[float]:
    """The ranks of rows by their tokens, beside other rows of which the numbers are known; the smaller the better.

    Each row has `extra_tokens` more, which are never searched for.
    """
    lengths = [len(tokens) + extra_tokens for tokens in rows]
    total = len(rows) + others
    average = (sum(lengths) + tokens_of_others) / total if total else 1.0
    found = [[count(tokens, phrase) for phrase in phrases] for tokens in rows]
    weights: list[float] = []
    for number, elsewhere in enumerate(hits_of_others):
        hits = elsewhere + sum(counts[number] > 0 for counts in found)
        rarity = math.log((total - hits + 0.5) / (hits + 0.5))
        weights.append(rarity if rarity > 0 else _LEAST_WEIGHT)
    return [
        -sum(
            weight * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length / average))
            for weight, times in zip(weights, counts, strict=True)
        )
        for counts, length in zip(found, lengths, strict=True)
    ]
