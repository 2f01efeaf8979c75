"""The recorded event, and the salted digest and hash chain that make tampering evident.

The bytes that are hashed are specified, with a worked example, in docs/reference/hash-chain.md.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import struct
from typing import Any

import msgspec

from eventstore.events import Event

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
NO_HASH = bytes(32)
"""What stands in for the previous hash before the first event of a stream."""


_LENGTH = struct.Struct(">I")
_VERSION_LENGTH = struct.Struct(">QI")
_SCHEMA_TIME = struct.Struct(">Qq")


class UnreadableEvent(msgspec.Struct, frozen=True):
    """An event that this code does not understand, kept as it is stored; `reason` says why."""

    type: str
    payload: str
    reason: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded event with its place in its stream and in the log.

    `version` counts from 1 within the stream and `position` from 1 within the log. `stream_no` is the stream's number
    in this database alone; like the position it is not hashed.
    """

    event: Event | UnreadableEvent
    stream_id: str
    stream_no: int
    version: int
    position: int
    event_id: str
    type: str
    schema: int
    recorded_at: dt.datetime
    metadata: dict[str, Any]
    payload_digest: bytes
    hash: bytes


def as_utc(time: dt.datetime) -> dt.datetime:
    """The same moment in UTC; a time without a zone is taken as UTC, so that it means the same on every machine."""
    if time.tzinfo is dt.UTC:
        return time
    try:
        return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
    except OverflowError:
        # Within hours of the first or last year that there is.
        return time.replace(tzinfo=dt.UTC)


def to_micros(time: dt.datetime) -> int:
    """Microseconds since 1970-01-01T00:00Z."""
    return (time - EPOCH) // MICROSECOND


def from_micros(micros: int) -> dt.datetime:
    """The aware UTC time of so many microseconds since 1970-01-01T00:00Z."""
    return EPOCH + dt.timedelta(microseconds=micros)


def digest_of(salt: bytes, payload: bytes) -> bytes:
    """sha256(salt + payload): with a salt of its own, a digest that stays behind confirms no guess."""
    return hashlib.sha256(salt + payload).digest()


def header_of(stream_id: str, version: int, event_id: str, type: str, schema: int, recorded_at: int) -> bytes:
    """The hashed header: texts as UTF-8 behind their length in four bytes, numbers in eight bytes, all big-endian."""
    stream, event, kind = stream_id.encode(), event_id.encode(), type.encode()
    return b"".join(
        (
            _LENGTH.pack(len(stream)),
            stream,
            _VERSION_LENGTH.pack(version, len(event)),
            event,
            _LENGTH.pack(len(kind)),
            kind,
            _SCHEMA_TIME.pack(schema, recorded_at),
        )
    )


def chain_hash(previous: bytes, header: bytes, payload_digest: bytes) -> bytes:
    """sha256(previous hash + header + payload digest)."""
    return hashlib.sha256(previous + header + payload_digest).digest()
