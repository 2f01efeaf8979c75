from __future__ import annotations

from collections.abc import Callable

import pytest

from sessions import SessionManager
from tests.cli.running import Fill, eventstore, terminal


@pytest.fixture
def library(make_store: Callable[[Fill], str]) -> str:
    """Return the URL of a store with many messages that hold the same word, few of them from an assistant."""

    async def fill(manager: SessionManager) -> None:
        for name in ("one", "two"):
            session = manager.get_session(name)
            for number in range(30):
                role = "assistant" if number == 7 else "user"
                text = "whale " * (30 - number) + "song"
                await session.append_message(
                    {"id": f"m{number}", "role": role, "parts": [{"type": "text", "text": text}]}
                )

    return make_store(fill)


def found(*arguments: str) -> list[tuple[str, str]]:
    """Return the sessions and messages that a search finds, in its order."""
    return [(record["session_id"], record["id"]) for record in eventstore("search", *arguments).records]


def test_words_across_sessions(url: str) -> None:
    """All words are meant, in any order and form, on every branch of every session."""
    assert found("path", "--store", url) == [("walk-2", "m1")]
    assert found("wet", "PATHS", "--store", url) == [("walk-2", "m1")]
    assert found("bus", "--store", url) == [("walk", "m5")]
    assert found("bus wet", "--store", url) == []


def test_phrase_and_part_of_cjk_text(url: str) -> None:
    """Words in quotes are a phrase, and Chinese, Japanese and Korean text is found by any part of it."""
    assert found('"path wet"', "--store", url) == [("walk-2", "m1")]
    assert found('"wet path"', "--store", url) == []
    assert found("降", "--store", url) == [("walk-2", "m2")]


def test_record_of_a_hit(url: str) -> None:
    """A hit's record names session, message and role, when it was made, and a snippet without marks."""
    (record,) = eventstore("search", "boots", "--store", url).records
    assert set(record) == {"session_id", "id", "role", "created_at", "snippet"}
    assert (record["role"], record["snippet"]) == ("assistant", "Yes, take boots. 雨が降る。")


def test_one_session(library: str) -> None:
    """With --session only that session is searched, by the beginning of its id too."""
    assert {session for session, _ in found("whale", "--session", "tw", "--store", library)} == {"two"}


def test_role_is_looked_for_further_down(library: str) -> None:
    """With --role as many messages of the role are found as there are, however many others match better."""
    hits = found("whale", "--role", "assistant", "-n", "2", "--store", library)
    assert sorted(hits) == [("one", "m7"), ("two", "m7")]
    assert found("whale", "--role", "tool", "--store", library) == []


def test_number(library: str) -> None:
    """Twenty hits are shown unless -n says otherwise."""
    assert len(found("whale", "--store", library)) == 20
    assert len(found("whale", "-n", "45", "--store", library)) == 45


def test_newest_first(library: str) -> None:
    """With --newest the newest hits come first, and with --role the newest of that role."""
    assert found("whale", "--newest", "-n", "3", "--store", library) == [("two", f"m{at}") for at in (29, 28, 27)]
    assert found("whale", "--newest", "--role", "assistant", "--store", library) == [("two", "m7"), ("one", "m7")]
    assert found("whale", "--newest", "--session", "one", "-n", "1", "--store", library) == [("one", "m29")]
    assert found("whale", "-n", "1", "--store", library)[0][1] == "m0"


def test_table(url: str) -> None:
    """The table shows session, role, age and snippet."""
    head, row = eventstore("search", "boots", "--store", url, "--table").lines
    assert head.split() == ["SESSION", "ROLE", "AGE", "SNIPPET"]
    assert row.split()[:2] == ["walk-2", "assistant"]
    assert row.endswith("Yes, take boots. 雨が降る。")


def test_found_words_stand_out_on_a_terminal(url: str) -> None:
    """On a terminal the words that were found are in a style of their own."""
    shown = terminal("search", "boots", "--store", url).out
    assert "take \x1b[1;31mboots\x1b[0m" in shown


def test_nothing_found(url: str) -> None:
    """That nothing was found is no failure: people are told on stderr, and a pipe gets nothing."""
    assert eventstore("search", "unicorn", "--store", url, "--table")[:3] == (0, "", "nothing found\n")
    assert eventstore("search", '"', "--store", url)[:3] == (0, "", "")
