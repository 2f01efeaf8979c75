"""Lengths and cuts of text: counted in UTF-16 code units as JavaScript counts, but never cut inside a character."""

from __future__ import annotations

import unicodedata
from typing import Final

_LONGEST_CHARACTER: Final = 64
"""The code points that are looked back for where a character begins: only noise stacks more marks on a letter."""

_JOINER = "\u200d"
_FLAG_LETTERS = ("\U0001f1e6", "\U0001f1ff")
# What has no category of its own for going with the character before it: joiners, skin tones, tags of flags.
_FOLLOWERS = (("\u200c", _JOINER), ("\U0001f3fb", "\U0001f3ff"), ("\U000e0020", "\U000e007f"))
_HANGUL_FIRSTS = (("\u1100", "\u115f"), ("\ua960", "\ua97c"))
_HANGUL_SYLLABLES = (("\uac00", "\ud7a3"),)
_HANGUL_LATERS = (("\u1160", "\u11ff"), ("\ud7b0", "\ud7fb"))


def utf16_length(text: str) -> int:
    """The UTF-16 code units of a text: two for an emoji, one for most other characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_text(text: str, units: int) -> str:
    """The longest start of a text that has at most so many UTF-16 code units and ends between two characters.

    A character is what a reader takes for one: a letter with its accents, a flag, a family of emoji.
    """
    end = min(len(text), units)
    while (excess := utf16_length(text[:end]) - units) > 0:
        end -= (excess + 1) // 2
    if end == len(text) or text.isascii():
        return text[:end]
    least = max(end - _LONGEST_CHARACTER, 0)
    for at in range(end, least, -1):
        if not _is_inside(text, at):
            return text[:at]
    return text[: end if least else 0]


def _is_inside(text: str, at: int) -> bool:
    """Whether a place in a text is inside a character: the common cases of Unicode's rules, by its categories."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after).startswith("M") or _is_in(after, _FOLLOWERS):
        return True
    if before == _JOINER or (before, after) == ("\r", "\n"):
        return True
    if _is_in(before, (_FLAG_LETTERS,)) and _is_in(after, (_FLAG_LETTERS,)):
        return _flag_letters_before(text, at) % 2 == 1
    if _is_in(after, _HANGUL_LATERS):
        return _is_in(before, _HANGUL_FIRSTS + _HANGUL_SYLLABLES + _HANGUL_LATERS)
    return _is_in(after, _HANGUL_FIRSTS + _HANGUL_SYLLABLES) and _is_in(before, _HANGUL_FIRSTS)


def _is_in(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(first <= character <= last for first, last in ranges)


def _flag_letters_before(text: str, at: int) -> int:
    start = at
    while start and _is_in(text[start - 1], (_FLAG_LETTERS,)):
        start -= 1
    return at - start
