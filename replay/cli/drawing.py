"""The branch graph as lines, from the root down: which message stands in which line, and what is drawn before it.

The current path goes straight down; beside it a branch is drawn with a fork before the straight line goes on. Off the
path the largest branch goes straight on, so that however many branches there are, the drawing stays narrow. Where a
compaction begins, a line before its first message says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from projections.compactions import Compaction
from projections.overview import Place

SHOWN = 2
"""How many messages are shown at either end of a stretch that is cut short."""
SHORTEST_CUT = 3
"""A stretch is cut short when at least so many messages are hidden by it."""

CURRENT, ON_PATH, COVERED, ASIDE, HIDDEN, SUMMARY = "◉", "●", "◍", "○", "┊", "≡"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the drawing: its message's index, or the compaction that begins, or how many messages are hidden."""

    lead: str
    glyph: str
    index: int | None = None
    compaction: Compaction | None = None
    hidden: int = 0


class Tree:
    """The shape of a session: messages in log order, a parent before its children, the current leaf, compactions.

    A compaction on the current path is drawn when it is shown there: the newest of those that overlap. Off the path
    all are.
    """

    def __init__(self, places: Sequence[Place], leaf_id: str | None, compactions: Sequence[Compaction] = ()) -> None:
        self.places = places
        index = {place.id: at for at, place in enumerate(places)}
        self.roots: list[int] = []
        self._children: dict[int, list[int]] = {}
        self._size = [1] * len(places)
        for at, place in enumerate(places):
            if place.parent_id is None:
                self.roots.append(at)
            else:
                self._children.setdefault(index[place.parent_id], []).append(at)
        for at in range(len(places) - 1, -1, -1):
            parent_id = places[at].parent_id
            if parent_id is not None:
                self._size[index[parent_id]] += self._size[at]
        self.current = None if leaf_id is None else index.get(leaf_id)
        self._path: set[int] = set()
        at_or_none = self.current
        while at_or_none is not None:
            self._path.add(at_or_none)
            parent_id = places[at_or_none].parent_id
            at_or_none = None if parent_id is None else index[parent_id]

        self._begins: dict[int, list[Compaction]] = {}
        self._covered: dict[int, Compaction] = {}
        # The ends of compactions, which are drawn however long the stretch is.
        self._ends: set[int] = set()
        for compaction in reversed(compactions):
            self._take_in(compaction, index)

    def _take_in(self, compaction: Compaction, index: dict[str, int]) -> None:
        at = index.get(compaction.to_message_id)
        first = index.get(compaction.from_message_id)
        span: list[int] = []
        while at is not None:
            span.append(at)
            if at == first:
                break
            parent_id = self.places[at].parent_id
            at = None if parent_id is None else index[parent_id]
        # Tree and compactions are read one after the other: somebody may have deleted an end in between.
        if at is None:
            return
        if span[0] in self._path:
            if any(one in self._covered for one in span):
                return
            covered = span
        else:
            # On the current path the messages above the fork are shown.
            covered = [one for one in span if one not in self._path]
        self._begins.setdefault(at, []).append(compaction)
        self._ends |= {span[0], at}
        for one in covered:
            self._covered.setdefault(one, compaction)

    def compaction_of(self, at: int) -> Compaction | None:
        """The compaction that stands for a message."""
        return self._covered.get(at)

    def is_leaf(self, at: int) -> bool:
        """Whether no message follows this one."""
        return at not in self._children

    def on_path(self, at: int) -> bool:
        """Whether a message is on the path to the current leaf."""
        return at in self._path

    def draw(self, *, full: bool) -> Iterator[Line | None]:
        """The lines from the top down, None between two roots; unless `full`, long stretches are cut short."""
        for number, root in enumerate(self.roots):
            if number:
                yield None
            yield from self._draw(root, full=full)

    def _draw(self, root: int, *, full: bool) -> Iterator[Line]:
        # What is still to be drawn, the next last: a message, what is drawn before it, and before those below it.
        waiting = [(root, "", "")]
        while waiting:
            start, first_lead, lead = waiting.pop()
            stretch = self._stretch(start)
            shown = self._shown(stretch, full=full)
            for number, line in enumerate(shown):
                yield msgspec.structs.replace(line, lead=lead if number else first_lead)
            children = self._children.get(stretch[-1], [])
            if children:
                straight = max(children, key=lambda child: (child in self._path, self._size[child], child))
                waiting.append((straight, lead, lead))
                asides = [(child, lead + "├─", lead + "│ ") for child in children if child != straight]
                waiting += reversed(asides)

    def _stretch(self, start: int) -> list[int]:
        """The messages from one on that have one child each, up to a fork, a leaf or the current leaf."""
        stretch = [start]
        while stretch[-1] != self.current and len(children := self._children.get(stretch[-1], [])) == 1:
            stretch.append(children[0])
        return stretch

    def _shown(self, stretch: Sequence[int], *, full: bool) -> list[Line]:
        shown: list[Line] = []
        kept = {*stretch[:SHOWN], *stretch[-SHOWN:], *self._ends}
        for is_kept, group in groupby(stretch, lambda at: full or at in kept):
            run = list(group)
            if is_kept or len(run) < SHORTEST_CUT:
                for at in run:
                    shown += self._lines(at)
            else:
                shown.append(Line(lead="", glyph=HIDDEN, hidden=len(run)))
        return shown

    def _lines(self, at: int) -> Iterator[Line]:
        for compaction in self._begins.get(at, ()):
            yield Line(lead="", glyph=SUMMARY, compaction=compaction)
        on_path = COVERED if at in self._covered else ON_PATH
        glyph = CURRENT if at == self.current else on_path if at in self._path else ASIDE
        yield Line(lead="", glyph=glyph, index=at)
