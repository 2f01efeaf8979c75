"""The facts: one frozen Struct per event type, declared here once; codec and catalogue derive from `AnyEvent`."""

from __future__ import annotations

import datetime as dt
from functools import cached_property
from typing import Any, ClassVar, get_args

import msgspec

from eventstore.decoding import decode_json


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The base of all facts; a subclass's tag is its type and `schema` the version of its shape."""

    schema: ClassVar[int] = 1

    @property
    def type(self) -> str:
        """The event's type, as it is stored."""
        return str(type(self).__struct_config__.tag)


class SessionCreated(Event, frozen=True, tag="session_created"):
    """A session was created under a name.

    `source` says where it came from; of one that came from elsewhere `created_at` is its own time, and `metadata` what
    the source says about it beyond these fields.
    """

    name: str
    parent_session_id: str | None = None
    model: str | None = None
    source: str | None = None
    created_at: dt.datetime | None = None
    metadata: dict[str, Any] | None = None


class SessionRenamed(Event, frozen=True, tag="session_renamed"):
    """A session got another name."""

    name: str


class SessionForked(Event, frozen=True, tag="session_forked"):
    """A session began as a copy of another one's path to a message, as it was at a version of that one."""

    session_id: str
    version: int
    message_id: str


class SessionEnded(Event, frozen=True, tag="session_ended"):
    """A conversation goes on elsewhere, or nowhere; the session still takes messages."""

    reason: str


class SessionDeleted(Event, frozen=True, tag="session_deleted"):
    """A session was deleted: all that was derived of it is gone, and nothing is written under its id again."""


class UsageAdded(Event, frozen=True, tag="usage_added"):
    """Tokens were used, and what they cost, in the caller's currency."""

    input_tokens: int
    output_tokens: int
    cost: float
    model: str | None = None


class _WithMessage(Event, frozen=True, dict=True):
    """A fact that holds a whole message: `raw` is its JSON as it came in."""

    raw: msgspec.Raw = msgspec.field(name="message")

    @cached_property
    def message(self) -> dict[str, Any]:
        """The message as a dict, decoded once; not to be changed."""
        decoded: dict[str, Any] = decode_json(self.raw)
        return decoded


class MessageAppended(_WithMessage, frozen=True, dict=True, tag="message_appended"):
    """A message was appended under a parent, or as a root when there is none.

    `created_at` is an own time that the message's JSON does not hold.
    """

    parent_id: str | None = None
    created_at: dt.datetime | None = None


class MessageUpdated(_WithMessage, frozen=True, dict=True, tag="message_updated"):
    """A message's content was replaced, its place in the tree kept."""


class MessagesDeleted(Event, frozen=True, tag="messages_deleted"):
    """Messages were deleted; what hung below them hangs on their nearest surviving ancestors since."""

    message_ids: list[str]


class MessagesCleared(Event, frozen=True, tag="messages_cleared"):
    """All messages of the session and their compactions went; every message id is free again."""


class LeafSelected(Event, frozen=True, tag="leaf_selected"):
    """A person chose the branch that ends with this message."""

    message_id: str


class CompactionAdded(Event, frozen=True, tag="compaction_added"):
    """A summary stands for a stretch of one path, both ends included, wherever that path is read."""

    id: str
    summary: str
    from_message_id: str
    to_message_id: str


class ContextBlockSet(Event, frozen=True, tag="context_block_set"):
    """A block of context got this content, all of it.

    In a session's stream it is a block of that session; in that of a shared context its label is the context's key.
    """

    label: str
    content: str


class ContextBlockRemoved(Event, frozen=True, tag="context_block_removed"):
    """The content of a block of context went; it is as if it had never been set."""

    label: str


class ContextEntrySet(Event, frozen=True, tag="context_entry_set"):
    """An entry of a search block was written, new or in the place of the one with its key."""

    key: str
    content: str


class ContextEntryRemoved(Event, frozen=True, tag="context_entry_removed"):
    """An entry of a search block went."""

    key: str


class PromptFrozen(Event, frozen=True, tag="prompt_frozen"):
    """The system prompt was rendered and is this text until it is rendered again; it may be empty."""

    prompt: str


class SkillLoaded(Event, frozen=True, tag="skill_loaded"):
    """The body of a skill was given to the model, though no message holds it yet."""

    label: str
    key: str


class SkillUnloaded(Event, frozen=True, tag="skill_unloaded"):
    """A skill is done with: a marker is shown instead of its body, wherever a message held it."""

    label: str
    key: str


AnyEvent = (
    SessionCreated
    | SessionRenamed
    | SessionForked
    | SessionEnded
    | SessionDeleted
    | UsageAdded
    | MessageAppended
    | MessageUpdated
    | MessagesDeleted
    | MessagesCleared
    | LeafSelected
    | CompactionAdded
    | ContextBlockSet
    | ContextBlockRemoved
    | ContextEntrySet
    | ContextEntryRemoved
    | PromptFrozen
    | SkillLoaded
    | SkillUnloaded
)

EVENT_TYPES: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}
