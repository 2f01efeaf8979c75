from __future__ import annotations

import hashlib
import re
import string
import sys
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import Stemmer
from hypothesis import example, given
from hypothesis import strategies as st

from projections import analysis
from projections.analysis import TOKEN_CHARACTERS, Query, analyse, locate, parse_query, snippet
from projections.unicode_ranges import CJK, LETTERS, MARKS, UNASSIGNED, CharacterSet

# The script that the tables of `projections/unicode_ranges.py` were made with.
CJK_BLOCKS = CharacterSet(
    "1100-11FF 2E80-2FD5 3005-3007 3021-3029 3031-3035 3038-303C 3040-30FA 30FC-318F 31A0-31BF 31F0-31FF 3400-4DBF "
    "4E00-9FFF A960-A97F AC00-D7FF F900-FAFF FF66-FFDC 16FE3 1AFF0-1B16F 1F200 20000-3134F"
)


def is_cjk(character: str, category: str) -> bool:
    return character in CJK_BLOCKS and (category[0] in "LNM" or category == "So")


# The digest of the tokens of `test_tokens_are_pinned`, by the revision that gave them.
PINNED = {1: "d1c06ed8151e87c43dd3a4d9c1031d9be20d4bc1c9f23d7be1715a01d49acfb4"}

RULES: dict[str, tuple[CharacterSet, Callable[[str, str], bool]]] = {
    "cjk": (CJK, is_cjk),
    "letters": (LETTERS, lambda c, kind: (kind[0] in "LN" or kind == "Co") and not is_cjk(c, kind)),
    "marks": (MARKS, lambda c, kind: kind[0] == "M" and not is_cjk(c, kind)),
    "unassigned": (UNASSIGNED, lambda _, kind: kind == "Cn"),
}


def edges(rule: Callable[[str, str], bool]) -> tuple[int, ...]:
    """Give the code points at which a rule changes its answer."""
    answers = [False, *(rule(chr(code), unicodedata.category(chr(code))) for code in range(sys.maxunicode + 1)), False]
    return tuple(code for code in range(len(answers) - 1) if answers[code] != answers[code + 1])


def plainly(text: str) -> list[str]:
    """Analyse a text as the promise reads, step by step, over the whole text and without any short cut."""
    text = "".join(
        " " if character in UNASSIGNED or "\ud800" <= character <= "\udfff" else character for character in text
    )
    pieces = re.split("([\u3131-\u318e\uffa0-\uffdc])", text)
    for number in range(0, len(pieces), 2):
        folded = unicodedata.normalize("NFKD", pieces[number])
        folded = "".join(character for character in folded if not analysis._LEFT_OUT.match(character)).casefold()
        pieces[number] = unicodedata.normalize("NFC", folded)
    words = [""]
    for character in "".join(pieces):
        if character in CJK:
            words += (character, "")
        elif character in LETTERS or character in MARKS:
            words[-1] += character
        else:
            words.append("")
    stemmer = Stemmer.Stemmer("english", 0)
    return [stemmer.stemWord(word[:TOKEN_CHARACTERS]) for word in words if word]


def finds(query: Query, text: str) -> bool:
    """Tell whether a text holds all phrases of a query, as an index answers it."""
    tokens = tuple(analyse(text))
    return bool(query.phrases) and all(
        any(tokens[at : at + len(phrase)] == phrase for at in range(len(tokens))) for phrase in query.phrases
    )


# Texts in which folding has something to do, far more often than in texts of any characters.
PIECES = st.sampled_from(
    (
        "word Running x² ﬁne Straße ΟΔΥΣΣΕΥΣ й e\u0301 école İ ﷺ ½ ℡ Ⓐ क्षि नि 计划 テスト ﾃｽﾄﾞ か\u3099 か\u309a "
        "한국 ㅋㅋ ㅎㅏ 하ㄳ \u1112\u1161\u11ab ㌔ ㈱ ー \u0301 \u3099 \u1161 \u200d \ufe0f \u00ad \u093f \U000e0101 "
        '\U0001e030 \U0001133c \x00 _ - " “ … 🎉 🇩🇪 👩\u200d👩\u200d👧 👍🏽 \ud83d \ue000 \U00020000 \u0378  \n'
    ).split(" ")
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.characters()), max_size=20).map("".join))


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="only Python 3.11 knows just Unicode 14")
@pytest.mark.parametrize("name", RULES)
def test_tables_are_those_of_unicode_14(name: str) -> None:
    """Each table holds exactly the characters that its rule gives under Unicode 14."""
    table, rule = RULES[name]
    assert table.edges == edges(rule)


