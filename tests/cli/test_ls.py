from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from tests.cli.running import eventstore

CHATGPT = Path(__file__).parents[1] / "fixtures" / "shared" / "chatgpt"


def ids(*arguments: str) -> list[str]:
    """Return the ids of the sessions that a command line lists, in its order."""
    return [record["id"] for record in eventstore("ls", *arguments).records]


def test_record_holds_the_numbers(url: str) -> None:
    """A session's record says its messages, branches, events, tokens of the current path, name and source."""
    (record,) = [one for one in eventstore("ls", "--store", url).records if one["id"] == "walk"]
    named = {key: record[key] for key in ("name", "source", "messages", "branches", "events", "leaf_id")}
    assert named == {
        "name": "A walk by the sea",
        "source": "notes",
        "messages": 5,
        "branches": 2,
        "events": 7,
        "leaf_id": "m4",
    }
    # "Where to?", "Along the cliffs.", "How far?" and "Ten miles.", with four tokens for each message.
    assert record["tokens"] == 3 + 5 + 3 + 3 + 4 * 4


def test_session_without_messages(url: str) -> None:
    """A session without messages is listed with zeros."""
    (record,) = [one for one in eventstore("ls", "--store", url).records if one["id"] == "empty"]
    assert [record[key] for key in ("messages", "branches", "events", "tokens", "leaf_id")] == [0, 0, 1, 0, None]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["walk", "walk-2", "empty"]),
        (["-n", "2"], ["walk", "walk-2"]),
        (["--sort", "name"], ["walk", "walk-2", "empty"]),
        (["--sort", "created"], ["walk", "walk-2", "empty"]),
        (["--sort", "messages", "-n", "1"], ["walk"]),
        (["--sort", "tokens"], ["walk", "walk-2", "empty"]),
        (["--source", "notes"], ["walk", "walk-2"]),
        (["--source", "elsewhere"], []),
        (["-q", "WALK"], ["walk", "walk-2"]),
        (["-q", "rain"], ["walk-2"]),
        (["-q", "empty"], ["empty"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_choice_and_order(url: str, arguments: list[str], expected: list[str]) -> None:
    """Sessions come newest first, or as sorted, and only those that were asked for."""
    assert ids("--store", url, *arguments) == expected


def test_table_fits_a_terminal(url: str) -> None:
    """The table has a head, a row per session, and no line wider than the terminal."""
    ran = eventstore("ls", "--store", url, "--table")
    head, *rows = ran.lines
    assert head.split() == ["ID", "NAME", "UPDATED", "CREATED", "MSGS", "BRANCHES", "EVENTS", "TOKENS", "SOURCE"]
    assert [row.split()[0] for row in rows] == ["walk", "walk-2", "empty"]
    assert "A walk by the…" in rows[0]
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_when_a_conversation_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An imported session was updated when it was imported, and created when its source says, which is shown too."""
    url = f"sqlite:///{tmp_path / 'new.db'}"
    eventstore("import", "chatgpt", str(CHATGPT / "tree-branches"), "--store", url)
    (record,) = eventstore("ls", "--store", url).records
    created, updated = (dt.datetime.fromisoformat(record[key]) for key in ("created_at", "updated_at"))
    assert created.date() == dt.date(2024, 4, 2)
    assert dt.datetime.now(dt.UTC) - updated < dt.timedelta(minutes=5)
    monkeypatch.setenv("COLUMNS", "120")
    head, row = eventstore("ls", "--store", url, "--table").lines
    assert head.split()[2:4] == ["UPDATED", "CREATED"]
    assert row[head.index("CREATED") :].startswith(f"{(dt.datetime.now(dt.UTC) - created).days // 366}y ago")


@pytest.mark.parametrize(("sort", "shown"), [("updated", "UPDATED"), ("name", "UPDATED"), ("created", "CREATED")])
def test_time_on_a_narrow_terminal(tmp_path: Path, sort: str, shown: str) -> None:
    """Without room for both times the table has the one that it is sorted by, and all else that it had."""
    url = f"sqlite:///{tmp_path / 'new.db'}"
    eventstore("import", "chatgpt", str(CHATGPT / "tree-branches"), "--store", url)
    head, *_ = eventstore("ls", "--store", url, "--table", "--sort", sort).lines
    assert head.split() == ["ID", "NAME", shown, "MSGS", "BRANCHES", "EVENTS", "TOKENS", "SOURCE"]


def test_nothing_to_list(url: str) -> None:
    """When nothing is like what was asked for, stdout is empty and people are told so on stderr."""
    ran = eventstore("ls", "--store", url, "-q", "no such name", "--table")
    assert (ran.code, ran.out, ran.err) == (0, "", "no session is like that\n")
    assert eventstore("ls", "--store", url, "-q", "no such name", "--json").value == []
