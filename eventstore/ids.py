"""New identifiers: UUIDs of version 7, which rise with time and so keep indexes together."""

from __future__ import annotations

import uuid_utils


def new_id() -> str:
    """A new uuid7 as text."""
    return str(uuid_utils.uuid7())
