"""What a text, a query and a hit mean to search: the one analysis both engines are filled and asked with.

A word is a run of letters, numbers, marks and private-use characters; everything else parts words. Words are
folded (compatibility forms, case, accents) and stemmed with Snowball's English; every Chinese, Japanese or Korean
character is a token of its own, also when it is glued to other words. The characters are those of Unicode 14,
whatever the Python that runs this knows; with the stemmer's pinned version that makes the tokens the same
everywhere. They stand in stored indexes: whatever changes them raises `REVISION`, and that is a rebuild.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import Stemmer

from projections.unicode_ranges import CJK, LETTERS, MARKS, UNASSIGNED

REVISION: Final = 1
"""Raised whenever some text gives other tokens than before."""

TOKEN_CHARACTERS: Final = 128
"""The folded characters of a word that count; what follows them is cut off before stemming."""

_REMEMBERED = 32_768
_LONGEST_RUN_REMEMBERED = 16

# What is left out of words: accents of Latin, Greek and Cyrillic, points of Hebrew, marks of Arabic, and the
# characters inside a word that nobody sees (soft hyphen, joiner and non-joiner, variation selectors).
_LEFT_OUT = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff"
    "\u00ad\u200c\u200d\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# Korean letters typed one by one. Their compatibility forms would melt into the syllables beside them.
_SINGLE_JAMO = re.compile("[\u3131-\u318e\uffa0-\uffdc]")

_NON_ASCII = re.compile("[^\x00-\x7f]+(?: [^\x00-\x7f]+)*")
_PERHAPS_CJK = re.compile("[\u1100-\U0010ffff]")
_FOLDED_WORD = re.compile(f"[{CJK.regex}]|[^ {CJK.regex}]+")

# A character with what belongs to it: marks, the vowels and finals of a Korean syllable, half-width sound marks.
_ATTACHED = f"{MARKS.regex}\u3099\u309a\u1160-\u11ff\ud7b0-\ud7fb\uff9e\uff9f\u00ad\u200c\u200d"
_CLUSTER = re.compile(f"(?s:.)[{_ATTACHED}]*")
_CHUNK = re.compile("[0-9A-Za-z\x80-\U0010ffff]+")
# People mean a quote by these too: telephones type the curly ones, Germans the low one, Asian keyboards the wide one.
_QUOTE = re.compile("[\"\u201c\u201d\u201e\uff02]")

# ASCII is folded as bytes, which leaves the bytes of all other characters as they are.
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 0x20 for code in range(0x80)) + bytes(range(0x80, 0x100))


class Query(msgspec.Struct, frozen=True):
    """What a person asked for: all of `phrases`, in any order, each a run of consecutive tokens of one text.

    A single word is a phrase of one token. No phrase is there twice; without any, nothing is found.
    """

    phrases: tuple[tuple[str, ...], ...]


class _Folds(dict[int, str]):
    """What each character becomes in a folded text, by code point; a space where it parts words."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in UNASSIGNED:
            folded = " "
        elif _SINGLE_JAMO.match(character):
            folded = character
        else:
            folded = _LEFT_OUT.sub("", unicodedata.normalize("NFKD", character)).casefold()
            folded = "".join(c if c in LETTERS or c in MARKS or c in CJK else " " for c in folded)
            folded = unicodedata.normalize("NFC", folded)
        self[code] = folded
        return folded


class _Remembered(dict[str, str]):
    """What a function makes of a text, kept for short texts, since most of them come again."""

    def __init__(self, make: Callable[[str], str], *, longest: int) -> None:
        self._make = make
        self._longest = longest

    def __missing__(self, text: str) -> str:
        made = self._make(text)
        if len(text) <= self._longest:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[text] = made
        return made


class _ThreadStemmer(threading.local):
    """A stemmer for each thread, since none may be shared."""

    def __init__(self) -> None:
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord


def _fold_run(run: str) -> str:
    return unicodedata.normalize("NFC", run.translate(_FOLDS))


def _stem(word: str) -> str:
    return _STEMMER.stem(word[:TOKEN_CHARACTERS])


_FOLDS = _Folds()
_STEMMER = _ThreadStemmer()
_RUNS = _Remembered(_fold_run, longest=_LONGEST_RUN_REMEMBERED)
_STEMS = _Remembered(_stem, longest=TOKEN_CHARACTERS)


def analyse(text: str) -> list[str]:
    """Give the tokens of a text, in their order, as an index stores them; any text will do."""
    folded = _fold(text)
    words = _FOLDED_WORD.findall(folded) if _PERHAPS_CJK.search(folded) else folded.split()
    return list(map(_STEMS.__getitem__, words))


def parse_query(text: str) -> Query:
    """Read what a person typed; nothing is an error.

    Words are meant all, in any order. What stands between two quotes, straight or curly, is a phrase; a quote
    without a second one is ordinary text, as are all operators. A word with punctuation inside is its words.
    Chinese, Japanese and Korean characters that touch are a phrase, so that they are found as a substring.
    """
    pieces = _QUOTE.split(text)
    phrases: list[tuple[str, ...]] = []
    for number, piece in enumerate(pieces):
        if number % 2 and number < len(pieces) - 1:
            phrases.append(tuple(analyse(piece)))
        else:
            phrases += _unquoted(piece)
    return Query(tuple(dict.fromkeys(filter(None, phrases))))


def locate(text: str) -> list[tuple[str, int, int]]:
    """Give the tokens of a text as `analyse` does, each with the start and the end of where it stands in the text.

    Characters are never cut apart: tokens that come from one character of the text all have its place.
    """
    words: list[tuple[str, int, int]] = []
    for chunk in _CHUNK.finditer(text):
        if chunk[0].isascii():
            words.append((chunk[0].lower(), chunk.start(), min(chunk.end(), chunk.start() + TOKEN_CHARACTERS)))
        else:
            words += _locate_folded(text, *chunk.span())
    return [(_STEMS[word], start, end) for word, start, end in words]


def _fold(text: str) -> str:
    """Give a text as folded words and spaces; CJK characters still touch what they touched."""
    folded = text.encode("utf-8", "replace").translate(_ASCII).decode()
    if folded.isascii():
        return folded
    # No mark that is kept composes with an ASCII letter, so that a run may be folded alone.
    return _NON_ASCII.sub(lambda run: _RUNS[run[0]], folded)


def _unquoted(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the phrases of ordinary text: its words, and its runs of touching CJK characters."""
    run: list[str] = []
    run_end = 0
    for token, start, end in locate(text):
        cjk = len(token) == 1 and token in CJK
        if run and not (cjk and start <= run_end):
            yield tuple(run)
            run.clear()
        if cjk:
            run.append(token)
            run_end = end
        else:
            yield (token,)
    yield tuple(run)


def _locate_folded(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the folded words of a part of a text, which folding may make longer or shorter, with their places."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    for cluster in _CLUSTER.finditer(text, start, end):
        piece = _RUNS[cluster[0]]
        pieces.append(piece)
        places += [cluster.span()] * len(piece)
    for word in _FOLDED_WORD.finditer("".join(pieces)):
        last = min(word.end(), word.start() + TOKEN_CHARACTERS) - 1
        yield word[0], places[word.start()][0], places[last][1]
