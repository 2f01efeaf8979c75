"""What sessions are meant to do once messages change and go, as plainly as it can be said: dicts, without a log."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from projections.analysis import analyse, parse_query
from sessions.appending import Auto, Parent
from tests.properties.forest import RefusedError

Content = dict[str, Any]


@dataclasses.dataclass
class Summary:
    """A compaction: what it says, and the messages that it was made of, in the order of their path."""

    text: str
    covered: list[str]
    id: str = ""
    stale: bool = False

    @property
    def message_id(self) -> str:
        """The id under which it is shown in a history."""
        return f"compaction_{self.id}"


class Conversation:
    """One session.

    A message keeps the parent under which it was appended for good, also when either is deleted: what is deleted is
    passed over whenever a path is walked, and that is all there is to splicing.
    """

    def __init__(self) -> None:
        self.version = 0
        self.tip: str | None = None
        self.parents: dict[str, str | None] = {}
        self.first: dict[str, Content] = {}
        self.contents: dict[str, Content] = {}
        self.summaries: list[Summary] = []

    # What changes a session. Whatever is refused leaves it as it was.

    def append(self, messages: list[Content], parent: Parent) -> list[bool]:
        """Append a chain, all or nothing, and return which messages were new."""
        added: dict[str, Content] = {}
        parents: dict[str, str | None] = {}
        new: list[bool] = []
        for message in messages:
            name = message["id"]
            if name in self.parents and name not in self.contents:
                raise RefusedError("MessageDeletedError")
            if name in self.contents:
                same_place = isinstance(parent, Auto) or self._meant(parent) == self.parents[name]
                if not same_place or message not in (self.first[name], self.contents[name]):
                    raise RefusedError("DuplicateMessageError")
            elif name in added:
                raise RefusedError("DuplicateMessageError")
            else:
                under = self.tip if isinstance(parent, Auto) else self._meant(parent)
                if under is not None and under not in self.contents and under not in added:
                    raise RefusedError("ParentNotFoundError")
                added[name], parents[name] = message, under
            new.append(name in added)
            parent = name
        self.parents |= parents
        self.first |= added
        self.contents |= added
        self.version += len(added)
        if added:
            self.tip = list(added)[-1]
        return new

    def update(self, message: Content) -> bool:
        """Change a message in its place and return whether it is there to be changed."""
        name = message["id"]
        if name not in self.contents:
            return False
        if message != self.contents[name]:
            self.contents[name] = message
            self.version += 1
            for summary in self.summaries:
                summary.stale |= name in summary.covered
        return True

    def upsert(self, message: Content, parent: Parent) -> bool:
        """Update a message that is there, else append it; return whether it was appended."""
        if message["id"] in self.contents:
            self.update(message)
            return False
        return self.append([message], parent)[0]

    def delete(self, names: Iterable[str]) -> int:
        """Delete messages and return how many of them there were."""
        gone = {name for name in names if name in self.contents}
        path = self.path(self.tip)
        for name in gone:
            del self.contents[name]
        self.version += bool(gone)
        if self.tip in gone:
            left = [name for name in path if name in self.contents]
            below = [name for name in self.leaves() if not left or left[-1] in self.path(name)]
            self.tip = below[-1] if below else None
        return len(gone)

    def clear(self) -> None:
        """Forget everything, the ids of deleted messages too."""
        self.version += bool(self.parents)
        self.tip = None
        for held in (self.parents, self.first, self.contents, self.summaries):
            held.clear()

    def select(self, name: str) -> None:
        """Make a message the tip."""
        if name not in self.contents:
            raise RefusedError("MessageNotFoundError")
        self.version += self.tip != name
        self.tip = name

    def compact(self, text: str, first: str, last: str) -> Summary:
        """Put a summary over a stretch of a path; it has yet to get its id."""
        path = self.path(last) if last in self.contents else []
        if not text.strip() or first not in path:
            raise RefusedError("InvalidCompactionError")
        summary = Summary(text, path[path.index(first) :])
        self.summaries.append(summary)
        self.version += 1
        return summary

    # What can be read of it.

    def path(self, leaf: str | None) -> list[str]:
        """Return the ids from the root to a message."""
        names: list[str] = []
        while leaf is not None:
            if leaf in self.contents:
                names.append(leaf)
            leaf = self.parents[leaf]
        return names[::-1]

    def parent(self, name: str) -> str | None:
        """Return the id of the message above another."""
        return ([None, *self.path(name)])[-2]

    def children(self, name: str) -> list[str]:
        """Return the ids of a message's children in log order."""
        return [child for child in self.contents if self.parent(child) == name]

    def leaves(self) -> list[str]:
        """Return the ids of the messages without children in log order."""
        inner = {self.parent(name) for name in self.contents}
        return [name for name in self.contents if name not in inner]

    def left_of(self, summary: Summary) -> list[str]:
        """Return what is left of the messages that a summary was made of."""
        return [name for name in summary.covered if name in self.contents]

    def applied(self, path: list[str]) -> dict[str, Summary]:
        """Return which summary each message of a path is hidden behind; of those that overlap the newest counts."""
        hidden: dict[str, Summary] = {}
        for summary in reversed(self.summaries):
            left = self.left_of(summary)
            if left and set(left) <= set(path) and not set(left) & hidden.keys():
                hidden |= dict.fromkeys(left, summary)
        return hidden

    def view(self, path: list[str], rows: list[str] | None = None) -> list[str | Summary]:
        """Return some rows of a path (None: all) as they are shown: messages, and summaries in place of others."""
        hidden = self.applied(path)
        shown: list[str | Summary] = []
        for name in path if rows is None else rows:
            item = hidden.get(name, name)
            if not shown or shown[-1] is not item:
                shown.append(item)
        return shown

    def size(self, name: str) -> int:
        """Return the bytes of a message's JSON."""
        return len(msgspec.json.encode(self.contents[name]))

    def window(self, path: list[str], most: int, least_count: int) -> list[str]:
        """Return the last rows of a path that fit into so many bytes, and at least so many of them."""
        rows: list[str] = []
        for name in reversed(path):
            most -= self.size(name)
            if most < 0 and len(rows) >= least_count:
                break
            rows.append(name)
        return rows[::-1]

    def holding(self, query: str) -> Iterator[str]:
        """Yield the ids of the messages that hold all words and phrases of a query, newest first."""
        phrases = parse_query(query).phrases
        for name in reversed(self.contents):
            texts = [part["text"] for part in self.contents[name]["parts"] if part["type"] == "text"]
            tokens = analyse("\n".join(texts))
            if phrases and all(_has(tokens, phrase) for phrase in phrases):
                yield name

    def _meant(self, parent: str | None) -> str | None:
        """Return the message that is meant by a parent's id, which may be a summary's."""
        for summary in self.summaries:
            if parent == summary.message_id and self.left_of(summary):
                return self.left_of(summary)[-1]
        return parent


def _has(tokens: list[str], phrase: tuple[str, ...]) -> bool:
    length = len(phrase)
    return any(tuple(tokens[at : at + length]) == phrase for at in range(len(tokens) - length + 1))