def test_tokens_are_pinned() -> None:
    """The same text gives the same tokens with every Python, every Unicode and every stemmer, until REVISION rises."""
    digest = hashlib.sha256()
    for first in (*range(0, 0x32000, 0x100), *range(0xE0000, 0xE0200, 0x100)):
        text = " ".join(f"a{chr(code)}b {chr(code)}ings か{chr(code)}" for code in range(first, first + 0x100))
        digest.update("\n".join(analyse(text)).encode())
    words = "running generously national skies dying news proceeded herring 3rd early only's internationalization"
    digest.update(" ".join(analyse(words)).encode())
    assert digest.hexdigest() == PINNED[analysis.REVISION]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The quick foxes jumped", ["the", "quick", "fox", "jump"]),
        ("version 3.14.15 of node-sqlite_x", ["version", "3", "14", "15", "of", "node", "sqlite", "x"]),
        ("some\x00thing\x01here", ["some", "thing", "here"]),
        ("Café CAFÉ cafe\u0301", ["cafe", "cafe", "cafe"]),
        ("ΟΔΥΣΣΕΥΣ οδυσσευς", ["οδυσσευσ", "οδυσσευσ"]),
        ("Привет МИР", ["привет", "мир"]),
        ("Straße \uff21\uff22\uff23 ﬁn", ["strass", "abc", "fin"]),
        ("שָׁלוֹם مُحَمَّد", ["שלום", "محمد"]),
        ("youer计划 v2版", ["youer", "计", "划", "v2", "版"]),
        ("テストー ﾃﾞｰﾀ か\u3099", ["テ", "ス", "ト", "ー", "デ", "ー", "タ", "が"]),
        ("한국 \u1112\u1161\u11ab", ["한", "국", "한"]),
        ("ㅋㅋ 하ㄳ", ["ㅋ", "ㅋ", "하", "ㄳ"]),
        ("\ue000x \U00020000y", ["\ue000x", "\U00020000", "y"]),
        ("❤\ufe0f 葛\U000e0100飾 so\u00adft", ["葛", "飾", "soft"]),
        ("a\ud83db\u0378c\U0001e030d", ["a", "b", "c", "d"]),
        ("x" * 200, ["x" * 128]),
        ("", []),
        ("\n\t … 🎉 !!!", []),
    ],
)
def test_text_is_analysed(text: str, tokens: list[str]) -> None:
    """Words are folded and stemmed, CJK characters stand alone, and everything that is no word parts them."""
    assert analyse(text) == tokens


@given(TEXTS)
@example("e\u0301\u0316\u3099")
def test_short_cuts_change_nothing(text: str) -> None:
    """A text of any characters has the tokens that the plain steps give."""
    assert analyse(text) == plainly(text)


@given(st.text(alphabet=string.printable + "\x00\x1c\x1f\x7f"))
def test_ascii_is_analysed_like_any_text(text: str) -> None:
    """ASCII text has the tokens that the plain steps give."""
    assert analyse(text) == plainly(text)


@given(TEXTS)
def test_tokens_are_ready_for_an_index(text: str) -> None:
    """No token of any text is empty, too long, or holds white space, ASCII punctuation or a lone surrogate."""
    for token in analyse(text):
        assert 0 < len(token) <= TOKEN_CHARACTERS
        assert not re.search(r"[\s\x00-\x2f:-@\[-`{-\x7f\ud800-\udfff]", token)


@given(TEXTS)
def test_places_belong_to_the_tokens(text: str) -> None:
    """Locating gives the same tokens, in places that follow one another and hold what the tokens were made of."""
    tokens, places = locate(text)
    assert tokens == analyse(text)
    assert sorted(places) == places
    for token, (start, end) in zip(tokens, places, strict=True):
        assert token in analyse(text[start:end])


