"""Every error that the packages raise, each with its facts as attributes and a stable code."""

from __future__ import annotations

from typing import ClassVar

LONGEST_TOLD = 200
"""Of a name that is longer an error tells the beginning; the attribute has all of it."""


def told(name: object) -> str:
    """A name as an error tells it: in quotes, what cannot be printed as escapes, a long one cut."""
    return _cut(repr(name))


class EventStoreError(Exception):
    """The base of all errors of this project; `code` names the kind for programs."""

    code: ClassVar[str] = "event_store"


class VersionConflictError(EventStoreError):
    """The stream is not at the version that the writer expected; nothing was written."""

    code = "version_conflict"

    def __init__(self, stream_id: str, expected: object, actual: int) -> None:
        super().__init__(f"stream {told(stream_id)}: expected version {expected}, found {actual}")
        self.stream_id = stream_id
        self.expected = expected
        self.actual = actual


class DuplicateEventError(EventStoreError):
    """An event id is already used in the stream for another event, or twice in one append."""

    code = "duplicate_event"

    def __init__(self, stream_id: str, event_id: str) -> None:
        super().__init__(f"stream {told(stream_id)}: event id {told(event_id)} stands for another event")
        self.stream_id = stream_id
        self.event_id = event_id


class ParentNotFoundError(EventStoreError):
    """The parent named for a message is not a message of its session."""

    code = "parent_not_found"

    def __init__(self, session_id: str, parent_id: str) -> None:
        super().__init__(f"session {told(session_id)}: there is no message {told(parent_id)} to be a parent")
        self.session_id = session_id
        self.parent_id = parent_id


class MessageNotFoundError(EventStoreError):
    """The session has no message with this id."""

    code = "message_not_found"

    def __init__(self, session_id: str, message_id: str) -> None:
        super().__init__(f"session {told(session_id)}: there is no message {told(message_id)}")
        self.session_id = session_id
        self.message_id = message_id


class DuplicateMessageError(EventStoreError):
    """The message id is already used in the session for other content or under another parent."""

    code = "duplicate_message"

    def __init__(self, session_id: str, message_id: str) -> None:
        super().__init__(f"session {told(session_id)}: message id {told(message_id)} stands for another message")
        self.session_id = session_id
        self.message_id = message_id


class ReservedIdError(EventStoreError):
    """Message ids that start with `compaction_` belong to overlays and are refused."""

    code = "reserved_id"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"message id {told(message_id)} is reserved: ids that start with 'compaction_' belong to overlays"
        )
        self.message_id = message_id


class MessageDeletedError(EventStoreError):
    """The message with this id was deleted: its id is spent until the session's messages are cleared."""

    code = "message_deleted"

    def __init__(self, session_id: str, message_id: str) -> None:
        super().__init__(f"session {told(session_id)}: message {told(message_id)} was deleted, and its id is spent")
        self.session_id = session_id
        self.message_id = message_id


class InvalidCompactionError(EventStoreError):
    """A compaction was refused: its ends do not lie on one path in order, or its summary is blank."""

    code = "invalid_compaction"

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"session {told(session_id)}: {reason}")
        self.session_id = session_id
        self.reason = reason


class SessionExistsError(EventStoreError):
    """A session with this id exists already."""

    code = "session_exists"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {told(session_id)} exists already")
        self.session_id = session_id


class SessionDeletedError(EventStoreError):
    """The session was deleted, and nothing is written under its id again."""

    code = "session_deleted"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {told(session_id)} was deleted")
        self.session_id = session_id


class SessionNotFoundError(EventStoreError):
    """There is no session with this id."""

    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"there is no session {told(session_id)}")
        self.session_id = session_id


class BlockNotFoundError(EventStoreError):
    """The session has no block of context with this label."""

    code = "block_not_found"

    def __init__(self, label: str) -> None:
        super().__init__(f"there is no block {told(label)}")
        self.label = label


