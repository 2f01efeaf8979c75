"""The digest and the hash of every event, worked out again with nothing but sha256 and the stored columns."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

from eventstore.envelope import NO_HASH, chain_hash, digest_of, header_of
from tests.eventstore.support import Tally, created, everything, file_at, message, note, notes, opened

COLUMNS = "stream_id, e.version, event_id, type, schema, e.recorded_at, salt, payload, payload_digest, e.hash"

# The worked example: a stream of two events, as anybody can check it with any language.
STREAM = "chat-1"
EXAMPLE: list[dict[str, Any]] = [
    {
        "event_id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "type": "session_created",
        "schema": 1,
        "recorded_at": 1_748_779_200_000_000,  # 2025-06-01T12:00:00.000000Z
        "salt": "000102030405060708090a0b0c0d0e0f",
        "payload": '{"event":{"type":"session_created","name":"Größe"}}',
        "digest": "0b4aefa2eea3af601d7c081cecb366b3785ab2d8c42c3ee8d3de433eba4530a2",
        "header": "00000006"
        "636861742d31"
        "0000000000000001"
        "00000024"
        "30313839306135642d616339362d373734622d626363652d623330323039396138303537"
        "0000000f"
        "73657373696f6e5f63726561746564"
        "0000000000000001"
        "000636816301b000",
        "hash": "4618f669fc8046c9c0e80f11291dc2a4d846458d818274d5a11976938a01a638",
    },
    {
        "event_id": "01890a5d-ac97-7000-8000-000000000001",
        "type": "leaf_selected",
        "schema": 1,
        "recorded_at": 1_748_779_200_000_001,
        "salt": "101112131415161718191a1b1c1d1e1f",
        "payload": '{"event":{"type":"leaf_selected","message_id":"m1"},"metadata":{"actor":"ann"}}',
        "digest": "0f8c6318234ca13fe2ba4ae6077f1f7c6325d4e2f8ec63016b6f4e93de50d8f0",
        "header": "00000006"
        "636861742d31"
        "0000000000000002"
        "00000024"
        "30313839306135642d616339372d373030302d383030302d303030303030303030303031"
        "0000000d"
        "6c6561665f73656c6563746564"
        "0000000000000001"
        "000636816301b001",
        "hash": "99a19df0dec7af8096955f4c57c1a6caf6f614c52ab5bcb5b6debddfecba3fa3",
    },
]


def text(value: str) -> bytes:
    """Return a text as the header holds it: its UTF-8 behind its length, four bytes, big-endian."""
    encoded = value.encode()
    return struct.pack(">I", len(encoded)) + encoded


def header(stream_id: str, version: int, event_id: str, kind: str, schema: int, recorded_at: int) -> bytes:
    """Return the header's bytes, worked out without the code under test."""
    return (
        text(stream_id)
        + struct.pack(">Q", version)
        + text(event_id)
        + text(kind)
        + struct.pack(">Q", schema)
        + struct.pack(">q", recorded_at)
    )


def sha256(*pieces: bytes) -> bytes:
    """Return the sha256 of the pieces, one behind the other."""
    return hashlib.sha256(b"".join(pieces)).digest()


def test_worked_example_by_hand() -> None:
    """The worked example follows from sha256 alone."""
    previous = bytes(32)
    for version, event in enumerate(EXAMPLE, start=1):
        digest = sha256(bytes.fromhex(event["salt"]), event["payload"].encode())
        assert digest.hex() == event["digest"]
        head = header(STREAM, version, event["event_id"], event["type"], event["schema"], event["recorded_at"])
        assert head.hex() == event["header"]
        previous = sha256(previous, head, digest)
        assert previous.hex() == event["hash"]


def test_worked_example_by_the_code() -> None:
    """The code gives the worked example's bytes, so the chain is what it was in every release."""
    previous = NO_HASH
    for version, event in enumerate(EXAMPLE, start=1):
        digest = digest_of(bytes.fromhex(event["salt"]), event["payload"].encode())
        assert digest.hex() == event["digest"]
        head = header_of(STREAM, version, event["event_id"], event["type"], event["schema"], event["recorded_at"])
        assert head.hex() == event["header"]
        previous = chain_hash(previous, head, digest)
        assert previous.hex() == event["hash"]


