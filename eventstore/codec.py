"""Events to the stored JSON text and back: encode, store; decode, upcast."""

from __future__ import annotations

from typing import Any

import msgspec

from eventstore.decoding import decode_json
from eventstore.envelope import UnreadableEvent
from eventstore.errors import UpcasterError
from eventstore.events import EVENT_TYPES, Event
from eventstore.upcasters import UPCASTERS, Upcasters


class Attachment(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that were cut out of a payload: where they belong (JSON pointer), their sha256 in hex, their length."""

    pointer: str
    sha256: str
    length: int


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is hashed and stored of an event: the fact, the caller's metadata, and bytes kept elsewhere."""

    event: msgspec.Raw
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    attachments: list[Attachment] = []


_encoder = msgspec.json.Encoder()
_payloads = msgspec.json.Decoder(Payload)
_events = {name: msgspec.json.Decoder(kind) for name, kind in EVENT_TYPES.items()}
_current = {name: kind.schema for name, kind in EVENT_TYPES.items()}


def encode(event: Event, metadata: dict[str, Any]) -> bytes:
    """The payload of an event: compact UTF-8 JSON."""
    raw = msgspec.Raw(_encoder.encode(event))
    return _encoder.encode(Payload(raw, msgspec.Raw(_encoder.encode(metadata))) if metadata else Payload(raw))


def decode(
    type: str, schema: int, payload: str | None, *, upcasters: Upcasters = UPCASTERS
) -> tuple[Event | UnreadableEvent, dict[str, Any]]:
    """The event and its metadata; what this code cannot understand becomes an UnreadableEvent, never an exception."""
    if payload is None:
        return UnreadableEvent(type, "", "erased"), {}
    try:
        parts = _payloads.decode(payload)
        metadata = {} if parts.metadata is msgspec.UNSET else decode_json(parts.metadata)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return UnreadableEvent(type, payload, f"broken payload: {error}"), {}
    if not isinstance(metadata, dict):
        return UnreadableEvent(type, payload, "broken payload: metadata is no object"), {}
    decoder = _events.get(type)
    if decoder is None:
        return UnreadableEvent(type, payload, "unknown event type"), metadata
    try:
        raw = parts.event
        if schema != _current[type]:
            raw = msgspec.Raw(_encoder.encode(upcasters.lift(type, schema, decode_json(raw))))
        return decoder.decode(raw), metadata
    except (msgspec.DecodeError, UpcasterError, ValueError, RecursionError) as error:
        return UnreadableEvent(type, payload, str(error)), metadata
