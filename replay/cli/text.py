"""Texts and times as a person reads them in one line of a terminal."""

from __future__ import annotations

import bisect
import datetime as dt
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

LONGEST_LINE: Final = 1_000
"""The characters of a text that are looked at for one line of it."""
WHOLE_ID: Final = 12
"""An id of at most so many characters is shown whole."""
SHORTEST_ID: Final = 8
SHORTEST_AFTER_FORMAT: Final = 4
AGES: Final = ((60, "s"), (60, "m"), (24, "h"), (7, "d"), (4.35, "w"), (12, "mo"))

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BREAKS: Final = re.compile("[\t\n]")
_TURNS: Final = re.compile("[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with control characters made visible, so that a stored text cannot steer a terminal."""
    return _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd", text)


def label(text: str) -> str:
    """An id, a name or the like: line breaks, tabs and what turns the direction of text are made visible too."""
    return _TURNS.sub("\ufffd", _BREAKS.sub(lambda found: chr(0x2400 + ord(found[0])), visible(text)))


def one_line(text: str) -> str:
    """The beginning of a text in one line, fit for a terminal."""
    return label(" ".join(text[:LONGEST_LINE].split()))


def first_words(message: Mapping[str, Any]) -> str:
    """The first words of a message, or the names of its parts where no text is."""
    for part in message["parts"]:
        if part["type"] == "text" and isinstance(part.get("text"), str) and (text := one_line(part["text"])):
            return text
    others = (part for part in message["parts"] if part["type"] not in {"text", "step-start"})
    names = [str(part.get("toolName") or part.get("filename") or part["type"]) for part in others]
    return one_line(" ".join(f"[{name}]" for name in names or ["empty"]))


def age(time: dt.datetime, now: dt.datetime) -> str:
    """How long ago a time was, in its largest unit."""
    count = max((now - time).total_seconds(), 0.0)
    if count < 1:
        return "now"
    for size, unit in AGES:
        if count < size:
            return f"{int(count)}{unit} ago"
        count /= size
    return f"{int(count)}y ago"


def clock(time: dt.datetime, now: dt.datetime) -> str:
    """A time in this machine's zone: of today the time of day, else the day too."""
    local = time.astimezone()
    same_day = local.date() == now.astimezone().date()
    return f"{local:%H:%M:%S}" if same_day else f"{local:%Y-%m-%d %H:%M}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def compact(number: int) -> str:
    """A number in few characters, rounded from ten thousand on."""
    for start, size, unit in ((10_000_000, 1_000_000, "M"), (10_000, 1_000, "k")):
        if number >= start:
            return f"{number / size:.0f}{unit}"
    return str(number)


def size(number: int) -> str:
    """A number of bytes in its largest unit."""
    count = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"


class ShortIds:
    """The shortest beginning of each id that no other id shares, but not so short that the next id will share it."""

    def __init__(self, ids: Collection[str]) -> None:
        self._sorted = sorted(ids)

    def __call__(self, id: str) -> str:
        """The short form of an id; the whole of one that is not long, or not among the ids."""
        at = bisect.bisect_left(self._sorted, id)
        if at == len(self._sorted) or self._sorted[at] != id:
            return label(id)
        neighbours = self._sorted[max(at - 1, 0) : at] + self._sorted[at + 1 : at + 2]
        shared = max((_shared_beginning(id, other) for other in neighbours), default=0)
        # The name of a format in front of the id tells nothing apart.
        length = max(shared + 1, SHORTEST_ID, id.find(":") + 1 + SHORTEST_AFTER_FORMAT)
        return label(id if len(id) <= WHOLE_ID else id[:length])


def _shared_beginning(one: str, other: str) -> int:
    differs = (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(differs, min(len(one), len(other)))
