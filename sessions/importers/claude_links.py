"""The links between the records of Claude Code files, repaired, and the conversation that each record belongs to."""

from __future__ import annotations

from array import array
from typing import Final

from sessions.importers.claude_lines import Kind
from sessions.importers.claude_records import Rows
from sessions.importers.ids import Runs
from sessions.importers.links import NONE, cut_cycles, root_of

MAIN: Final = "main"
AGENT: Final = "agent"
POOL: Final = "pool"


class Thread:
    """A conversation: the file whose main one it is, or the agent's; of a sidechain without an agent neither."""

    def __init__(self, first_row: int, file: int, agent: int) -> None:
        self.first_row = first_row
        self.file = file
        self.agent = agent
        self.repaired = 0
        self.is_main = False


class Links:
    """For each row its parent's row and its conversation.

    A parent that is not there, the row itself and, for a record of the main conversation, one of a sidechain are
    replaced by the message record before it in its file and conversation; so is the missing one of a compact boundary.
    A link that is filled in never closes a cycle.
    """

    def __init__(self, rows: Rows) -> None:
        self.threads: list[Thread] = []
        self.thread = Runs()
        self.parent = array("i", [NONE]) * len(rows)
        self._rows = rows
        self._group = array("i", [NONE]) * len(rows)
        self._before = array("i", [NONE]) * len(rows)
        self._find_groups()
        missing, repaired = self._state()
        repaired += cut_cycles(self.parent)
        ups = self._fill(missing)
        self._find_threads(ups)
        del self._group, self._before, ups
        for row in repaired:
            self.threads[self.thread[row]].repaired += 1
        self.repaired = frozenset(repaired)
        # What the links were as they were stated is not needed any more, and there may be very many.
        rows.parent = array("i")

    def _find_groups(self) -> None:
        """The conversation of each row as far as it says itself, and the message record before it in its file."""
        rows = self._rows
        groups: dict[tuple[str, int], int] = {}
        latest: dict[tuple[int, int], int] = {}
        for row in range(len(rows)):
            kind, file, agent = rows.kind[row], rows.file[row], rows.agent[row]
            if kind & Kind.DROPPED:
                continue
            key = (MAIN, file) if not kind & Kind.SIDE else (AGENT, agent) if agent != NONE else (POOL, file)
            group = self._group[row] = groups.setdefault(key, len(groups))
            self._before[row] = latest.get((file, group), NONE)
            if kind & Kind.MESSAGE:
                latest[file, group] = row

    def _state(self) -> tuple[list[int], list[int]]:
        """Follow the links as they are stated; returns the rows that want another one, and those that are repaired."""
        rows = self._rows
        missing: list[int] = []
        repaired: list[int] = []
        for row in range(len(rows)):
            kind, stated = rows.kind[row], rows.parent[row]
            if kind & Kind.DROPPED:
                continue
            if stated == NONE:
                if kind & Kind.BOUNDARY:
                    missing.append(row)
                continue
            parent = rows.row_of[stated]
            if parent in (NONE, row) or (not kind & Kind.SIDE and rows.kind[parent] & Kind.SIDE):
                missing.append(row)
                repaired.append(row)
            elif self._group[parent] == self._group[row]:
                self.parent[row] = parent
        return missing, repaired

    def _fill(self, missing: list[int]) -> array[int]:
        """Hang each of these rows on the message record before it that does not hang on the row itself."""
        ups = array("i", self.parent)
        for row in missing:
            before = self._before[row]
            while before != NONE and root_of(ups, before) == row:
                before = self._before[before]
            self.parent[row] = ups[row] = before
        return ups

    def _find_threads(self, ups: array[int]) -> None:
        rows = self._rows
        found: dict[int | tuple[int], int] = {}
        for row in range(len(rows)):
            kind = rows.kind[row]
            if kind & Kind.DROPPED:
                self.thread.append(row, NONE)
                continue
            is_pooled = kind & Kind.SIDE and rows.agent[row] == NONE
            # In a tuple, so that a root is not taken for a group.
            key: int | tuple[int] = (root_of(ups, row),) if is_pooled else self._group[row]
            number = found.setdefault(key, len(self.threads))
            if number == len(self.threads):
                thread = Thread(row, rows.file[row], rows.agent[row])
                thread.is_main = not kind & Kind.SIDE
                self.threads.append(thread)
            self.thread.append(row, number)