@given(st.lists(st.lists(PIECES).map("".join), min_size=8, max_size=8))
def test_threads_share_the_analysis(texts: list[str]) -> None:
    """Threads that analyse at the same time each get their own text's tokens."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(analyse, texts)) == [plainly(text) for text in texts]


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ("fox whale fox", [["fox"], ["whale"]]),
        ("alpha AND -beta", [["alpha"], ["and"], ["beta"]]),
        ('say "exact words" here', [["say"], ["exact", "word"], ["here"]]),
        ('an "open quote', [["an"], ["open"], ["quot"]]),
        ('"one two" and "three', [["one", "two"], ["and"], ["three"]]),
        ("“curly quotes” „deutsche Worte“", [["cur", "quot"], ["deutsch", "wort"]]),
        ("don't a@b.com 3.14.15", [["don"], ["t"], ["a"], ["b"], ["com"], ["3"], ["14"], ["15"]]),
        ("node-sqlite_x", [["node"], ["sqlite"], ["x"]]),
        ("youer计划", [["youer"], ["计", "划"]]),
        ("评审 会议\uff0c评", [["评", "审"], ["会", "议"], ["评"]]),
        ("ㅎㅏ", [["ㅎ", "ㅏ"]]),
        ('"计划 youer"', [["计", "划", "youer"]]),
        ("word " * 1000, [["word"]]),
    ],
)
def test_query_is_read(query: str, phrases: list[list[str]]) -> None:
    """Words are each a phrase, quotes and touching CJK characters make longer ones, and none is there twice."""
    assert [list(phrase) for phrase in parse_query(query).phrases] == phrases


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "!!!", '"', '""', '"""', "(", "*", "-", "\x00", "🎉", "\ud83d"])
def test_query_without_words_asks_for_nothing(query: str) -> None:
    """A query of white space or punctuation alone has no phrases."""
    assert parse_query(query).phrases == ()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Order BENCH-100821 shipped", "BENCH-100821"),
        ("don't panic", "don\u2019t"),
        ("C++ and C#", "C++"),
        ("mail a@b.com", "a@b.com"),
        ("50% off", "50%"),
        ("NEAR the AND gate", "AND NEAR"),
        ("重跑gen-itgc后50条悬空引用清零\uff0c修复已验证", "悬空 清零 gen"),
        ("明天下午三点开项目评审会议", "评审会议"),
        ("新しいテストです", "ﾃｽﾄ"),
        ("오늘은 일본어 수업", "일본"),
        ("네ㄳ", "네"),
    ],
)
def test_query_finds(text: str, query: str) -> None:
    """What a person types finds the text that has it, whatever characters stand between or around the words."""
    assert finds(parse_query(query), text)


def test_query_of_other_words_finds_nothing() -> None:
    """A text that lacks a word, or has the words of a phrase in another order, is not found."""
    text = "the blue whale and 评审会议"
    for query in ("blue wolf", '"whale blue"', "审评", "评会", "blu"):
        assert not finds(parse_query(query), text)


@given(TEXTS)
def test_text_finds_itself(text: str) -> None:
    """A text is found by all that stands in it, as words and as one phrase."""
    words = re.sub('["\u201c\u201d\u201e\uff02]', " ", text)
    for query in (parse_query(words), parse_query(f'"{words}"')):
        assert finds(query, words) or not analyse(words)


