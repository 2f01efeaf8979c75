"""Identifiers by the hundred thousand, numbered as they are first seen, in few bytes more than they have themselves."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

UNKNOWN: Final = -1
_FIRST_SLOTS: Final = 64
UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PACKED: Final = b"\0"
_PLAIN: Final = b"\1"


class Ids:
    """Texts and their numbers, which count up from 0.

    Texts stand end to end, UUIDs as the bytes that they are; a table of hashes finds the number of a text.
    """

    __slots__ = ("_ends", "_mask", "_slots", "_text")

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("I")
        self._slots = array("i", [UNKNOWN]) * _FIRST_SLOTS
        self._mask = _FIRST_SLOTS - 1

    def __len__(self) -> int:
        """How many there are."""
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        """The text with a number."""
        return _unpack(self._bytes(number))

    def __iter__(self) -> Iterator[str]:
        """The texts in the order of their numbers."""
        return (self[number] for number in range(len(self)))

    def find(self, text: str) -> int:
        """The number of a text, or UNKNOWN."""
        return self._slots[self._slot(_pack(text))]

    def add(self, text: str) -> int:
        """The number of a text, which is new if there was none."""
        data = _pack(text)
        slot = self._slot(data)
        number = self._slots[slot]
        if number != UNKNOWN:
            return number
        number = self._slots[slot] = len(self._ends)
        self._text += data
        self._ends.append(len(self._text))
        if 3 * number > 2 * self._mask:
            self._grow()
        return number

    def _bytes(self, number: int) -> bytes:
        return bytes(self._text[self._ends[number - 1] if number else 0 : self._ends[number]])

    def _slot(self, data: bytes) -> int:
        """The slot that holds a text, or the free one where it belongs."""
        slots, mask = self._slots, self._mask
        slot = hash(data) & mask
        while (number := slots[slot]) != UNKNOWN and self._bytes(number) != data:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        self._mask = 2 * len(self._slots) - 1
        self._slots = array("i", [UNKNOWN]) * (self._mask + 1)
        for number in range(len(self._ends)):
            slot = hash(self._bytes(number)) & self._mask
            while self._slots[slot] != UNKNOWN:
                slot = (slot + 1) & self._mask
            self._slots[slot] = number


class Runs:
    """A number for each row, kept where it changes only: for what is mostly the same as in the row before."""

    __slots__ = ("_starts", "_values")

    def __init__(self) -> None:
        self._starts = array("i")
        self._values = array("i")

    def append(self, row: int, value: int) -> None:
        """Set the number of a row; rows come one after the other."""
        if not self._values or self._values[-1] != value:
            self._starts.append(row)
            self._values.append(value)

    def __getitem__(self, row: int) -> int:
        """The number of a row."""
        return self._values[bisect_right(self._starts, row) - 1]


def _pack(text: str) -> bytes:
    if len(text) == 36 and UUID.fullmatch(text):
        return _PACKED + bytes.fromhex(text.replace("-", ""))
    return _PLAIN + text.encode()


def _unpack(data: bytes) -> str:
    if not data.startswith(_PACKED):
        return data[1:].decode()
    text = data[1:].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
