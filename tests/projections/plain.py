"""A session as its events tell it, in dicts: what the tables of the tree are compared with."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from eventstore import CompactionAdded, Event, LeafSelected, MessageAppended, MessagesCleared, MessagesDeleted
from eventstore.events import MessageUpdated
from projections.tokens import MESSAGE_TOKENS
from tests.projections.support import appended, cleared, compacted, deleted, updated


@dataclasses.dataclass
class Held:
    """What counts of a message: the length of its text is the estimate of its tokens."""

    tokens: int
    bytes: int


@dataclasses.dataclass
class Cover:
    """A compaction, and all that it was made of."""

    id: str
    names: list[str]
    tokens: int
    stale: bool = False


class Plain:
    """One session. Parents are kept for good: what is deleted is passed over whenever a path is walked."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.held: dict[str, Held] = {}
        self.covers: list[Cover] = []
        self.tip: str | None = None

    def apply(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, MessageAppended):
            name = event.message["id"]
            self.parents[name] = event.parent_id
            self.held[name] = _held(event)
            self.tip = name
        elif isinstance(event, MessageUpdated):
            name = event.message["id"]
            self.held[name] = _held(event)
            for cover in self.covers:
                cover.stale |= name in cover.names
        elif isinstance(event, MessagesDeleted):
            self._delete(set(event.message_ids))
        elif isinstance(event, MessagesCleared):
            self.parents, self.held, self.covers, self.tip = {}, {}, [], None
        elif isinstance(event, LeafSelected):
            self.tip = event.message_id
        elif isinstance(event, CompactionAdded):
            path = self.path(event.to_message_id)
            names = path[path.index(event.from_message_id) :]
            self.covers.append(Cover(event.id, names, MESSAGE_TOKENS + len(event.summary)))

    def _delete(self, gone: set[str]) -> None:
        above = [name for name in self.path(self.tip) if name not in gone]
        for name in gone:
            del self.held[name]
        self.covers = [cover for cover in self.covers if self.left(cover)]
        if self.tip in gone:
            self.tip = self.newest_below(above[-1] if above else None)

    def left(self, cover: Cover) -> list[str]:
        """Return what is left of the messages that a compaction was made of."""
        return [name for name in cover.names if name in self.held]

    def newest_below(self, top: str | None) -> str | None:
        """Return the newest leaf at or below a message, or of all."""
        below = [name for name in self.held if top is None or top in self.path(name)]
        return below[-1] if below else None

    def path(self, leaf: str | None) -> list[str]:
        """Return the names from the root to a message."""
        names: list[str] = []
        while leaf is not None:
            if leaf in self.held:
                names.append(leaf)
            leaf = self.parents[leaf]
        return names[::-1]

    def parent(self, name: str) -> str | None:
        """Return the nearest surviving message above another."""
        return [None, *self.path(name)][-2]

    def children(self, name: str) -> list[str]:
        """Return the children of a message in the order of the log."""
        return [child for child in self.held if self.parent(child) == name]

    def leaves(self) -> list[str]:
        """Return the messages without children."""
        return [name for name in self.held if not self.children(name)]

    def shown(self, path: list[str]) -> dict[str, Cover]:
        """Return which compaction hides each message of a path; of those that overlap the newest is applied."""
        hidden: dict[str, Cover] = {}
        for cover in reversed(self.covers):
            left = self.left(cover)
            if set(left) <= set(path) and not hidden.keys() & set(left):
                hidden |= dict.fromkeys(left, cover)
        return hidden

    def view(self, path: list[str], start: int = 0) -> list[str]:
        """Return the ids that a path shows from its n-th message on."""
        hidden = self.shown(path)
        ids = [f"compaction_{hidden[name].id}" if name in hidden else name for name in path[start:]]
        return list(dict.fromkeys(ids))

    def view_tokens(self, path: list[str]) -> int:
        """Return what a path with its compactions comes to."""
        hidden = self.shown(path)
        covers = {cover.id: cover.tokens for cover in hidden.values()}
        return sum(self.held[name].tokens for name in path if name not in hidden) + sum(covers.values())


def _held(event: MessageAppended | MessageUpdated) -> Held:
    texts = [part["text"] for part in event.message["parts"]]
    return Held(MESSAGE_TOKENS + sum(map(len, texts)), len(bytes(event.raw)))


def random_story(chance: random.Random, plain: Plain, prefix: str = "m") -> Iterator[Event]:
    """Yield events without an end, each legal after those before it, and let the session take them in."""
    number = 0
    while True:
        number += 1
        names = list(plain.held)
        lot = chance.random() if names else 0.0
        event: Event
        if lot < 0.5:
            parent = chance.choice([plain.tip, plain.tip, plain.tip, None, *names[-3:], *names])
            event = appended(f"{prefix}{number}", parent, "x" * chance.randrange(9))
        elif lot < 0.65:
            event = updated(chance.choice(names), f"{number}" * chance.randrange(5))
        elif lot < 0.8:
            event = deleted(*chance.sample(names, min(len(names), chance.choice([1, 1, 1, 2, 3, 5]))))
        elif lot < 0.9:
            path = plain.path(chance.choice(names))
            first = chance.randrange(len(path))
            event = compacted(f"c{number}", path[first], path[chance.randrange(first, len(path))], "so" * number)
        elif lot < 0.995:
            event = LeafSelected(message_id=chance.choice(names))
        else:
            event = cleared()
        plain.apply(event)
        yield event