@given(st.text(alphabet=st.sampled_from("重跑后条かガテスー한국일본〇々"), min_size=1), st.data())
def test_cjk_text_is_found_by_every_substring(text: str, data: st.DataObject) -> None:
    """Any substring of Chinese, Japanese and Korean text finds it, glued to Latin words or not."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert finds(parse_query(text[start:end]), f"gen{text}itgc")


LONG = "Nothing to see here. " * 40


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("a short text", "short", "a [short] text"),
        ("ﬁne Cafe\u0301s, STRASSE", "cafe straße", "ﬁne [Cafe\u0301s], [STRASSE]"),
        ("한국과 日本語テスト", "日本 테 ﾃｽ", "한국과 [日本]語[テス]ト"),
        ("one two three", '"two three" one', "[one] [two three]"),
        (f"{LONG}a needle here. {LONG}", "needle", "…to see here. a [needle] here. Nothing to…"),
        (f"needle {LONG}", "needle", "[needle] Nothing to see here. Nothing to…"),
        (f"{LONG}last needle", "needle", "…here. Nothing to see here. last [needle]"),
        (
            f"needle {LONG}thread {LONG}thread, needle {LONG}",
            "needle thread",
            "…to see here. [thread], [needle] Nothing to…",
        ),
        (LONG, "absent", "Nothing to see here. Nothing to see…"),
        ("x" * 300, "x" * 300, f"[{'x' * 40}]…"),
        ("", "absent", ""),
    ],
)
def test_snippet_shows_what_was_found(text: str, query: str, expected: str) -> None:
    """A snippet is the stored text around the densest find, what was found marked, "…" where it was cut."""
    assert snippet(text, parse_query(query), width=40, highlight=("[", "]")) == expected


CHARACTERS = ["e\u0301\u0316", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "か\u3099", "\u1112\u1161\u11ab", "\r\n", "क्षि"]
"""What is seen as one character, each of several code points."""


@pytest.mark.parametrize("piece", CHARACTERS)
@pytest.mark.parametrize("before", ["", "a"])
def test_snippet_around_a_find_cuts_no_character_apart(piece: str, before: str) -> None:
    """A snippet that begins in the middle of a text begins with a whole character, whatever the width."""
    text = before + piece * 30 + " needle " + piece * 30
    for width in range(12, 60):
        shown = snippet(text, parse_query("needle"), width=width)
        assert shown.count("needle") == 1
        left, right = shown.strip("…").split("needle")
        assert left.strip(" ") in {piece * count for count in range(31)}
        assert right.strip(" ") in {piece * count for count in range(31)}


@pytest.mark.parametrize("piece", CHARACTERS)
@pytest.mark.parametrize("before", ["", "a"])
def test_snippet_cuts_no_character_apart(piece: str, before: str) -> None:
    """Whatever the width, a snippet begins and ends between what is seen as characters."""
    text = before + piece * 30
    for width in range(40):
        shown = snippet(text, parse_query("absent"), width=width).removesuffix("…")
        assert len(shown) <= width
        assert shown.removeprefix(before) in {piece * count for count in range(30)}


@given(
    st.lists(st.one_of(PIECES.filter(lambda piece: piece != "…"), st.just("filler ")), max_size=80).map("".join),
    st.data(),
)
def test_snippet_is_part_of_the_text(text: str, data: st.DataObject) -> None:
    """A snippet is a part of the text, no longer than asked for, and shows a find if there is room for one."""
    tokens = analyse(text)
    query = Query(((data.draw(st.sampled_from(tokens)),),) if tokens else ())
    width = data.draw(st.integers(0, 200))
    plain = snippet(text, query, width=width)
    shown = plain.strip("…")
    assert shown in text
    assert len(shown) <= width
    marked = snippet(text, query, width=width, highlight=("\x01", "\x02"))
    assert re.sub("[\x01\x02]", "", marked) == plain
    assert width < 120 or not tokens or "\x01" in marked


@pytest.mark.parametrize("filler", ["filler ", "наполнитель ", "填充", "❤\ufe0f "])
def test_snippet_of_a_long_text_reaches_over_pages(filler: str) -> None:
    """A find far into a long text is shown, also where one page of reading ends and the next begins."""
    for place in range(analysis._PAGE - 14, analysis._PAGE + 3, 4):
        text = (filler * place)[:place] + " exact needle " + filler * analysis._PAGE_OVERLAP
        assert "[exact needle]" in snippet(text, parse_query('"exact needle"'), highlight=("[", "]"))


@pytest.mark.parametrize(
    ("edge", "half"), [(analysis._PAGE, "dle"), (analysis._PAGE + analysis._PAGE_OVERLAP, "nee")], ids=["start", "end"]
)
def test_snippet_takes_no_half_word_for_a_find(edge: int, half: str) -> None:
    """A word that lies over the edge of a page is not found by its half."""
    text = f"{'x ' * edge}"[: edge - 3] + "needle" + " x" * analysis._PAGE
    assert "[" not in snippet(text, parse_query(half), highlight=("[", "]"))


def test_snippet_of_a_huge_text_is_its_beginning() -> None:
    """A text of megabytes is read to a bound, and without a find its beginning is shown."""
    text = "filler " * 2_000_000 + "needle"
    assert snippet(text, parse_query("needle"), width=20) == "filler filler filler…"
