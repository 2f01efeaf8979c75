"""What updates and deletions inside a path have changed of its sums, so that no row below them is touched.

A correction stands at its ordinal and in ever wider buckets of ordinals, 64 of one level to one of the next: the sum up
to an ordinal is a few rows of each level, however many corrections there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    Table,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    text,
    union_all,
)

from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata
from projections.paths import Range
from projections.tree_tables import messages

LEVELS = 4
BITS = 6

corrections = Table(
    "message_corrections",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("run", BigInteger, primary_key=True),
    Column("level", Integer, primary_key=True),
    Column("bucket", BigInteger, primary_key=True),
    Column("messages", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)

_sums = ("messages", "tokens", "bytes")
_ADD = Statement(
    text(
        "INSERT INTO message_corrections (stream_no, run, level, bucket, messages, tokens, bytes)"
        " VALUES (:stream_no, :run, :level, :bucket, :messages, :tokens, :bytes)"
        " ON CONFLICT (stream_no, run, level, bucket) DO UPDATE SET "
        + ", ".join(f"{name} = message_corrections.{name} + excluded.{name}" for name in _sums)
    ),
    "stream_no",
    "run",
    "level",
    "bucket",
    *_sums,
)
_FORGET = Statement(delete(corrections).where(corrections.c.stream_no == bindparam("stream_no")), "stream_no")
_FORGET_RUN = Statement(
    delete(corrections).where(corrections.c.stream_no == bindparam("stream_no"), corrections.c.run == bindparam("run")),
    "stream_no",
    "run",
)
_bounds = [(f"low_{level}", f"high_{level}") for level in range(LEVELS)]
_buckets = union_all(
    *(
        select(corrections.c.messages, corrections.c.tokens, corrections.c.bytes).where(
            corrections.c.stream_no == bindparam("stream_no"),
            corrections.c.run == bindparam("run"),
            corrections.c.level == literal_column(str(level)),
            corrections.c.bucket.between(bindparam(low), bindparam(high)),
        )
        for level, (low, high) in enumerate(_bounds)
    )
).subquery()
_SUM = Statement(
    select(*(func.coalesce(func.sum(_buckets.c[name]), 0) for name in _sums)),
    "stream_no",
    "run",
    *(name for bounds in _bounds for name in bounds),
)
_ROW = Statement(
    select(messages.c.tokens, messages.c.path_tokens, messages.c.path_bytes).where(
        messages.c.stream_no == bindparam("stream_no"),
        messages.c.run == bindparam("run"),
        messages.c.ordinal == bindparam("ordinal"),
    ),
    "stream_no",
    "run",
    "ordinal",
)


class Sums(msgspec.Struct):
    """How many messages there are on a path, and what they come to."""

    messages: int = 0
    tokens: int = 0
    bytes: int = 0


class Correction(msgspec.Struct):
    """What is to be added to the sums of all paths that go through a place."""

    messages: int = 0
    tokens: int = 0
    bytes: int = 0


def add_corrections(tx: Tx, found: Mapping[tuple[int, int, int], Correction]) -> None:
    """Add corrections at places: (stream number, run, ordinal)."""
    sums: dict[tuple[int, int, int, int], Correction] = {}
    for (stream_no, run, ordinal), correction in found.items():
        for level in range(LEVELS):
            total = sums.setdefault((stream_no, run, level, ordinal >> BITS * level), Correction())
            total.messages += correction.messages
            total.tokens += correction.tokens
            total.bytes += correction.bytes
    tx.executemany(_ADD, [(*key, total.messages, total.tokens, total.bytes) for key, total in sums.items()])


def forget_corrections(tx: Tx, stream_no: int, run: int | None = None) -> None:
    """Drop the corrections of a stream, or of one run of it."""
    if run is None:
        tx.execute(_FORGET, (stream_no,))
    else:
        tx.execute(_FORGET_RUN, (stream_no, run))


def sums_of(tx: Tx, stream_no: int, path: Sequence[Range]) -> Sums:
    """The sums of a whole path from its root on, which ends with a message that is there."""
    if not path:
        return Sums()
    end = path[-1]
    _, path_tokens, path_bytes = tx.fetch(_ROW, (stream_no, end.run, end.last))[0]
    sums = Sums(end.last, path_tokens, path_bytes)
    for part in path:
        removed, tokens, size = _until(tx, stream_no, part.run, part.last)
        sums.messages += removed
        sums.tokens += tokens
        sums.bytes += size
    return sums


def tokens_of(tx: Tx, stream_no: int, stretch: Sequence[Range]) -> int:
    """The tokens of a stretch of a path, the ends of which are messages that are there."""
    first, end = stretch[0], stretch[-1]
    tokens, before, _ = tx.fetch(_ROW, (stream_no, first.run, first.first))[0]
    after = tx.fetch(_ROW, (stream_no, end.run, end.last))[0][1]
    corrected = sum(_until(tx, stream_no, part.run, part.last)[1] for part in stretch)
    return int(after - before + tokens + corrected - _until(tx, stream_no, first.run, first.first)[1])


def _until(tx: Tx, stream_no: int, run: int, ordinal: int) -> Row:
    """What is corrected of a run up to an ordinal: messages, tokens, bytes."""
    bounds: list[int] = []
    for level in range(LEVELS):
        # The buckets of this level that the next one does not hold yet; of the widest, all.
        stop = ordinal + 1 >> BITS * level
        low = 0 if level == LEVELS - 1 else stop >> BITS << BITS
        bounds += (low, stop - 1)
    return tx.fetch(_SUM, (stream_no, run, *bounds))[0]
