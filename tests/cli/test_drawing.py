from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.compactions import Compaction
from projections.overview import Place
from replay.cli.drawing import ASIDE, COVERED, CURRENT, ON_PATH, SUMMARY, Line, Tree

Parents = Sequence[int | None]


def tree_of(parents: Parents, current: int | None, spans: Sequence[tuple[int, int]] = ()) -> Tree:
    """Return the tree in which the n-th message hangs below the message that `parents` names n-th."""
    places = [
        Place(id=str(at), parent_id=None if parent is None else str(parent), role="user")
        for at, parent in enumerate(parents)
    ]
    now = dt.datetime.now(dt.UTC)
    compactions = [
        Compaction(str(number), "", str(first), str(last), now, stale=False)
        for number, (first, last) in enumerate(spans)
    ]
    return Tree(places, None if current is None else str(current), compactions)


def parents_drawn(lines: Sequence[Line | None]) -> dict[int, int | None]:
    """Return the parent of each message as a person reads it off the drawing."""
    parents: dict[int, int | None] = {}
    columns: dict[int, int] = {}
    for line in lines:
        if line is None:
            columns.clear()
            continue
        assert line.index is not None
        column = len(line.lead)
        parents[line.index] = columns.get(column - 2 if line.lead.endswith("├─") else column)
        columns[column] = line.index
    return parents


@st.composite
def trees(draw: st.DrawFn) -> tuple[Parents, int | None]:
    """Draw a tree of up to sixty messages, and its current leaf or none."""
    size = draw(st.integers(0, 60))
    parents = [draw(st.none() | st.integers(0, at - 1)) if at else None for at in range(size)]
    return parents, draw(st.none() | st.integers(0, size - 1)) if size else None


@given(trees())
def test_drawing_can_be_read_back(tree: tuple[Parents, int | None]) -> None:
    """Every message is drawn once, and where it hangs can be read off the drawing."""
    parents, current = tree
    lines = list(tree_of(parents, current).draw(full=True))
    assert len([line for line in lines if line is not None]) == len(parents)
    assert parents_drawn(lines) == dict(enumerate(parents))


@given(trees())
def test_cut_drawing_hides_what_it_says(tree: tuple[Parents, int | None]) -> None:
    """The messages shown and those said to be hidden are all there are, and the current leaf is never hidden."""
    parents, current = tree
    lines = [line for line in tree_of(parents, current).draw(full=False) if line is not None]
    shown = [line.index for line in lines if line.index is not None]
    assert len(set(shown)) == len(shown)
    assert len(shown) + sum(line.hidden for line in lines) == len(parents)
    assert current is None or current in shown


@given(trees())
def test_glyphs_tell_the_current_path(tree: tuple[Parents, int | None]) -> None:
    """The current leaf, the messages above it, and all others have each a glyph of their own."""
    parents, current = tree
    path = set()
    at = current
    while at is not None:
        path.add(at)
        at = parents[at]
    for line in tree_of(parents, current).draw(full=True):
        if line is not None:
            assert line.index is not None
            expected = CURRENT if line.index == current else ON_PATH if line.index in path else ASIDE
            assert line.glyph == expected


@given(trees())
def test_drawing_stays_narrow(tree: tuple[Parents, int | None]) -> None:
    """However the branches lie, a message is indented by no more than the logarithm of the tree's size allows."""
    parents, current = tree
    widest = max((len(line.lead) for line in tree_of(parents, current).draw(full=True) if line), default=0)
    assert widest <= 2 * (math.log2(len(parents) + 1) + 1)


def test_current_path_goes_straight_down() -> None:
    """The current path is not indented, and a branch stands between a message and what goes straight on."""
    lines = tree_of([None, 0, 1, 0], 3).draw(full=True)
    assert [(line.lead, line.index) for line in lines if line] == [("", 0), ("├─", 1), ("│ ", 2), ("", 3)]


def test_roots_stand_apart() -> None:
    """Between two roots is an empty line, since the second hangs below nothing."""
    lines = list(tree_of([None, 0, None], None).draw(full=True))
    assert [line and line.index for line in lines] == [0, 1, None, 2]


@pytest.mark.parametrize(("size", "hidden"), [(6, 0), (7, 3), (30, 26)])
def test_long_stretch_is_cut_short(size: int, hidden: int) -> None:
    """A stretch without branches shows its two ends when three or more messages are hidden by that."""
    lines = list(tree_of([None, *range(size - 1)], size - 1).draw(full=False))
    assert sum(line.hidden for line in lines if line) == hidden


@pytest.mark.parametrize("full", [True, False], ids=["full", "cut"])
def test_deep_tree(full: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A chain of 100,000 messages is drawn in a moment: depth costs no recursion, and nothing twice."""
    size = 100_000
    started = time.perf_counter()
    lines = list(tree_of([None, *range(size - 1)], size - 1).draw(full=full))
    assert len(lines) == (size if full else 5)
    assert time.perf_counter() - started < 10


def test_branches_at_every_message() -> None:
    """Ten thousand branches, one at every message of a deep path, stay in two columns."""
    size = 10_000
    parents: list[int | None] = [None, None]
    for at in range(2, size, 2):
        parents += [at - 2, at - 2]
    parents[1] = 0
    lines = list(tree_of(parents, size - 2).draw(full=True))
    assert {line.lead for line in lines if line} == {"", "├─"}


def to_root(parents: Parents, at: int) -> list[int]:
    """Return a message and those above it."""
    found = [at]
    while (parent := parents[found[-1]]) is not None:
        found.append(parent)
    return found


def stretch(parents: Parents, first: int, last: int) -> list[int]:
    """Return the messages from one up to another on its path; none when it is not on that."""
    path = to_root(parents, last)
    return path[: path.index(first) + 1] if first in path else []


@given(st.data())
def test_compactions_are_drawn(data: st.DataObject) -> None:
    """However compactions overlap, all messages are drawn, and on the path the newest of those that overlap are."""
    size = data.draw(st.integers(1, 20))
    parents = [None, *(data.draw(st.none() | st.integers(0, at - 1)) for at in range(1, size))]
    current = data.draw(st.integers(0, size - 1))
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    spans = [span for span in data.draw(st.lists(ends, max_size=5)) if stretch(parents, *span)]
    path = set(to_root(parents, current))
    shown: list[int] = []
    covered: set[int] = set()
    for number, span in reversed(list(enumerate(spans))):
        members = set(stretch(parents, *span))
        if span[1] not in path:
            shown.append(number)
        elif not members & covered:
            shown.append(number)
            covered |= members
    lines = [line for line in tree_of(parents, current, spans).draw(full=True) if line is not None]
    assert sorted(int(line.compaction.id) for line in lines if line.compaction) == sorted(shown)
    assert sorted(line.index for line in lines if line.index is not None) == list(range(size))
    for before, line in pairwise(lines):
        if before.compaction is not None:
            assert before.glyph == SUMMARY
            assert line.compaction is not None or str(line.index) == before.compaction.from_message_id
    assert {line.index for line in lines if line.glyph == COVERED} == covered - {current}
