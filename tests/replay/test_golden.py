"""Logs that releases have written: each must verify, replay and read as it did then."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from eventstore.events import EVENT_TYPES
from replay import rebuild, verify
from sessions import SessionManager, open_store
from tests.fixtures.golden.write_log import (
    clock,
    lines_of,
    tell_of_changes,
    tell_of_sessions,
    tell_the_story,
    what_sessions_read,
)
from tests.replay.golden import FOLDER, RELEASES, golden_lines, golden_rows, load


def expectation(release: str) -> dict[str, Any]:
    """Return what sessions read from a release's log when it was written."""
    told: dict[str, Any] = json.loads((FOLDER / f"log-{release}.expected.json").read_text(encoding="utf-8"))
    return told


def as_told(read: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Return what sessions read without what they were not asked for when the expectation was written."""
    sessions = {
        name: {key: value for key, value in session.items() if key in told["sessions"][name]}
        for name, session in read["sessions"].items()
    }
    return {**read, "sessions": sessions, "search": {query: read["search"][query] for query in told["search"]}}


def test_there_is_a_golden_log() -> None:
    """The first release has a golden log, and every golden log has an expectation."""
    assert "0.1.0" in RELEASES
    assert all(expectation(release)["sessions"] for release in RELEASES)


@pytest.mark.parametrize("release", RELEASES)
async def test_golden_log_reads_as_it_did(tmp_path: Path, release: str) -> None:
    """A log loaded row by row fills the projections when it is opened, verifies, and reads as it did then."""
    url, told = await load(tmp_path, release), expectation(release)
    async with open_store(url) as store:
        assert as_told(await what_sessions_read(store), told) == told
        report = await verify(store)
        assert (report.ok, report.problems, report.erased) == (True, [], 0)
        assert report.events == len(golden_rows(release))
        assert await rebuild(store) == report.events
        assert as_told(await what_sessions_read(store), told) == told
        lines = await lines_of(store)
    assert [json.loads(line) for line in lines] == golden_lines(release)


@pytest.mark.parametrize("release", RELEASES)
async def test_golden_log_can_be_written_on(tmp_path: Path, release: str) -> None:
    """Sessions go on in a log that an earlier release wrote, and the whole of it verifies."""
    url = await load(tmp_path, release)
    async with open_store(url) as store:
        manager = SessionManager(store)
        for info in await manager.list():
            session = manager.get_session(info.id)
            before = await session.get_history()
            result = await session.append_message({"id": "new", "role": "user", "parts": []})
            assert [message.id for message in await session.get_history()] == [*(m.id for m in before), "new"]
            assert result.version == expectation(release)["sessions"][info.id]["version"] + 1
        assert (await verify(store)).ok


@pytest.mark.parametrize("release", RELEASES)
def test_golden_chain_by_hand(release: str) -> None:
    """A golden log's digests and hashes follow from sha256 alone."""
    previous: dict[str, bytes] = {}
    for row in golden_rows(release):
        assert row["payload_digest"] == hashlib.sha256(row["salt"] + row["payload"].encode()).digest()
        texts = [row[name].encode() for name in ("stream_id", "event_id", "type")]
        stream, event, kind = (struct.pack(">I", len(text)) + text for text in texts)
        header = (
            stream
            + struct.pack(">Q", row["version"])
            + event
            + kind
            + struct.pack(">Qq", row["schema"], row["recorded_at"])
        )
        chained = previous.get(row["stream_id"], bytes(32)) + header + row["payload_digest"]
        assert row["hash"] == hashlib.sha256(chained).digest()
        previous[row["stream_id"]] = row["hash"]


EVENTS: dict[str, dict[str, set[str]]] = {
    "0.1.0": {
        "session_created": {"type", "name", "parent_session_id", "model", "source"},
        "message_appended": {"type", "message", "parent_id", "created_at"},
        "leaf_selected": {"type", "message_id"},
    },
    "0.2.0": {
        "session_created": {"type", "name", "parent_session_id", "model", "source", "created_at", "metadata"},
        "session_renamed": {"type", "name"},
        "session_forked": {"type", "session_id", "version", "message_id"},
        "session_ended": {"type", "reason"},
        "session_deleted": {"type"},
        "usage_added": {"type", "input_tokens", "output_tokens", "cost", "model"},
        "message_appended": {"type", "message", "parent_id", "created_at"},
        "message_updated": {"type", "message"},
        "messages_deleted": {"type", "message_ids"},
        "messages_cleared": {"type"},
        "leaf_selected": {"type", "message_id"},
        "compaction_added": {"type", "id", "summary", "from_message_id", "to_message_id"},
    },
}
"""The event types of each release, with the fields that their payloads had."""


@pytest.mark.parametrize("release", RELEASES)
def test_golden_log_is_complete(release: str) -> None:
    """A golden log has every event type of its release, each with all its fields."""
    seen: dict[str, set[str]] = {}
    for row in golden_rows(release):
        seen.setdefault(row["type"], set()).update(json.loads(row["payload"])["event"])
    assert seen == EVENTS[release]
    assert seen.keys() <= EVENT_TYPES.keys()


async def test_script_tells_what_it_told() -> None:
    """The script that wrote the newest golden log still writes the same events at the same times."""
    async with open_store("sqlite://", clock=clock()) as store:
        await tell_the_story(store)
        await tell_of_changes(store)
        await tell_of_sessions(store)
        lines = [json.loads(line) for line in await lines_of(store)]
    kept = ("stream_id", "version", "type", "schema", "recorded_at", "payload")
    written = [{name: line[name] for name in kept} for line in lines]
    assert written == [{name: row[name] for name in kept} for row in golden_rows(RELEASES[-1])]
