from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from eventstore import InvalidArgumentError
from replay import rebuild
from sessions import SearchResult, Session, SessionManager, Store
from tests.sessions.talk import said

RAW_TEXTS = {
    "order": "Order BENCH-100821 shipped",
    "panic": "don't panic",
    "langs": "C++ and C#",
    "mail": "a@b.com",
    "sale": "50% off",
    "gates": "NEAR the AND gate",
}
FINDS = {
    "BENCH-100821": ["order"],
    "don't": ["panic"],
    "C++": ["langs"],
    "a@b.com": ["mail"],
    "50%": ["sale"],
    "AND": ["gates", "langs"],
    "NEAR": ["gates"],
    "NOT": [],
    "OR": [],
    "col:x": [],
    "-100821": ["order"],
    "^a": ["mail"],
    "{t}: a": [],
    '"': [],
    "(": [],
    "*": [],
    "": [],
    "   ": [],
    "\t\n\u00a0\u3000": [],
    "''": [],
    ");--": [],
    "\0": [],
    "\ud800": [],
    "BEN*": [],
    "NEAR(the gate)": ["gates"],
    "NEAR(the gate, 5)": [],
    '"AND gate"': ["gates"],
    '"gate AND"': [],
    '"the AND': ["gates"],
    "gate near": ["gates"],
    "assistant_fts": [],
    "terms:near": [],
}
CJK_TEXTS = {
    "zh1": "重跑gen-itgc后50条悬空引用清零，修复已验证",  # noqa: RUF001 - as people type it
    "zh2": "明天下午三点开项目评审会议",
    "ja": "これは簡単なテストです。",
    "ko": "나는 일본에 갔다",
    "mixed": "youer计划 for the meetings",
}
CJK_FINDS = {
    "悬空": ["zh1"],
    "清零": ["zh1"],
    "评审会议": ["zh2"],
    "评审": ["zh2"],
    "重跑": ["zh1"],
    "审": ["zh2"],
    "审评": [],
    "テスト": ["ja"],
    "テス": ["ja"],
    "일본": ["ko"],
    "본": ["ko"],
    "gen": ["zh1"],
    "itgc后50条": ["zh1"],
    "youer": ["mixed"],
    "计划": ["mixed"],
    "划": ["mixed"],
    "meeting": ["mixed"],
    "会议 评审": ["zh2"],
    '"引用清零"': ["zh1"],
}


async def filled(store: Store, texts: dict[str, str]) -> Session:
    """Return a session with these messages."""
    session = Session.create(store).for_session("chat")
    await session.append_messages([said(name, text) for name, text in texts.items()])
    return session


def searches(store: Store, session: Session) -> list[Callable[[str], Awaitable[list[SearchResult]]]]:
    """Return every way to search."""

    async def newest(query: str) -> list[SearchResult]:
        return await session.search(query, order="newest")

    return [session.search, newest, SessionManager(store).search]


@pytest.mark.parametrize("query", FINDS, ids=ascii)
async def test_nothing_that_is_typed_raises(store: Store, query: str) -> None:
    """Raw text with operators and punctuation finds the words in it, and what holds no word finds nothing (FTS-1)."""
    session = await filled(store, RAW_TEXTS)
    for search in searches(store, session):
        assert sorted(hit.id for hit in await search(query)) == sorted(FINDS[query])


@pytest.mark.parametrize("query", CJK_FINDS)
async def test_text_without_spaces_is_found_by_any_part(store: Store, query: str) -> None:
    """Chinese, Japanese and Korean text is found by any substring, and English stems beside it still are (FTS-4)."""
    session = await filled(store, CJK_TEXTS)
    for search in searches(store, session):
        assert [hit.id for hit in await search(query)] == CJK_FINDS[query]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("run", "a b"),
        ("running runner", ""),
        ("RUNS the", "a b"),
        ("the fox", "a"),
        ("fox the", "a"),
        ('"fox the"', ""),
        ('"the fox"', "a"),
        ("cafe", "c"),
        ("CAFÉ", "c"),
        ("of", "c"),
        ("fox dog", ""),
        ("second line", "d"),
        ('"first second"', "d"),
        ("hidden", ""),
        ("tool", ""),
    ],
)
async def test_one_meaning(session: Session, query: str, found: str) -> None:
    """All words are meant in any order, stemmed, without accents, stop words too, over all text parts."""
    await session.append_messages([said("a", "The fox runs"), said("b", "the run"), said("c", "café of love")])
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "first"},
        {"type": "reasoning", "text": "hidden"},
        {"type": "tool-x", "input": {"text": "tool"}, "text": "tool"},
        {"type": "text", "text": "second line"},
    ]
    await session.append_message({"id": "d", "role": "assistant", "parts": parts})
    assert sorted(hit.id for hit in await session.search(query)) == found.split()


