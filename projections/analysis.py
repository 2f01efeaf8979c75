"""What a text, a query and a hit are to search: the one analysis that the indexes of both engines are made with.

A word is a run of letters, numbers, marks and private-use characters; everything else parts words. Words are
folded (compatibility forms, case, accents) and stemmed with Snowball's English; every Chinese, Japanese or Korean
character is a token of its own, also when it is glued to other words. The characters are those of Unicode 14,
whatever the Python that runs this knows; with the pinned version of the stemmer that makes the tokens the same
everywhere. They stand in stored indexes: whatever changes them raises `REVISION`, and that is a rebuild.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import Stemmer

from projections.unicode_ranges import CJK, LETTERS, MARKS, UNASSIGNED

REVISION: Final = 1
"""Raised whenever some text gives other tokens than before."""

TOKEN_CHARACTERS: Final = 128
"""The folded characters of a word that count; what follows them is cut off before stemming."""

_REMEMBERED = 32_768
_LONGEST_RUN_REMEMBERED = 16

# A long text is searched for a snippet page by page; a find may reach from one page into the next.
_PAGE = 65_536
_PAGE_OVERLAP = 4_096
_LAST_PAGE = 16 * _PAGE
# A cut is moved by up to so many characters so that it parts no words.
_CUT_MOVES = 24

# What is left out of words: accents of Latin, Greek and Cyrillic, points of Hebrew, marks of Arabic, and what nobody
# sees inside a word (soft hyphen, joiner and non-joiner, variation selectors).
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
_WORD = re.compile("[^ ]+")
_WORD_OR_CJK = re.compile(f"[{CJK.plane_0}{CJK.beyond}]|[^ {CJK.plane_0}{CJK.beyond}]+")

# What belongs to the character before it: marks, vowels and finals of Korean syllables, half-width sound marks, and
# what nobody sees. Folding may join a character with these, and with nothing else.
_ATTACHED = f"{MARKS.plane_0}\u3099\u309a\u1160-\u11ff\ud7b0-\ud7fb\uff9e\uff9f\u00ad\u200c\u200d"
_BEYOND_PLANE_0 = "\U00010000-\U0010ffff"
_PERHAPS_ATTACHED = re.compile(f"[{_ATTACHED}{_BEYOND_PLANE_0}]")
_CLUSTER = f"(?s:.)(?:[{_ATTACHED}]+|(?=[{_BEYOND_PLANE_0}])[{MARKS.beyond}]+)*"
_ASCII_OR_CLUSTER = re.compile(f"[\x00-\x7f]+(?=[\x00-\x7f]|\\Z)|{_CLUSTER}")

_SPACE = re.compile(r"\s+")
_NO_CUT_BEFORE = re.compile(f"[{_ATTACHED}{MARKS.beyond}\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
# A joiner, and the viramas that make one sign of two consonants.
_NO_CUT_AFTER = re.compile("[\u200d\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d]")
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]")

# People mean a quote by these too: telephones type the curly ones, Germans the low one, Asian keyboards the wide one.
_QUOTE = re.compile('["\u201c\u201d\u201e\uff02]')

# ASCII is folded as bytes, which leaves the bytes of all other characters as they are.
_ASCII = bytes(code if code > 0x7F else ord(chr(code).lower() if chr(code).isalnum() else " ") for code in range(0x100))


class Query(msgspec.Struct, frozen=True):
    """What a person asked for: all of `phrases`, in any order, each a run of consecutive tokens of one text.

    A single word is a phrase of one token. No phrase is there twice; without any, nothing is found.
    """

    phrases: tuple[tuple[str, ...], ...]


class _Find(NamedTuple):
    """A phrase found in a text, from `start` to before `end`."""

    start: int
    end: int
    phrase: tuple[str, ...]


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
            folded = " " if folded.isspace() else unicodedata.normalize("NFC", folded)
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
    words = _WORD_OR_CJK.findall(folded) if _holds_cjk(folded) else folded.split()
    return list(map(_STEMS.__getitem__, words))


def with_tokens(rows: Iterable[tuple[int, str | None, int]]) -> list[tuple[int, list[str], int]]:
    """Give rows of (number, text, scope) as a text index takes them, without those that have no tokens."""
    return [(row, tokens, scope) for row, text, scope in rows if text and (tokens := analyse(text))]


def locate(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Give the tokens of a text as `analyse` does, and beside them the start and end of where each stands in it.

    A place holds whole characters with their marks; tokens that come from one character have the same place.
    """
    folded = _fold(text)
    places: list[tuple[int, int]] = []
    if not text.isascii() and (len(folded) != len(text) or _PERHAPS_ATTACHED.search(text)):
        folded, places = _fold_by_clusters(text)
    words = list((_WORD_OR_CJK if _holds_cjk(folded) else _WORD).finditer(folded))
    spans = [word.span() for word in words]
    if places:
        spans = [(places[start][0], places[end - 1][1]) for start, end in spans]
    return [_STEMS[word[0]] for word in words], spans


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


