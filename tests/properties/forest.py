"""What sessions are meant to do, as plainly as it can be said: a dict of trees, without a log or a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from projections.analysis import analyse, parse_query
from sessions.appending import Auto, Parent


class RefusedError(Exception):
    """The model refuses an append; `kind` is the name of the error that the project raises."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Tree:
    """One session: its messages with their parents in log order, its tip, and its number of events."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.parents: dict[str, str | None] = {}
        self.tip: str | None = None
        self.version = 0

    def append(self, messages: list[dict[str, Any]], parent: Parent) -> list[bool]:
        """Append a chain, all or nothing, and return which messages were new."""
        added: dict[str, dict[str, Any]] = {}
        parents: dict[str, str | None] = {}
        new: list[bool] = []
        for message in messages:
            name = message["id"]
            if name in self.messages:
                same_place = isinstance(parent, Auto) or parent == self.parents[name]
                if not same_place or message != self.messages[name]:
                    raise RefusedError("DuplicateMessageError")
                new.append(False)
            else:
                if name in added:
                    raise RefusedError("DuplicateMessageError")
                under = self.tip if isinstance(parent, Auto) else parent
                if under is not None and under not in self.messages and under not in added:
                    raise RefusedError("ParentNotFoundError")
                added[name], parents[name] = message, under
                new.append(True)
            parent = name
        self.messages |= added
        self.parents |= parents
        self.version += len(added)
        if added:
            self.tip = list(added)[-1]
        return new

    def select(self, name: str) -> None:
        """Make a message the tip."""
        if name not in self.messages:
            raise RefusedError("MessageNotFoundError")
        self.version += self.tip != name
        self.tip = name

    def path(self, leaf: str | None) -> list[str]:
        """Return the ids from the root to a message."""
        names: list[str] = []
        while leaf is not None:
            names.append(leaf)
            leaf = self.parents[leaf]
        return names[::-1]

    def children(self, name: str) -> list[str]:
        """Return the ids of a message's children in log order."""
        return [child for child, parent in self.parents.items() if parent == name]

    def holding(self, query: str) -> Iterator[str]:
        """Yield the ids of the messages that hold all words and phrases of a query, newest first."""
        phrases = parse_query(query).phrases
        for name in reversed(self.messages):
            texts = [part["text"] for part in self.messages[name]["parts"] if part["type"] == "text"]
            tokens = analyse("\n".join(texts))
            if phrases and all(_has(tokens, phrase) for phrase in phrases):
                yield name


def _has(tokens: list[str], phrase: tuple[str, ...]) -> bool:
    length = len(phrase)
    return any(tuple(tokens[at : at + length]) == phrase for at in range(len(tokens) - length + 1))
