"""What a writer believes of a stream before its append."""

from __future__ import annotations

import enum

from eventstore.errors import InvalidArgumentError, VersionConflictError


class Expected(enum.Enum):
    """Beliefs that are not a number."""

    ANY = "any"
    NO_STREAM = "no stream"
    STREAM_EXISTS = "stream exists"

    def __str__(self) -> str:
        return self.value


ANY = Expected.ANY
NO_STREAM = Expected.NO_STREAM
STREAM_EXISTS = Expected.STREAM_EXISTS

ExpectedVersion = int | Expected


def check_argument(expected: ExpectedVersion) -> None:
    """Raise InvalidArgumentError for what can never be a version."""
    is_version = (
        isinstance(expected, int)
        and not isinstance(expected, bool)
        and expected >= 0
        and expected.bit_length() < 10_000
    )
    if not is_version and not isinstance(expected, Expected):
        raise InvalidArgumentError("expected", "must be a version from 0 on, ANY, NO_STREAM or STREAM_EXISTS")


def check(stream_id: str, expected: ExpectedVersion, actual: int) -> None:
    """Raise VersionConflictError when the stream is not as expected."""
    if expected is ANY:
        return
    if expected is NO_STREAM:
        holds = actual == 0
    elif expected is STREAM_EXISTS:
        holds = actual > 0
    else:
        holds = expected == actual
    if not holds:
        raise VersionConflictError(stream_id, expected, actual)
