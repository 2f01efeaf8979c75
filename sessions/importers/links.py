"""Parent links of a source: those that lead nowhere are repaired, and records are put in log order.

Records are numbers that count up from 0 in file order; a root's parent is NONE. For sources whose records have names
the same is offered over a mapping of names.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from typing import Final

NONE: Final = -1
Links = Mapping[str, str | None]
"""The parent of each record (None for a root); the keys stand in file order."""


def cut_cycles(parents: MutableSequence[int]) -> list[int]:
    """Of each cycle have the record that is first in the file lose its parent; returns those that did."""
    cut: list[int] = []
    walked = array("i", [NONE]) * len(parents)
    for start in range(len(parents)):
        at = start
        while at != NONE and walked[at] == NONE:
            walked[at] = start
            at = parents[at]
        if at != NONE and walked[at] == start:
            first = min(_cycle(parents, at))
            parents[first] = NONE
            cut.append(first)
    return cut


def root_of(ups: MutableSequence[int], at: int) -> int:
    """The root above a record; the links passed are shortened, so that long chains are not walked again and again."""
    while (above := ups[at]) != NONE:
        if ups[above] != NONE:
            ups[at] = ups[above]
        at = above
    return at


def in_log_order(parents: Sequence[int], records: Iterable[int] | None = None) -> Iterator[int]:
    """The records with each parent before its children, otherwise in file order; every link must lead to a root.

    Of `records` (None: of all), which rise, every parent must be one too.
    """
    first, following = array("i", [NONE]) * len(parents), array("i", [NONE]) * len(parents)
    ready: list[int] = []
    for child in range(len(parents)) if records is None else records:
        parent = parents[child]
        if parent == NONE:
            ready.append(child)
        else:
            following[child] = first[parent]
            first[parent] = child
    while ready:
        at = heapq.heappop(ready)
        yield at
        child = first[at]
        while child != NONE:
            heapq.heappush(ready, child)
            child = following[child]


def repair(links: Links) -> tuple[dict[str, str | None], set[str]]:
    """The links with every one leading to a root, and the records that lost theirs.

    An unknown parent and a record as its own parent make a root; of a cycle the record that is first in the file
    loses its parent.
    """
    names = list(links)
    lost = (child for child, parent in links.items() if parent == child or parent not in links)
    repaired = {child for child in lost if links[child] is not None}
    parents = numbered({child: None if child in repaired else parent for child, parent in links.items()})
    repaired.update(names[number] for number in cut_cycles(parents))
    return {
        name: None if parent == NONE else names[parent] for name, parent in zip(names, parents, strict=True)
    }, repaired


def log_order(links: Links) -> list[str]:
    """The records with each parent before its children, otherwise in file order; every link must lead to a root."""
    names = list(links)
    return [names[number] for number in in_log_order(numbered(links))]


def numbered(links: Links) -> array[int]:
    """The links as numbers; every parent must be among the records."""
    numbers = {name: number for number, name in enumerate(links)}
    return array("i", (NONE if parent is None else numbers[parent] for parent in links.values()))


def _cycle(parents: Sequence[int], start: int) -> list[int]:
    members = [start]
    at = parents[start]
    while at not in (NONE, start):
        members.append(at)
        at = parents[at]
    return members
