from __future__ import annotations

import json
import select
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from sessions import SessionManager
from tests.cli.running import COMMAND, Fill, environment, eventstore, process, said, terminal

Child = subprocess.Popen[str]


@contextmanager
def tailing(*arguments: str) -> Iterator[tuple[Child, IO[str], IO[str]]]:
    """Start `tail` in a process of its own, with its stdout and stderr; it is ended if it does not end by itself."""
    with subprocess.Popen(
        [*COMMAND, "tail", *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            yield child, child.stdout, child.stderr
        finally:
            child.kill()


def versions(*arguments: str) -> list[int]:
    """Return the versions of the events that are there, as `tail` shows them."""
    return [record["version"] for record in eventstore("tail", *arguments, "--exit").records]


def say(url: str, session: str) -> dict[str, Any]:
    """Append a message in a process of its own, and return what that prints."""
    ran = process("append", session, "--role", "user", "--text", "And now?", "--store", url)
    assert ran.code == 0, ran.err
    appended: dict[str, Any] = ran.value
    return appended


def test_other_processes_are_seen_live(url: str) -> None:
    """What another process appends is printed while the command runs, a whole line each, and flushed."""
    with tailing("--all", "--from", "-1", "--store", url) as (child, out, _):
        assert json.loads(out.readline())["type"] == "leaf_selected"
        for session in ("walk", "walk-2", "walk"):
            appended = say(url, session)
            record = json.loads(out.readline())
            assert (record["stream_id"], record["position"]) == (session, appended["position"])
            assert (record["type"], record["summary"]) == ("message_appended", "user: And now?")
        assert child.poll() is None


def test_one_session(url: str) -> None:
    """With a session its events alone are printed, whatever else is appended in between."""
    with tailing("walk", "--from", "-1", "--store", url) as (_, out, _):
        assert json.loads(out.readline())["version"] == 7
        say(url, "walk-2")
        say(url, "walk")
        assert json.loads(out.readline())["version"] == 8


def test_interrupted(url: str) -> None:
    """Ctrl-C ends it with the exit code 130, and says from which position to go on, where nothing is missed."""
    with tailing("walk", "--from", "start", "--type", "leaf_*", "--store", url) as (child, out, err):
        assert json.loads(out.readline())["position"] == 11
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert out.read() == ""
        (told,) = err.read().splitlines()
    begin = "interrupted: resume from position 12 with `eventstore tail walk --from 12 --type 'leaf_*' --store "
    assert told.startswith(begin)
    say(url, "walk")
    arguments = shlex.split(told.partition("`")[2].rstrip("`"))
    assert eventstore(*arguments[1:], "--type", "*", "--exit").records[0]["position"] == 12


def test_interrupted_array(url: str) -> None:
    """Ctrl-C ends an array in JSON as its end does, so that it can be read."""
    with tailing("--all", "--from", "start", "--json", "--store", url) as (child, out, _):
        lines = [out.readline() for _ in range(11)]
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert len(json.loads("".join(lines) + out.read())) == 11


def test_only_what_comes(url: str) -> None:
    """Without a start only what comes after it is shown."""
    with tailing("--all", "--store", url) as (_, out, _):
        # Nothing says when it has begun, and what is appended before is not shown.
        position = 11
        while not select.select([out], [], [], 1)[0]:
            position = say(url, "walk")["position"]
        assert json.loads(out.readline())["position"] in range(12, position + 1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], []),
        (["--from", "start"], [1, 2, 3, 4, 5, 6, 7]),
        (["--from", "0"], [1, 2, 3, 4, 5, 6, 7]),
        (["--from", "10"], [6, 7]),
        (["--from", "99"], []),
        (["--from", "-2"], [6, 7]),
        (["--from", "-0"], []),
        (["--from", "-99"], [1, 2, 3, 4, 5, 6, 7]),
        (["--from", "-2", "--type", "message_*"], [5, 6]),
        (["--from", "-2", "--type", "nothing"], []),
        (["--from", "1h"], [1, 2, 3, 4, 5, 6, 7]),
        (["--from", "2999-01-01"], []),
        (["--from", "start", "--count", "2"], [1, 2]),
        (["--from", "start", "--type", "leaf_*"], [7]),
    ],
    ids=lambda value: " ".join(value) or "now" if not value or isinstance(value[0], str) else None,
)
def test_what_is_there(url: str, arguments: list[str], expected: list[int]) -> None:
    """With --exit it ends when all that is there from the start on was shown."""
    assert versions("walk", *arguments, "--store", url) == expected


def test_what_is_there_of_all(url: str) -> None:
    """Over all sessions events come by position, and the newest few are those of the whole log."""
    records = eventstore("tail", "--all", "--from", "start", "--exit", "--store", url).records
    assert [record["position"] for record in records] == list(range(1, 12))
    assert versions("--all", "--from", "-2", "--store", url) == [6, 7]


def test_count_ends_it(url: str) -> None:
    """After --count events it ends by itself, and the position that it tells is behind the last of them."""
    ran = eventstore("tail", "--all", "--from", "start", "--count", "3", "--store", url)
    assert [record["position"] for record in ran.records] == [1, 2, 3]
    assert ran.err == f"resume from position 4 with `eventstore tail --all --from 4 --store {url}`\n"


def test_end_is_told(url: str) -> None:
    """At the end the position to go on from is told, which is beyond events that were not chosen too."""
    ran = eventstore("tail", "walk-2", "--from", "start", "--type", "nothing", "--exit", "--store", url)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("resume from position 12 with `eventstore tail walk-2 --from 12 --type nothing ")
    ran = eventstore("tail", "walk-2", "--from", "99", "--exit", "--store", url)
    assert "resume from position 99 with" in ran.err


def test_record_is_that_of_the_log(url: str) -> None:
    """An event's record is the one that `log` prints."""
    assert eventstore("tail", "--all", "--from", "start", "--exit", "--store", url).out == (
        eventstore("log", "--all", "--store", url).out
    )


def test_neither_or_both(url: str) -> None:
    """A session and --all exclude each other, and one of them is needed."""
    for arguments in (["tail"], ["tail", "walk", "--all"]):
        ran = eventstore(*arguments, "--store", url)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: name either a session or --all\nhint: eventstore tail --all --store sqlite:")


def test_unknown_session(url: str) -> None:
    """A session that is not there is a failure, and a start that cannot be understood is one of usage."""
    assert eventstore("tail", "nobody", "--store", url).code == 3
    assert eventstore("tail", "walk", "--from", "soon", "--store", url).code == 2
    assert eventstore("tail", "walk", "--from", "-x", "--store", url).code == 2


def test_terminal(url: str) -> None:
    """On a terminal it is a table whose rows stand below each other though each is printed at once."""
    head, *rows = terminal("tail", "--all", "--from", "start", "--exit", "--store", url, "--no-color").lines
    assert head.split() == ["POS", "VER", "TIME", "SESSION", "TYPE", "SUMMARY"]
    assert len(rows) == 11
    places = {row.index(kind) for row in rows for kind in ("session_c", "message_a", "leaf_s") if kind in row}
    assert places == {head.index("TYPE")}


def test_reader_that_goes_away(make_store: Callable[[Fill], str]) -> None:
    """When the reader of the pipe goes away it ends at once and quietly, though no event comes any more."""

    async def fill(manager: SessionManager) -> None:
        await manager.get_session("s").append_messages(said("one"))

    with tailing("--all", "--from", "start", "--store", make_store(fill)) as (child, out, err):
        assert out.readline()
        out.close()
        assert child.wait(timeout=60) == 0
        assert err.read() == ""
