"""A message as it is handed out, and the door that messages come in by."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from eventstore.decoding import decode_json
from eventstore.errors import InvalidArgumentError, InvalidMessageError, LimitExceededError, ReservedIdError
from eventstore.ids import new_id
from eventstore.limits import Limits, check_id, clean_text, encode_json
from eventstore.same import same_json
from projections.message import COMPACTION_PREFIX, message_text, own_time, wire_time

# How large a message may be is the store's affair.
_ANY_SIZE = Limits(message_bytes=sys.maxsize)
# What people call the values of JSON; the order matters, since a boolean is an int.
_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (str, "a string"),
    ((list, tuple), "a list"),
    (dict, "an object"),
    (bool, "a boolean"),
    ((int, float), "a number"),
    (type(None), "null"),
)


class _MessageType(msgspec.StructMeta):
    """Lets a message be built with any keys, while the decoder makes the frozen Struct straight from JSON."""

    def __call__(
        cls,  # noqa: N805 - the class, in a metaclass
        *,
        role: str,
        parts: list[dict[str, Any]],
        id: str | None = None,
        created_at: dt.datetime | None = None,
        metadata: dict[str, Any] | None = None,
        **other: Any,
    ) -> Message:
        data: dict[str, Any] = {"id": new_id() if id is None else id, "role": role, "parts": parts}
        for name in ("id", "role"):
            _check_text(data, name)
        _check_parts(data, sys.maxsize)
        if created_at is not None:
            data["createdAt"] = _wire_time(created_at)
        if metadata is not None:
            data["metadata"] = metadata
        json = encode_json({**data, **other}, _ANY_SIZE)
        return Message.stored(json, own_time(decode_json(json)))


class Message(msgspec.Struct, frozen=True, eq=False, metaclass=_MessageType):
    """A message: id, role, parts, and every other key it was given, kept verbatim.

    Parts are not to be changed in place; `to_dict` gives a copy that may be. Built without an id it gets a new one;
    raises InvalidMessageError for what has not the shape of a message or what JSON cannot hold.
    """

    id: str
    role: str
    parts: list[dict[str, Any]]
    # JSON and time, set behind the decoder's back: a name on the wire that a decoded message overwrites at once.
    _stored: Any = msgspec.field(name=" stored", default=("", None))

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            role: str,
            parts: list[dict[str, Any]],
            id: str | None = None,
            created_at: dt.datetime | None = None,
            metadata: dict[str, Any] | None = None,
            **other: Any,
        ) -> None: ...

    @classmethod
    def stored(cls, json: bytes | str, created_at: dt.datetime | str | None) -> Message:
        """A message from its JSON and its time, which may be the ISO-8601 text of its column."""
        try:
            message = _decoder.decode(json)
        except msgspec.DecodeError:
            message = msgspec.convert(decode_json(json), Message)
        msgspec.structs.force_setattr(message, "_stored", (json, created_at))
        return message

    @classmethod
    def all_stored(cls, rows: Iterable[tuple[bytes | str, dt.datetime | str | None]]) -> list[Message]:
        """The messages of (JSON, time) rows; one loop without calls, since reading a long history is all this."""
        decode, put = _decoder.decode, msgspec.structs.force_setattr
        messages: list[Message] = []
        for row in rows:
            try:
                message = decode(row[0])
            except msgspec.DecodeError:
                message = msgspec.convert(decode_json(row[0]), Message)
            put(message, "_stored", row)
            messages.append(message)
        return messages

    def with_json(self, json: bytes) -> Message:
        """The message with another JSON and the same time."""
        return Message.stored(json, self._stored[1])

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The metadata that it was given."""
        return self.to_dict().get("metadata")

    @property
    def created_at(self) -> dt.datetime | None:
        """The message's own time, else when it was recorded, in UTC; None while it is neither."""
        time: dt.datetime | str | None = self._stored[1]
        return dt.datetime.fromisoformat(time) if isinstance(time, str) else time

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return message_text({"parts": self.parts})

    def to_dict(self) -> dict[str, Any]:
        """A copy of the message as it goes over the wire, keys and values as given and in their order."""
        data: dict[str, Any] = decode_json(self._stored[0])
        return data

    def __eq__(self, other: object) -> bool:
        """Whether the other is a message with equal keys and values."""
        return same_json(self.to_dict(), other.to_dict()) if isinstance(other, Message) else NotImplemented

    def __ne__(self, other: object) -> bool:
        """The contrary; said outright, since the Struct's own compares identities."""
        return not self == other

    def __hash__(self) -> int:
        """Equal messages have equal ids."""
        return hash(self.id)

    def __repr__(self) -> str:
        """The id and the role; never the content, since this may go to logs."""
        return f"Message(id={self.id!r}, role={self.role!r}, parts={len(self.parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made of what is stored."""
        return Message.stored, self._stored