async def test_hits_tell_what_was_found(session: Session) -> None:
    """A hit has the message's id, session, role, whole text, time, and the part around the words."""
    long = "word " * 200 + "needle in the hay " + "word " * 200
    await session.append_message({"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": long}]})
    (hit,) = await session.search("needle")
    message = await session.get_message("m1")
    assert message is not None
    assert (hit.id, hit.session_id, hit.role, hit.content) == ("m1", "chat", "assistant", long)
    assert hit.created_at == message.created_at
    assert "needle" in hit.snippet
    assert len(hit.snippet) < 400


async def test_all_branches_are_searched(session: Session) -> None:
    """A session's search finds messages on every branch, not on the latest one alone."""
    await session.append_messages([said("m1", "apple"), said("m2", "pear")])
    await session.append_message(said("b", "pear apple"), "m1")
    assert sorted(hit.id for hit in await session.search("pear")) == ["b", "m2"]


async def test_order_and_limit(session: Session) -> None:
    """By relevance the denser text comes first, by time the newest, and the limit cuts that order."""
    await session.append_message(said("dense", "penguin penguin"))
    for number in range(30):
        await session.append_message(said(f"m{number}", f"a penguin among many other birds number {number}"))
    assert (await session.search("penguin"))[0].id == "dense"
    assert len(await session.search("penguin")) == 20
    newest = [hit.id for hit in await session.search("penguin", order="newest", limit=1_000)]
    assert newest == [*(f"m{number}" for number in reversed(range(30))), "dense"]
    assert [hit.id for hit in await session.search("penguin", order="newest", limit=1)] == ["m29"]
    assert await session.search("penguin", limit=0) == []
    for limit in (10**9, 2**63, 10**30):
        assert len(await session.search("penguin", limit=limit)) == 31


@pytest.mark.parametrize(
    "arguments",
    [{"order": "best"}, {"order": None}, {"order": ["newest"]}, {"limit": -1}, {"limit": 1.0}, {"limit": None}],
    ids=str,
)
async def test_bad_options_are_refused(session: Session, arguments: dict[str, Any]) -> None:
    """An order or a limit that there is not is refused by its name."""
    with pytest.raises(InvalidArgumentError) as raised:
        await session.search("x", **arguments)
    assert raised.value.argument in arguments


@pytest.mark.parametrize("query", [None, 5, b"x", ["x"]])
async def test_query_is_a_text(store: Store, session: Session, query: Any) -> None:
    """A query that is no text is refused, by a session and by a manager."""
    for search in searches(store, session):
        with pytest.raises(InvalidArgumentError):
            await search(query)


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"w{number}" for number in range(5_000)),
        '"' + " ".join(f"w{number}" for number in range(5_000)) + '"',
        "word " * 50_000,
        "x" * 1_000_000,
        "中" * 2_000,
        '"' * 10_001,
        "a" + "\u0301" * 10_000,
    ],
    ids=lambda query: f"{len(query)}-{query[:3]!a}",
)
async def test_huge_queries_are_answered(store: Store, query: str) -> None:
    """A query of any length is answered, and finds the message that holds it all."""
    session = Session.create(store).for_session("chat")
    await session.append_messages([said("all", query.replace('"', "")), said("other", "w1 w2")])
    for search in searches(store, session):
        assert [hit.id for hit in await search(query)] == ([] if query.startswith('""') else ["all"])


async def test_search_survives_a_rebuild(store: Store) -> None:
    """After a rebuild the same queries find the same messages (FTS-4)."""
    session = await filled(store, RAW_TEXTS | CJK_TEXTS)
    queries = [*FINDS, *CJK_FINDS]
    before = [[hit.id for hit in await session.search(query)] for query in queries]
    await rebuild(store)
    assert [[hit.id for hit in await session.search(query)] for query in queries] == before
