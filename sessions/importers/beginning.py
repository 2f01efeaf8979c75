"""The event that an imported session begins with: what a source says of it, checked as what a caller says is."""

from __future__ import annotations

import datetime as dt
from typing import Any, Protocol

from eventstore.decoding import decode_json
from eventstore.events import SessionCreated
from eventstore.limits import encode_json
from sessions.arguments import checked_session_id, checked_time
from sessions.importers.naming import session_name
from sessions.message import checked_title
from sessions.store import Store


class About(Protocol):
    """What a source says of a conversation."""

    @property
    def format(self) -> str:
        """The name of the source's format."""

    @property
    def model(self) -> str | None:
        """The model that answered."""

    @property
    def created_at(self) -> dt.datetime | None:
        """When it began."""


def session_created(
    store: Store, about: About, title: str, *, parent_session_id: str | None, metadata: dict[str, Any] | None
) -> SessionCreated:
    """The event; raises what `SessionManager.create` raises, but a title that is too long is cut."""
    limits = store.limits
    parent = parent_session_id
    return SessionCreated(
        name=session_name(title, limits),
        parent_session_id=None if parent is None else checked_session_id(parent, store, "parent_session_id"),
        model=None if about.model is None else checked_title(about.model, "model", limits),
        source=about.format,
        created_at=None if about.created_at is None else checked_time(about.created_at, "created_at"),
        metadata=None if metadata is None else decode_json(encode_json(metadata, limits, "metadata")),
    )