class BlockReadOnlyError(EventStoreError):
    """The provider of a block of context takes no content; nothing was written."""

    code = "block_read_only"

    def __init__(self, label: str) -> None:
        super().__init__(f"block {told(label)} is read-only")
        self.label = label


class BlockTooLargeError(EventStoreError):
    """A block of context would have more tokens than it may; its content stays as it was."""

    code = "block_too_large"

    def __init__(self, label: str, tokens: int, max_tokens: int) -> None:
        super().__init__(f"block {told(label)}: {tokens} tokens, more than its max_tokens={max_tokens}")
        self.label = label
        self.tokens = tokens
        self.max_tokens = max_tokens


class DuplicateBlockError(EventStoreError):
    """A session has a block of context with this label already."""

    code = "duplicate_block"

    def __init__(self, label: str) -> None:
        super().__init__(f"there is a block {told(label)} already")
        self.label = label


class SessionStartedError(EventStoreError):
    """A builder method was called after the session's first use."""

    code = "session_started"

    def __init__(self, method: str) -> None:
        super().__init__(f"{method}() must be called before the session is first used")
        self.method = method


class InvalidMessageError(EventStoreError):
    """A message has not the shape of a message, or holds a value that JSON cannot; `path` says where."""

    code = "invalid_message"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{_cut(path) or 'message'}: {reason}")
        self.path = path
        self.reason = reason


class LimitExceededError(EventStoreError):
    """A value is larger than a limit of the store; `limit` names it and `path` says where."""

    code = "limit_exceeded"

    def __init__(self, limit: str, maximum: int, path: str) -> None:
        super().__init__(f"{_cut(path) or 'value'}: larger than the limit {limit}={maximum}")
        self.limit = limit
        self.maximum = maximum
        self.path = path


class InvalidArgumentError(EventStoreError, ValueError):
    """An argument has a value that the call does not take."""

    code = "invalid_argument"

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(f"{argument}: {reason}")
        self.argument = argument
        self.reason = reason


class NotSupportedError(EventStoreError):
    """The call, option or engine cannot be had here."""

    code = "not_supported"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not supported here")
        self.what = what


class SchemaVersionError(EventStoreError):
    """The tables in the database are not those of this version of the code."""

    code = "schema_version"

    def __init__(self, found: int | None, supported: int, advice: str) -> None:
        super().__init__(f"schema version {found or 'none'} found, {supported} supported: {advice}")
        self.found = found
        self.supported = supported
        self.advice = advice


class UpcasterError(EventStoreError):
    """The registered upcasters do not lead, one step at a time, to the current schema of an event type."""

    code = "upcaster"

    def __init__(self, type: str, schema: int, reason: str) -> None:
        super().__init__(f"event type {told(type)}, schema {schema}: {reason}")
        self.type = type
        self.schema = schema
        self.reason = reason


class StoreClosedError(EventStoreError):
    """The store was closed."""

    code = "store_closed"

    def __init__(self) -> None:
        super().__init__("the store is closed")


class StoreUnavailableError(EventStoreError):
    """The database could not be reached, is locked by another process, or is full."""

    code = "store_unavailable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the database is not available: {reason}")
        self.reason = reason


class IntegrityError(EventStoreError):
    """Stored data breaks a promise of the log."""

    code = "integrity"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ProjectionError(EventStoreError):
    """A projection failed to apply events; the append that they came from was not written."""

    code = "projection"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"projection {told(name)}: {reason}")
        self.name = name
        self.reason = reason


class ImportProblemError(EventStoreError):
    """A strict import met something that it cannot read: in which file, at which line or entry, and why."""

    code = "import_problem"

    def __init__(self, file: str, reason: str, line: int | None = None, index: int | None = None) -> None:
        places = {"line": line, "entry": index}
        at = "".join(f", {name} {number}" for name, number in places.items() if number is not None)
        super().__init__(f"{file}{at}: {reason}")
        self.file = file
        self.reason = reason
        self.line = line
        self.index = index


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}…"
