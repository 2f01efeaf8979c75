from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from replay.cli.failures import Failure
from replay.cli.starts import parse_start
from sessions import SessionManager
from tests.cli.running import Fill, eventstore, said

NOW = dt.datetime(2026, 5, 2, 12, tzinfo=dt.UTC)


def versions(*arguments: str) -> list[int]:
    """Return the versions of the events that a command line lists, in its order."""
    return [record["version"] for record in eventstore("log", *arguments).records]


def test_record_of_an_event(url: str) -> None:
    """An event's record says position, version, time, stream, type and id, and sums the event up."""
    first, second, *_, last = eventstore("log", "walk", "--store", url).records
    assert set(first) == {"position", "version", "recorded_at", "stream_id", "type", "event_id", "summary"}
    assert (first["version"], first["type"], first["summary"]) == (1, "session_created", "A walk by the sea")
    assert (second["stream_id"], second["summary"]) == ("walk", "user: Where to?")
    assert second["position"] == first["position"] + 1
    assert (last["type"], last["summary"]) == ("leaf_selected", "m4")


def test_all_sessions_in_order_of_position(url: str) -> None:
    """With --all the events of every session come in the order of the log."""
    records = eventstore("log", "--all", "--store", url).records
    assert [record["position"] for record in records] == list(range(1, 12))
    assert list(dict.fromkeys(record["stream_id"] for record in records)) == ["empty", "walk-2", "walk"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], [1, 2, 3, 4, 5, 6, 7]),
        (["-n", "2"], [6, 7]),
        (["-n", "9" * 30], [1, 2, 3, 4, 5, 6, 7]),
        (["-n", "100"], [1, 2, 3, 4, 5, 6, 7]),
        (["--from", "10"], [6, 7]),
        (["--from", "1"], [1, 2, 3, 4, 5, 6, 7]),
        (["--from", "99"], []),
        (["--from", "7", "-n", "2"], [3, 4]),
        (["--from", "1h", "-n", "2"], [1, 2]),
        (["--from", "2999-01-01"], []),
        (["--type", "message_*", "-n", "2"], [5, 6]),
        (["--type", "leaf_selected"], [7]),
        (["--type", "nothing*"], []),
        (["--type", "nothing*", "-n", "2"], []),
        (["--type", "session_*", "--from", "5"], [1]),
    ],
    ids=lambda value: " ".join(value) or "all" if value and isinstance(value[0], str) else None,
)
def test_choice_of_a_session(url: str, arguments: list[str], expected: list[int]) -> None:
    """-n gives the newest events, or the first ones from where --from begins, and --type only those like it."""
    assert versions("walk", "--store", url, *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-n", "2"], [10, 11]),
        (["--from", "3", "-n", "2"], [3, 4]),
        (["--from", "99"], []),
        (["--from", "9" * 30], []),
        (["--from", "today"], list(range(1, 12))),
        (["--from", "2999-01-01T00:00Z"], []),
        (["--type", "session_created", "-n", "2"], [2, 5]),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else None,
)
def test_choice_of_all(url: str, arguments: list[str], expected: list[int]) -> None:
    """Over all sessions the same choices go by position."""
    records = eventstore("log", "--all", "--store", url, *arguments).records
    assert [record["position"] for record in records] == expected


def test_table(url: str) -> None:
    """The table of all events names their sessions, and no line is wider than the terminal."""
    head, *rows = eventstore("log", "--all", "--store", url, "--table").out.splitlines()
    assert head.split() == ["POS", "VER", "TIME", "SESSION", "TYPE", "SUMMARY"]
    assert len(rows) == 11
    assert all(len(row) <= 80 for row in rows)


def test_long_table_has_one_head(make_store: Callable[[Fill], str]) -> None:
    """A table longer than is laid out at once has its head only once, and every row."""

    async def fill(manager: SessionManager) -> None:
        await manager.get_session("long").append_messages(said(*map(str, range(1_200))))

    lines = eventstore("log", "long", "--store", make_store(fill), "--table").lines
    assert len(lines) == 1_201
    assert sum(line.split()[0] == "POS" for line in lines) == 1


def test_neither_or_both(url: str) -> None:
    """A session and --all exclude each other, and one of them is needed."""
    for arguments in (["log"], ["log", "walk", "--all"]):
        ran = eventstore(*arguments, "--store", url)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: name either a session or --all\nhint: eventstore log --all --store sqlite:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120", 120),
        ("2h", NOW - dt.timedelta(hours=2)),
        ("90s", NOW - dt.timedelta(seconds=90)),
        ("3w", NOW - dt.timedelta(weeks=3)),
        ("1h30m", NOW - dt.timedelta(minutes=90)),
        ("2 days", NOW - dt.timedelta(days=2)),
        ("2026-05-01T12:00Z", dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)),
        ("2026-05-01T12:00+02:00", dt.datetime(2026, 5, 1, 10, tzinfo=dt.UTC)),
        ("2026-05-01", dt.datetime(2026, 5, 1).astimezone(dt.UTC)),
        ("today", dt.datetime(2026, 5, 2).astimezone(dt.UTC)),
        ("yesterday", dt.datetime(2026, 5, 1).astimezone(dt.UTC)),
    ],
)
def test_start_is_understood(text: str, expected: object) -> None:
    """A start is a position, an age, a day's name, or a time in ISO-8601, in this machine's zone unless it says so."""
    assert parse_start(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "-5", "-2h", "12:30", "2026-13-01", "5y", "9" * 20 + "w", "9" * 5_000])
def test_start_is_refused(text: str) -> None:
    """What is neither a position nor a time is a usage error that names examples."""
    with pytest.raises(Failure) as refused:
        parse_start(text, NOW)
    assert refused.value.exit_code == 2
    assert "2h, yesterday" in (refused.value.hint or "")
