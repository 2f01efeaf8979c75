"""Parent links of a source: those that lead nowhere are repaired, and records are put in log order."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

Links = Mapping[str, str | None]
"""The parent of each record (None for a root); the keys stand in file order."""


def repair(links: Links) -> tuple[dict[str, str | None], set[str]]:
    """The links with every one leading to a root, and the records that lost theirs.

    An unknown parent and a record as its own parent make a root; of a cycle the record that is first in the file
    loses its parent.
    """
    lost = (child for child, parent in links.items() if parent == child or parent not in links)
    repaired = {child for child in lost if links[child] is not None}
    parents = {child: None if child in repaired else parent for child, parent in links.items()}
    place = {child: at for at, child in enumerate(parents)}
    walked: dict[str, str] = {}
    for start in parents:
        at: str | None = start
        while at is not None and at not in walked:
            walked[at] = start
            at = parents[at]
        if at is not None and walked[at] == start:
            first = min(_cycle(parents, at), key=place.__getitem__)
            parents[first] = None
            repaired.add(first)
    return parents, repaired


def log_order(links: Links) -> list[str]:
    """The records with each parent before its children, otherwise in file order; every link must lead to a root."""
    names = list(links)
    place = {child: at for at, child in enumerate(names)}
    children: dict[str, list[int]] = {}
    ready = []
    for child, parent in links.items():
        if parent is None:
            ready.append(place[child])
        else:
            children.setdefault(parent, []).append(place[child])
    heapq.heapify(ready)
    ordered = []
    while ready:
        name = names[heapq.heappop(ready)]
        ordered.append(name)
        for at in children.get(name, ()):
            heapq.heappush(ready, at)
    return ordered


def _cycle(parents: Links, start: str) -> list[str]:
    members = [start]
    at = parents[start]
    while at is not None and at != start:
        members.append(at)
        at = parents[at]
    return members
