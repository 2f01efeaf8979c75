from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import replay
from tests.cli.running import eventstore


def damage(url: str, *statements: str) -> None:
    """Change a store behind its back; what keeps the log from being changed is taken away first."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        [(guard,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'events_no_update'")
        connection.execute("DROP TRIGGER events_no_update")
        for statement in statements:
            connection.execute(statement)
        connection.execute(guard)
    connection.close()


def test_whole_store(url: str) -> None:
    """A store that is as the log promises is reported with the number of its events, whole or for one session."""
    whole = eventstore("verify", "--store", url)
    assert (whole.code, whole.value) == (0, {"ok": True, "events": 11, "erased": 0, "problems": []})
    assert eventstore("verify", "--all", "--store", url) == whole
    assert eventstore("verify", "walk", "--store", url).value["events"] == 7
    assert eventstore("verify", "--store", url, "--table").lines == [
        "ok: 11 events; hash chain, versions and projections are whole"
    ]


def test_changed_payload(url: str) -> None:
    """A changed event is named by position and reason, and the exit code is 5."""
    damage(url, "UPDATE events SET payload = replace(payload, 'Ten', 'Two') WHERE position = 9")
    ran = eventstore("verify", "walk", "--store", url)
    assert (ran.code, ran.value["ok"]) == (5, False)
    problem = ran.value["problems"][0]
    assert (problem["kind"], problem["stream_id"], problem["version"], problem["position"]) == ("payload", "walk", 5, 9)
    table = eventstore("verify", "walk", "--store", url, "--table")
    assert table.code == 5
    assert table.lines[0].split() == ["KIND", "POS", "SESSION", "VER", "WHAT"]
    assert table.lines[1].split()[:4] == ["payload", "9", "walk", "5"]
    assert table.err.startswith("error: the store is not what the log promises")


def test_rebuild_mends_projections(url: str) -> None:
    """Projections that differ from the log are an integrity failure whose hint is a rebuild, and that mends them."""
    damage(url, "UPDATE assistant_messages SET role = 'user' WHERE id = 'm4'")
    ran = eventstore("verify", "--store", url)
    assert ran.code == 5
    assert f"eventstore rebuild --store {url}" in ran.err
    rebuilt = eventstore("rebuild", "--store", url).value
    assert rebuilt["events"] == 11
    assert {"message_tree", "search_index", "directory"} <= set(rebuilt["projections"])
    assert eventstore("verify", "--store", url).code == 0


def test_rebuild_of_some(url: str) -> None:
    """Named projections alone are rebuilt, and an unknown name is a usage error that lists the known ones."""
    assert eventstore("rebuild", "directory", "--store", url).value["projections"] == ["directory"]
    assert eventstore("rebuild", "directory", "--store", url, "--table").out.startswith(
        "rebuilt directory from 11 events"
    )
    ran = eventstore("rebuild", "nothing", "--store", url)
    assert ran.code == 2
    assert "message_tree" in ran.err


def test_interrupted_rebuild_stops(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption stops a rebuild in the thread where it works, and the exit code is 130."""
    stopped: list[str] = []

    def work(progress: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            while True:
                progress(1, 2)
        except Exception as error:
            stopped.append(type(error).__name__)
            raise

    async def endless(_store: object, _names: object, *, progress: Any) -> None:
        await asyncio.to_thread(work, progress)

    monkeypatch.setattr(replay, "rebuild", endless)
    ran = eventstore("rebuild", "--store", url)
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")
    assert stopped == ["_StoppedError"]


def test_path(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`path` prints the file of the store that --store, else the environment, else nobody names, there or not."""
    assert eventstore("path").out == f"{tmp_path / 'data' / 'eventstore' / 'store.db'}\n"
    monkeypatch.setenv("EVENTSTORE_URL", "sqlite:////srv/chats.db")
    assert eventstore("path").out == "/srv/chats.db\n"
    assert eventstore("path", "--store", url).out == f"{tmp_path / 'store.db'}\n"
    assert eventstore("--store", url, "path", "--json").value == {
        "url": url,
        "path": str(tmp_path / "store.db"),
        "exists": True,
    }
    assert list((tmp_path / "data").glob("*")) == []
