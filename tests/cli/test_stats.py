from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from sessions import SessionManager
from tests.cli.running import Fill, eventstore, said


@pytest.fixture
def used(make_store: Callable[[Fill], str]) -> str:
    """Return the URL of a store of twelve sessions, of which two have used tokens."""

    async def fill(manager: SessionManager) -> None:
        for number in range(12):
            await manager.create(f"Session {number}", id=f"s{number}", model="small" if number else "large")
        await manager.get_session("s1").append_messages(said("one", "two"))
        await manager.add_usage("s0", 10, 5, 0.25)
        await manager.add_usage("s1", 1, 2, 0.5)
        await manager.add_usage("s1", 3, 4, 0.5)

    return make_store(fill)


def test_all_in_a_pipe(used: str) -> None:
    """In a pipe there is a record for each day, type, session and model, which says what it is by."""
    records = eventstore("stats", "--store", used).records
    assert [record["by"] for record in records] == ["day", *["type"] * 3, *["session"] * 12, *["model"] * 2]
    assert records[0]["day"] == dt.datetime.now(dt.UTC).date().isoformat()
    assert records[0]["events"] == 17
    assert records[0]["bytes"] == sum(record["bytes"] for record in records if record["by"] == "type")


def test_by_one(used: str) -> None:
    """--by chooses what is counted, and -n how many are shown."""
    by_model = eventstore("stats", "--by", "model", "--store", used).records
    assert by_model == [
        {"by": "model", "model": "small", "events": 2, "input_tokens": 4, "output_tokens": 6, "cost": 1.0},
        {"by": "model", "model": "large", "events": 1, "input_tokens": 10, "output_tokens": 5, "cost": 0.25},
    ]
    by_session = eventstore("stats", "--by", "session", "-n", "2", "--json", "--store", used).value
    assert [(one["session"], one["name"], one["events"]) for one in by_session] == [
        ("s1", "Session 1", 5),
        ("s0", "Session 0", 2),
    ]
    assert len(eventstore("stats", "--by", "session", "-n", "9" * 30, "--store", used).records) == 12
    assert eventstore("stats", "--by", "colour", "--store", used).code == 2


def test_tables(used: str) -> None:
    """On a terminal there are four tables, cut to ten rows, and what is left out is said on standard error."""
    ran = eventstore("stats", "--store", used, "--table")
    heads = [line.split()[0] for line in ran.lines if line.split()[1:2] in (["EVENTS"], ["NAME"], ["TIMES"])]
    assert heads == ["DAY", "TYPE", "SESSION", "MODEL"]
    assert ran.err == f"2 more by session: `eventstore stats --by session --store {used}`\n"
    assert len(eventstore("stats", "--by", "session", "--table", "--store", used).lines) == 13


def test_nothing_used(url: str) -> None:
    """Without usage there is no table of models, and that is said."""
    ran = eventstore("stats", "--by", "model", "--store", url, "--table")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to count by model\n")
