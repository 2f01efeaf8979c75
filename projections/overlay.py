"""Compactions applied to a path: the view, in which a summary stands for what it covers.

The newest compaction on a path wins; an older one that overlaps it is not applied.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence, Set
from operator import itemgetter

import msgspec

from eventstore.ports import Tx
from projections.compactions import Span, find_summary, list_spans
from projections.corrections import sums_of, tokens_of
from projections.message import COMPACTION_PREFIX, wire_time
from projections.paths import Range


class Overlay(msgspec.Struct, frozen=True):
    """A summary as a message of the view: its JSON text, and the stored time of its compaction."""

    content: str
    created_at: object


View = list[Range | Overlay]

Point = tuple[int, int]
"""A place on a path: the index of its range, and the ordinal."""


def view_of(
    tx: Tx, stream_no: int, path: Sequence[Range], *, start: Point = (0, 0), without: Set[int] = frozenset()
) -> View:
    """A path with its overlays, from a point on; an overlay that reaches over the start stands there.

    `without` are the rows of compactions that are passed over.
    """
    view: View = []
    done = max(start, (0, 0))
    spans = [span for span in list_spans(tx, stream_no) if span.row_id not in without]
    for span, first, last in _applied(spans, path):
        if last < start:
            continue
        view += _cut(path, done, first)
        view.append(_overlay(tx, span))
        done = (last[0], last[1] + 1)
    view += _cut(path, done, (len(path), 0))
    return view


def view_tokens(tx: Tx, stream_no: int, path: Sequence[Range]) -> int:
    """The tokens of a path with its overlays, from sums: no message is read."""
    total = sums_of(tx, stream_no, path).tokens
    for span, first, last in _applied(list_spans(tx, stream_no), path):
        covered = list(_cut(path, first, (last[0], last[1] + 1)))
        total += span.tokens - tokens_of(tx, stream_no, covered)
    return total


def _applied(spans: Sequence[Span], path: Sequence[Range]) -> list[tuple[Span, Point, Point]]:
    """The spans that are shown on a path, in its order, with their ends as points of it."""
    if not spans:
        return []
    indices = {part.run: index for index, part in enumerate(path)}
    shown: list[tuple[Point, Point, Span]] = []
    for span in reversed(spans):
        index = indices.get(span.to_run)
        if index is None or span.to_ordinal > path[index].last:
            continue
        first, last = (indices[span.from_run], span.from_ordinal), (index, span.to_ordinal)
        # What is shown already does not overlap: only the neighbours may reach into it.
        at = bisect(shown, first, key=itemgetter(0))
        if (at == 0 or shown[at - 1][1] < first) and (at == len(shown) or last < shown[at][0]):
            shown.insert(at, (first, last, span))
    return [(span, first, last) for first, last, span in shown]


def _cut(path: Sequence[Range], start: Point, stop: Point) -> Iterator[Range]:
    """The ranges of a path from one point to before another."""
    for index in range(start[0], min(stop[0] + 1, len(path))):
        part = path[index]
        first = max(part.first, start[1]) if index == start[0] else part.first
        last = min(part.last, stop[1] - 1) if index == stop[0] else part.last
        if first <= last:
            yield Range(part.run, first, last)


def _overlay(tx: Tx, span: Span) -> Overlay:
    compaction_id, summary, created_at = find_summary(tx, span.row_id)
    time = wire_time(tx.dialect.to_time(created_at))
    message = {
        "id": COMPACTION_PREFIX + compaction_id,
        "role": "assistant",
        "parts": [{"type": "text", "text": summary}],
        "createdAt": time,
    }
    return Overlay(msgspec.json.encode(message).decode(), created_at)