_decoder = msgspec.json.Decoder(Message)


class Accepted(msgspec.Struct, frozen=True):
    """A message that passed the door: its id and the JSON that is stored."""

    id: str
    json: bytes

    def recorded(self, recorded_at: dt.datetime) -> Message:
        """The message as it is handed out, with its own time or else that of its event."""
        has_time = b'"createdAt"' in self.json
        return Message.stored(self.json, (own_time(decode_json(self.json)) if has_time else None) or recorded_at)


def accept(message: Message | Mapping[str, Any], limits: Limits, *, may_be_reserved: bool = False) -> Accepted:
    """Check a message before anything is written; one without an id gets a new one.

    Raises InvalidMessageError or LimitExceededError with the path of what is wrong, and ReservedIdError.
    """
    data = message.to_dict() if isinstance(message, Message) else message
    if not isinstance(data, Mapping):
        raise InvalidMessageError("", f"must be a dict or a Message, not {type(message).__name__}")
    if "id" not in data:
        data = {"id": new_id(), **data}
    message_id = _name(data, "id", limits)
    if message_id.startswith(COMPACTION_PREFIX) and not may_be_reserved:
        raise ReservedIdError(message_id)
    check_shape(data, limits)
    return Accepted(message_id, encode_json(data if type(data) is dict else dict(data), limits))


def check_shape(message: Mapping[str, Any], limits: Limits) -> None:
    """Check that a message has a role and parts; the id and the values within may still be wrong.

    Raises InvalidMessageError with the path of what is missing or of another kind, or LimitExceededError.
    """
    _name(message, "role", limits)
    _check_parts(message, limits.parts)


def lookup_id(value: object, name: str) -> str:
    """An id by which something is looked up, as it is stored; raises InvalidArgumentError for what can be no id."""
    if not isinstance(value, str):
        raise InvalidArgumentError(name, f"must be a string, not {type(value).__name__}")
    text = clean_text(str.__str__(value))
    if "\0" in text:
        raise InvalidArgumentError(name, "must not hold NUL")
    return text


def checked_title(value: object, name: str, limits: Limits) -> str:
    """A name that people see, as it is stored; raises InvalidArgumentError or LimitExceededError."""
    if not isinstance(value, str):
        raise InvalidArgumentError(name, f"must be a string, not {type(value).__name__}")
    title = clean_text(str.__str__(value))
    if len(title.encode()) > limits.title_bytes:
        raise LimitExceededError("title_bytes", limits.title_bytes, name)
    return title


def _wire_time(time: object) -> str:
    if not isinstance(time, dt.datetime) or time.tzinfo is None:
        raise InvalidArgumentError("created_at", "must be an aware time")
    try:
        return wire_time(time)
    except OverflowError:
        raise InvalidArgumentError("created_at", "lies beyond the years 1 to 9999 in UTC") from None


def _check_text(holder: Mapping[str, Any], name: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        raise _wrong(holder, name, "a string")
    return value


def _name(message: Mapping[str, Any], path: str, limits: Limits) -> str:
    try:
        name = check_id(_check_text(message, path), path, limits)
    except InvalidArgumentError as error:
        raise InvalidMessageError(path, error.reason) from None
    if not name:
        raise InvalidMessageError(path, "must not be empty")
    return name


def _check_parts(message: Mapping[str, Any], most: int) -> None:
    parts = message.get("parts")
    if not isinstance(parts, (list, tuple)):
        raise _wrong(message, "parts", "a list")
    if len(parts) > most:
        raise LimitExceededError("parts", most, "parts")
    for index, part in enumerate(parts):
        if not isinstance(part, dict):
            raise InvalidMessageError(f"parts[{index}]", f"must be an object, not {_kind(part)}")
        if not isinstance(part.get("type"), str):
            raise _wrong(part, "type", "a string", f"parts[{index}].")


def _wrong(holder: Mapping[str, Any], name: str, wanted: str, path: str = "") -> InvalidMessageError:
    """What to raise for a member that is not what is wanted, or not there."""
    reason = f"must be {wanted}, not {_kind(holder[name])}" if name in holder else "is missing"
    return InvalidMessageError(path + name, reason)


def _kind(value: object) -> str:
    return next((word for kinds, word in _KINDS if isinstance(value, kinds)), type(value).__name__)
