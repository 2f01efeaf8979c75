"""The branch graph as lines, from the root down: which message stands in which line, and what is drawn before it.

The current path goes straight down; beside it a branch is drawn with a fork before the straight line goes on. Off the
path the largest branch goes straight on, so that however many branches there are, the drawing stays narrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from projections.overview import Place

SHOWN = 2
"""How many messages are shown at either end of a stretch that is cut short."""
SHORTEST_CUT = 3
"""A stretch is cut short when at least so many messages are hidden by it."""

CURRENT, ON_PATH, ASIDE, HIDDEN = "◉", "●", "○", "┊"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the drawing: its message's index, or for a cut how many messages it hides (and no index)."""

    lead: str
    glyph: str
    index: int | None = None
    hidden: int = 0


class Tree:
    """The shape of a session: messages in log order, a parent before its children, and the current leaf."""

    def __init__(self, places: Sequence[Place], leaf_id: str | None) -> None:
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
                yield Line(lead=lead if number else first_lead, glyph=line.glyph, index=line.index, hidden=line.hidden)
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
        hidden = len(stretch) - 2 * SHOWN
        if full or hidden < SHORTEST_CUT:
            return [self._line(at) for at in stretch]
        cut = Line(lead="", glyph=HIDDEN, hidden=hidden)
        return [*map(self._line, stretch[:SHOWN]), cut, *map(self._line, stretch[-SHOWN:])]

    def _line(self, at: int) -> Line:
        glyph = CURRENT if at == self.current else ON_PATH if at in self._path else ASIDE
        return Line(lead="", glyph=glyph, index=at)