def snippet(text: str, query: Query, *, width: int = 160, highlight: tuple[str, str] = ("", "")) -> str:
    """Cut at most `width` characters out of a text, around the place where most of what was asked for stands.

    The characters are the text's own, with "…" where something was left out and what was found between the two
    strings of `highlight`; neither counts into `width`. No character is cut apart from its marks. A text of many
    pages is read until something is found, and no further than 1 Mi characters; without a find it is its beginning.
    """
    if len(text) <= width and not any(highlight):
        return text
    finds = _first_finds(text, query.phrases)
    start, end = _window(text, finds, width)
    shown = ["…"] if start > 0 else []
    done = start
    for find in finds:
        opened = max(find.start, done)
        closed = min(find.end, end)
        if opened < closed:
            shown += (text[done:opened], highlight[0], text[opened:closed], highlight[1])
            done = closed
    shown.append(text[done:end])
    if end < len(text):
        shown.append("…")
    return "".join(shown)


def _fold(text: str) -> str:
    """Give a text as folded words and spaces; CJK characters still touch what they touched."""
    folded = text.encode("utf-8", "replace").translate(_ASCII).decode()
    if folded.isascii():
        return folded
    # No mark that is kept composes with an ASCII letter, so that a run may be folded alone.
    return _NON_ASCII.sub(lambda run: _RUNS[run[0]], folded)


def _fold_by_clusters(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Fold a text as `_fold` does, and give for each folded character the place of what it comes from."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    for cluster in _ASCII_OR_CLUSTER.finditer(text):
        start, end = cluster.span()
        if cluster[0].isascii():
            pieces.append(_fold(cluster[0]))
            places += zip(range(start, end), range(start + 1, end + 1), strict=True)
        else:
            pieces.append(_RUNS[cluster[0]])
            places += [(start, end)] * len(pieces[-1])
    return "".join(pieces), places


def _holds_cjk(folded: str) -> bool:
    """Tell whether there may be CJK characters in a folded text."""
    return not folded.isascii() and _PERHAPS_CJK.search(folded) is not None


def _unquoted(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the phrases of ordinary text: its words, and its runs of touching CJK characters."""
    run: list[str] = []
    run_end = 0
    for token, (start, end) in zip(*locate(text), strict=True):
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


def _first_finds(text: str, phrases: Sequence[tuple[str, ...]]) -> list[_Find]:
    """Give what is found of the phrases on the first page that has anything, in order of its start."""
    by_token: dict[str, list[tuple[str, ...]]] = {}
    for phrase in phrases:
        by_token.setdefault(phrase[0], []).append(phrase)
    for page in range(0, min(len(text), _LAST_PAGE), _PAGE):
        page_end = page + _PAGE + _PAGE_OVERLAP
        tokens, spans = locate(text[page:page_end])
        # What touches the edge of a page may be half a word there, and is whole on the page before or after.
        low = page if page > 0 else -1
        high = page_end if page_end < len(text) else len(text) + 1
        finds = [
            find
            for index, token in enumerate(tokens)
            for phrase in by_token.get(token, ())
            if tuple(tokens[index : index + len(phrase)]) == phrase
            and low < (find := _Find(page + spans[index][0], page + spans[index + len(phrase) - 1][1], phrase)).start
            and find.end < high
        ]
        if finds:
            return finds
    return []


def _window(text: str, finds: Sequence[_Find], width: int) -> tuple[int, int]:
    """Give start and end of the part to show: the densest finds, and as much around them as there is room for."""
    if len(text) <= width:
        return 0, len(text)
    first, last = _densest(finds, width)
    start = max(0, min(first - (width - (last - first)) // 2, len(text) - width))
    end = start + width
    if start > 0 and (space := _SPACE.search(text, start - 1, min(start + _CUT_MOVES, first))):
        start = space.end()
    if end < len(text):
        spaces = [space.start() for space in _SPACE.finditer(text, max(end - _CUT_MOVES, last), end + 1)]
        end = spaces[-1] if spaces else end
    while 0 < start < end and _inseparable(text, start):
        start += 1
    while start < end < len(text) and _inseparable(text, end):
        end -= 1
    return start, end


def _densest(finds: Sequence[_Find], width: int) -> tuple[int, int]:
    """Give start and end of the first finds within `width` characters that are of most different phrases."""
    place = (finds[0].start, finds[0].start + width) if finds else (0, 0)
    most = stop = 0
    inside: Counter[tuple[str, ...]] = Counter()
    for index, find in enumerate(finds):
        stop = max(stop, index)
        while stop < len(finds) and finds[stop].end <= find.start + width:
            inside[finds[stop].phrase] += 1
            stop += 1
        if len(inside) > most:
            most = len(inside)
            place = find.start, max(other.end for other in finds[index:stop])
        if stop > index:
            inside[find.phrase] -= 1
            if not inside[find.phrase]:
                del inside[find.phrase]
    return place


def _inseparable(text: str, index: int) -> bool:
    """Tell whether a cut before `index` would part what is seen as one character."""
    if _NO_CUT_BEFORE.match(text, index) or _NO_CUT_AFTER.match(text, index - 1) or text.startswith("\r\n", index - 1):
        return True
    flag_letters = 0
    while flag_letters <= index and _FLAG_LETTER.match(text, index - flag_letters):
        flag_letters += 1
    return flag_letters % 2 == 0 and flag_letters > 0
