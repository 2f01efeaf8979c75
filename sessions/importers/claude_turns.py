"""Which records of Claude Code files make one message, which results answer which calls, and what hangs on what.

A turn is a stored message, named by its first row.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sessions.importers.claude_lines import Kind
from sessions.importers.claude_links import Links
from sessions.importers.claude_records import CALL, RESULT, Rows
from sessions.importers.ids import Ids
from sessions.importers.links import NONE, cut_cycles, in_log_order

_UNSEEN: Final = -2


class Lists:
    """Lists of numbers by row, short ones mostly, in three arrays."""

    def __init__(self, rows: int) -> None:
        self._first = array("i", [NONE]) * rows
        self._next = array("i")
        self._value = array("i")

    def push(self, row: int, value: int) -> None:
        """Put a number at the beginning of a row's list, unless it is there already."""
        first = self._first[row]
        if first == NONE or self._value[first] != value:
            self._first[row] = len(self._value)
            self._next.append(first)
            self._value.append(value)

    def of(self, row: int) -> Iterator[int]:
        """A row's list."""
        at = self._first[row]
        while at != NONE:
            yield self._value[at]
            at = self._next[at]


class Firsts:
    """The first of those that share a number within a scope; most numbers are met in one scope only."""

    def __init__(self, numbers: int) -> None:
        self._scope = array("i", [NONE]) * numbers
        self._first = array("i", [NONE]) * numbers
        self._elsewhere: dict[tuple[int, int], int] = {}

    def enter(self, number: int, scope: int, value: int) -> int:
        """The first value with a number in a scope, which is this one if there was none."""
        if self._first[number] == NONE:
            self._scope[number], self._first[number] = scope, value
        if self._scope[number] == scope:
            return self._first[number]
        return self._elsewhere.setdefault((number, scope), value)

    def find(self, number: int, scope: int) -> int:
        """The first value with a number in a scope, or NONE."""
        if self._scope[number] == scope:
            return self._first[number]
        return self._elsewhere.get((number, scope), NONE)