@pytest.mark.parametrize(
    "fields",
    [
        ("", 1, "", "", 1, 0),
        ("\U0001f600é", (1 << 63) - 1, "ключ", "t", (1 << 31) - 1, -1),
        ("s", 1, "e", "t", 1, -(1 << 63)),
        ("s" * 512, 1, "e" * 512, "t", 1, (1 << 63) - 1),
    ],
)
def test_header_of_unusual_fields(fields: tuple[str, int, str, str, int, int]) -> None:
    """Empty and long texts, any script, the largest numbers and times before 1970 have their bytes too."""
    assert header_of(*fields) == header(*fields)


def test_header_is_unambiguous() -> None:
    """Two events that differ in where a text ends have different headers."""
    assert header_of("ab", 1, "c", "t", 1, 0) != header_of("a", 1, "bc", "t", 1, 0)
    assert header_of("a", 1, "bc", "t", 1, 0) != header_of("a", 1, "b", "ct", 1, 0)


async def test_stored_chain_by_hand(tmp_path: Path) -> None:
    """Every stored digest and hash follows, stream by stream, from the stored columns and sha256 alone."""
    async with opened(file_at(tmp_path), Tally()) as log:
        await log.append(
            "s", [created("Größe \U0001f600"), message("m1", "\0 é"), note("m1")], metadata={"actor": "ann"}
        )
        await asyncio.gather(*(log.append(f"s{n % 3}", notes(n)) for n in range(40)))
        await log.append("s", [message("m2", parent="m1")], event_ids=["mine"])
        envelopes = {(e.stream_id, e.version): e for e in await everything(log)}
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        rows = connection.execute(f"SELECT {COLUMNS} FROM events e JOIN streams USING (stream_no) ORDER BY position")
        stored = rows.fetchall()
        heads = dict(connection.execute("SELECT stream_id, hash FROM streams").fetchall())
    assert len(stored) == 44
    last: dict[str, tuple[int, bytes]] = {}
    for stream_id, version, event_id, kind, schema, recorded_at, salt, payload, digest, chained in stored:
        last_version, previous = last.get(stream_id, (0, bytes(32)))
        assert version == last_version + 1
        assert len(salt) == 16
        assert digest == sha256(salt, payload.encode())
        assert chained == sha256(previous, header(stream_id, version, event_id, kind, schema, recorded_at), digest)
        last[stream_id] = (version, chained)
        envelope = envelopes[stream_id, version]
        assert (envelope.payload_digest, envelope.hash) == (digest, chained)
    assert heads == {stream_id: chained for stream_id, (_, chained) in last.items()}
    assert len({row[6] for row in stored}) == 44


async def test_equal_events_have_different_digests(tmp_path: Path) -> None:
    """Each event has a salt of its own, so that equal payloads cannot be told from their digests."""
    async with opened(file_at(tmp_path)) as log:
        events = (await log.append("s", notes(*["same"] * 200))).envelopes
        await asyncio.gather(*(log.append("t", notes("same")) for _ in range(100)))
        events += (await log.append("t", notes("same"))).envelopes
    async with opened(file_at(tmp_path)) as log:
        events += (await log.append("t", notes("same"))).envelopes
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        salts = [salt for (salt,) in connection.execute("SELECT salt FROM events")]
    assert len(salts) == len(set(salts)) == 302
    assert len({e.payload_digest for e in events}) == len(events)


async def test_position_is_not_hashed(tmp_path: Path) -> None:
    """The same events moved to other positions, as in another store, keep their hashes."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("other", notes("x", "y"))
        [envelope] = (await log.append("s", notes("a"))).envelopes
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        [(recorded_at,)] = connection.execute("SELECT recorded_at FROM events WHERE position = 3").fetchall()
    head = header("s", 1, envelope.event_id, "leaf_selected", 1, recorded_at)
    assert envelope.hash == sha256(bytes(32), head, envelope.payload_digest)
    assert envelope.position == 3


async def test_payload_is_stored_as_it_was_hashed(tmp_path: Path) -> None:
    """The payload is compact UTF-8 JSON: the event and, when there is any, the caller's metadata."""
    async with opened(file_at(tmp_path)) as log:
        await log.append("s", [created("Größe")])
        await log.append("s", [note("m1")], metadata={"actor": "ann"})
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        payloads = [payload for (payload,) in connection.execute("SELECT payload FROM events ORDER BY position")]
    assert payloads == [event["payload"] for event in EXAMPLE]
