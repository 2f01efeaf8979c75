from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from eventstore.events import LeafSelected
from sessions import SessionManager, open_store
from tests.cli.running import eventstore


def event(url: str, name: str) -> dict[str, Any]:
    """Return an event as programs get it."""
    shown: dict[str, Any] = eventstore("event", name, "--store", url).value
    return shown


def told(related: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return how events are related, and their positions."""
    return [(one["relation"], one["position"]) for one in related]


def test_envelope_and_payload(url: str) -> None:
    """An event is shown with its whole envelope, the fact as it is stored, and its metadata."""
    shown = event(url, "6")
    (listed,) = eventstore("log", "--all", "--from", "6", "-n", "1", "-p", "--store", url).records
    assert {name: shown[name] for name in listed if name != "summary"} == {
        name: value for name, value in listed.items() if name != "summary"
    }
    assert (shown["schema"], shown["metadata"], shown["unreadable"]) == (1, {}, None)
    assert len(shown["hash"]) == len(shown["payload_digest"]) == 64
    assert shown["payload"] == {
        "type": "message_appended",
        "message": {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Where to?"}]},
    }


def test_by_id_and_its_beginning(url: str) -> None:
    """An event is found by its position, its id, or a beginning of the id that no other event has."""
    wanted = event(url, "6")
    others = [record["event_id"] for record in eventstore("log", "--all", "--store", url).records]
    others.remove(wanted["event_id"])
    beginning = next(
        wanted["event_id"][:length]
        for length in range(1, 37)
        if not any(other.startswith(wanted["event_id"][:length]) for other in others)
    )
    assert event(url, wanted["event_id"]) == event(url, beginning) == wanted
    ran = eventstore("event", "0", "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert eventstore("event", "", "--store", url).code == 2
    assert ran.err.startswith("error: '0' stands for more than one event: 1, 2, 3 …\nhint: `eventstore event 1 --store")


@pytest.mark.parametrize("name", ["99", "nothing", "%", "9" * 30, "-1"])
def test_no_such_event(url: str, name: str) -> None:
    """What is no event's position and no beginning of an id is exit code 3."""
    ran = eventstore("event", "--store", url, "--", name)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: there is no event {name!r}\nhint: `eventstore log --all --store")


def test_cause_and_effects_of_messages(changed: str) -> None:
    """Of a message's event the parent's and earlier events are its cause, and what was done to it later its effects."""
    assert told(event(changed, "3")["cause"]) == [("parent", 2)]
    assert told(event(changed, "3")["effects"]) == [("child", 4), ("updated", 7), ("compacted", 9)]
    assert told(event(changed, "4")["effects"]) == [("child", 5), ("deleted", 8)]
    assert told(event(changed, "7")["cause"]) == [("appended", 3)]
    assert told(event(changed, "7")["effects"]) == [("compacted", 9)]
    assert told(event(changed, "8")["cause"]) == [("appended", 4)]
    assert told(event(changed, "9")["cause"]) == [("appended", 2), ("appended", 3), ("updated", 7)]
    assert (event(changed, "1")["cause"], event(changed, "1")["effects"]) == ([], [])


def test_what_happened_to_another_message_of_the_same_id(changed: str) -> None:
    """After a clear the same id is another message, to which nothing before it belongs."""

    async def clear() -> None:
        async with open_store(changed) as store:
            session = SessionManager(store).get_session("s")
            await session.clear_messages()
            await session.append_message({"id": "m3", "role": "user", "parts": []})
            await session.delete_messages(["m3"])

    asyncio.run(clear())
    assert told(event(changed, "6")["effects"]) == [("cleared", 10)]
    assert told(event(changed, "4")["effects"]) == [("child", 5), ("deleted", 8)]
    assert told(event(changed, "11")["cause"]) == []
    assert told(event(changed, "12")["cause"]) == [("appended", 11)]


def test_what_a_fork_and_a_deletion_are_related_to(url: str) -> None:
    """The cause of a fork is where the other session was then, and a deleted session is the end of its messages."""

    async def change() -> None:
        async with open_store(url) as store:
            manager = SessionManager(store)
            await manager.fork("walk", "m2", "A fork")
            await manager.delete("walk")

    asyncio.run(change())
    log = eventstore("log", "--all", "--store", url).records
    (forked,) = [record for record in log if record["type"] == "session_forked"]
    assert told(event(url, str(forked["position"]))["cause"]) == [("origin", 11)]
    assert told(event(url, "9")["effects"]) == [("selected", 11), ("deleted", log[-1]["position"])]
    assert event(url, str(log[-1]["position"]))["patch"] == "@@ 5 messages removed @@"


def test_what_metadata_names(url: str) -> None:
    """The causation that metadata names is looked up in every session, and its own events are found from there."""
    cause = event(url, "4")

    async def choose() -> None:
        metadata = {"causation_id": cause["event_id"], "correlation_id": "order-7", "actor": "Ada"}
        async with open_store(url) as store:
            await store.log.append("walk-2", [LeafSelected(message_id="m1")], metadata=metadata)
            await store.log.append("walk", [LeafSelected(message_id="m1")], metadata=metadata)

    asyncio.run(choose())
    shown = event(url, "13")
    assert (shown["causation_id"], shown["correlation_id"]) == (cause["event_id"], "order-7")
    assert shown["metadata"]["actor"] == "Ada"
    assert told(shown["cause"])[0] == ("cause", 4)
    assert ("caused", 12) in told(event(url, "4")["effects"])


def test_compaction_that_became_stale(changed: str) -> None:
    """Of a compaction it is told whether a message in its range was updated since."""
    assert event(changed, "9")["stale"] is False
    assert event(changed, "3")["stale"] is None

    async def update() -> None:
        async with open_store(changed) as store:
            await SessionManager(store).get_session("s").update_message({"id": "m1", "role": "user", "parts": []})

    asyncio.run(update())
    assert event(changed, "9")["stale"] is True
    assert told(event(changed, "9")["effects"]) == [("updated", 10)]


def test_for_people(changed: str) -> None:
    """For people an event is its envelope, then payload, what it changed, cause and effects under heads."""
    lines = eventstore("event", "3", "--table", "--store", changed).lines
    assert lines[0].split() == ["position", "3"]
    heads = ["payload", "what it changed", "cause", "effects"]
    assert [line for line in lines if line in {*heads, "metadata"}] == heads
    assert lines[lines.index("effects") + 1].split() == ["POS", "RELATION", "TYPE", "SUMMARY"]
    assert lines[lines.index("what it changed") + 1] == "@@ message m2 (assistant) under m1 @@"
    assert lines[-1].split()[:3] == ["9", "compacted", "compaction_added"]


def test_erased_and_broken_payloads(url: str, tmp_path: Path) -> None:
    """An event that cannot be read is shown as it is stored, with the reason why it cannot."""
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as other, other:
        for (name,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            other.execute(f'DROP TRIGGER "{name}"')
        other.execute("UPDATE events SET payload = NULL, salt = NULL WHERE position = 6")
        other.execute("UPDATE events SET payload = 'torn' WHERE position = 7")
        other.execute("UPDATE events SET type = 'later_type' WHERE position = 8")
    erased, torn, unknown = (event(url, position) for position in ("6", "7", "8"))
    assert (erased["payload"], erased["unreadable"]) == (None, "erased")
    assert torn["payload"] == "torn"
    assert torn["unreadable"].startswith("broken payload")
    assert (unknown["payload"]["message"]["id"], unknown["unreadable"]) == ("m3", "unknown event type")
    assert eventstore("event", "6", "--table", "--store", url).code == 0