class Turns:
    """The turn of each row that is a message or folds into one, and the parent of each turn.

    `answers` has for each result the call that it answers; `dropped` are the calls whose id was used before.
    """

    def __init__(self, rows: Rows, links: Links) -> None:
        self._rows = rows
        self._links = links
        size = len(rows)
        self.answers = array("i", [NONE]) * len(rows.block_kind)
        self.dropped: set[int] = set()
        self._pair()
        self.turn = array("i", [NONE]) * size
        self._merge()
        self._fold()
        self._contract()
        self.parent = array("i", [NONE]) * size
        self._hang()
        for row in cut_cycles(self.parent):
            links.threads[links.thread[row]].repaired += 1
        self._following = array("i", [NONE]) * size
        self.results = Lists(size)
        self.summaries: dict[int, list[int]] = {}
        self._collect()
        # From here on turns hang together, and there may be very many records.
        links.parent = array("i")

    def records(self, turn: int) -> Iterator[int]:
        """The rows that make a turn, in file order."""
        row = turn
        while row != NONE:
            yield row
            row = self._following[row]

    def is_turn(self, row: int) -> bool:
        """Whether a row is the first of a turn."""
        return self.turn[row] == row

    def place(self, row: int) -> int:
        """The turn that stands for a row: its own, or the nearest above it."""
        return self.turn[self._at[row]] if self._at[row] != NONE else NONE

    def forget_places(self) -> None:
        """No place is asked for any more."""
        self._at = array("i")

    def _pair(self) -> None:
        rows, thread = self._rows, self._links.thread
        calls = self._calls()
        waiting: dict[int, deque[int]] = {}
        for row in range(len(rows)):
            kind = rows.kind[row]
            if kind & Kind.DROPPED:
                continue
            nameless = waiting.setdefault(thread[row], deque())
            for block in rows.blocks_of(row):
                tool = rows.block_tool[block]
                if tool != NONE:
                    if rows.block_kind[block] == RESULT:
                        self.answers[block] = calls.find(tool, thread[row])
                elif rows.block_kind[block] == CALL:
                    nameless.append(block)
                elif nameless:
                    self.answers[block] = nameless.popleft()
            if kind & Kind.USER and not kind & (Kind.RESULTS | Kind.SUMMARY):
                nameless.clear()
        # They have served, and there may be very many.
        rows.block_tool, rows.tools = array("i"), Ids()

    def _calls(self) -> Firsts:
        rows, thread = self._rows, self._links.thread
        calls = Firsts(len(rows.tools))
        for block, kind in enumerate(rows.block_kind):
            row, tool = rows.block_row[block], rows.block_tool[block]
            is_named = kind == CALL and tool != NONE and not rows.kind[row] & Kind.DROPPED
            if is_named and calls.enter(tool, thread[row], block) != block:
                self.dropped.add(block)
        return calls

    def _merge(self) -> None:
        rows, thread = self._rows, self._links.thread
        responses = Firsts(len(rows.responses))
        threads = len(self._links.threads)
        for row in range(len(rows)):
            kind, response = rows.kind[row], rows.response[row]
            if not kind & Kind.ASSISTANT or kind & (Kind.DROPPED | Kind.SUMMARY):
                continue
            scope = rows.file[row] * threads + thread[row]
            self.turn[row] = row if response == NONE else responses.enter(response, scope, row)
        # They have served, and there may be very many.
        rows.response, rows.responses = array("i"), Ids()

    def _fold(self) -> None:
        rows = self._rows
        for row in range(len(rows)):
            kind = rows.kind[row]
            if not kind & Kind.USER or kind & (Kind.DROPPED | Kind.SUMMARY):
                continue
            self.turn[row] = row
            blocks = rows.blocks_of(row)
            if kind & Kind.RESULTS and blocks and all(self.answers[block] != NONE for block in blocks):
                self.turn[row] = self.turn[rows.block_row[self.answers[blocks[0]]]]

    def _contract(self) -> None:
        """For each row the nearest at or above it that is a message or folds into one."""
        parent = self._links.parent
        self._at = at = array("i", (row if turn != NONE else _UNSEEN for row, turn in enumerate(self.turn)))
        passed: list[int] = []
        for start in range(len(parent)):
            row = start
            while row != NONE and at[row] == _UNSEEN:
                passed.append(row)
                row = parent[row]
            for below in passed:
                at[below] = NONE if row == NONE else at[row]
            passed.clear()

    def _hang(self) -> None:
        parent = self._links.parent
        for turn in range(len(parent)):
            if self.turn[turn] != turn:
                continue
            above = parent[turn]
            while above != NONE and (self._at[above] == NONE or self.place(above) == turn):
                above = NONE if self._at[above] == NONE else parent[self._at[above]]
            self.parent[turn] = self.place(above) if above != NONE else NONE

    def _collect(self) -> None:
        """The records and the rows of results of each turn, and the summaries that hang on it, in file order."""
        rows = self._rows
        latest = array("i", [NONE]) * len(rows)
        for row in reversed(range(len(rows))):
            kind = rows.kind[row]
            if kind & Kind.DROPPED:
                continue
            if kind & Kind.SUMMARY:
                place = self.place(row)
                if place != NONE:
                    self.summaries.setdefault(place, []).insert(0, row)
                continue
            turn = self.turn[row]
            if turn != NONE and kind & Kind.ASSISTANT:
                self._following[row], latest[turn] = latest[turn], row
            for block in reversed(rows.blocks_of(row)):
                if self.answers[block] != NONE:
                    self.results.push(self.turn[rows.block_row[self.answers[block]]], row)


class Forks:
    """Forks that are none are straightened: a session writes parallel calls and commands as children of one record.

    One is real when the children come from different sessions, when a person typed two of them, or when one says that
    it takes the place of another answer.
    """

    def __init__(self, rows: Rows, turns: Turns) -> None:
        self._rows = rows
        self._parent = turns.parent
        self._last = array("i", range(len(rows)))
        order = array("i", in_log_order(turns.parent, filter(turns.is_turn, range(len(rows)))))
        self._children: dict[int, list[int]] = {}
        only = array("i", [NONE]) * len(rows)
        for row in reversed(order):
            parent = self._parent[row]
            if parent != NONE:
                self._last[parent] = max(self._last[parent], self._last[row])
        for row in order:
            parent = self._parent[row]
            if parent != NONE:
                if only[parent] == NONE:
                    only[parent] = row
                else:
                    self._children.setdefault(parent, [only[parent]]).append(row)
        self._only = only
        for parent in sorted(self._children, reverse=True):
            self._straighten(parent)

    def _straighten(self, start: int) -> None:
        """Hang every child but the first on the message that is last in the file of those below the child before it."""
        waiting = [start]
        while waiting:
            parent = waiting.pop()
            children = sorted(self._children[parent])
            if self._is_real(children):
                continue
            self._children[parent] = children[:1]
            for before, child in pairwise(children):
                target = self._last[before]
                self._parent[child] = target
                if self._only[target] == NONE:
                    self._only[target] = child
                else:
                    self._children.setdefault(target, [self._only[target]]).append(child)
                    waiting.append(target)

    def _is_real(self, children: list[int]) -> bool:
        rows = self._rows
        if len({rows.session[child] for child in children}) > 1:
            return True
        kinds = [rows.kind[child] for child in children]
        return sum(kind & Kind.TYPED > 0 for kind in kinds) > 1 or any(kind & Kind.AGAIN for kind in kinds)
