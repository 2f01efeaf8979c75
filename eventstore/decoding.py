"""Stored JSON back to values."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode


def decode_json(text: str | bytes | msgspec.Raw) -> Any:
    """The value of a JSON text that was let in."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        # msgspec counts the sign of an integer as one of the digits it reads at the most.
        return json.loads(bytes(text) if isinstance(text, msgspec.Raw) else text)
