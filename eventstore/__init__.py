"""Facts and the log: append-only streams of immutable events, with a hash chain, in a SQL database."""

from eventstore.envelope import Envelope, UnreadableEvent
from eventstore.errors import (
    DuplicateEventError,
    DuplicateMessageError,
    EventStoreError,
    ImportProblemError,
    IntegrityError,
    InvalidArgumentError,
    InvalidMessageError,
    LimitExceededError,
    MessageNotFoundError,
    NotSupportedError,
    ParentNotFoundError,
    ProjectionError,
    ReservedIdError,
    SchemaVersionError,
    SessionExistsError,
    SessionNotFoundError,
    SessionStartedError,
    StoreClosedError,
    StoreUnavailableError,
    UpcasterError,
    VersionConflictError,
)
from eventstore.events import AnyEvent, Event, LeafSelected, MessageAppended, SessionCreated
from eventstore.expected import ANY, NO_STREAM, STREAM_EXISTS
from eventstore.heads import Committed
from eventstore.limits import Limits
from eventstore.log import EventLog
from eventstore.publisher import InProcessPublisher
from eventstore.upcasters import register_upcaster

__all__ = [
    "ANY",
    "NO_STREAM",
    "STREAM_EXISTS",
    "AnyEvent",
    "Committed",
    "DuplicateEventError",
    "DuplicateMessageError",
    "Envelope",
    "Event",
    "EventLog",
    "EventStoreError",
    "ImportProblemError",
    "InProcessPublisher",
    "IntegrityError",
    "InvalidArgumentError",
    "InvalidMessageError",
    "LeafSelected",
    "LimitExceededError",
    "Limits",
    "MessageAppended",
    "MessageNotFoundError",
    "NotSupportedError",
    "ParentNotFoundError",
    "ProjectionError",
    "ReservedIdError",
    "SchemaVersionError",
    "SessionCreated",
    "SessionExistsError",
    "SessionNotFoundError",
    "SessionStartedError",
    "StoreClosedError",
    "StoreUnavailableError",
    "UnreadableEvent",
    "UpcasterError",
    "VersionConflictError",
    "register_upcaster",
]
