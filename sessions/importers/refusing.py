"""What the store says to something that it cannot hold; whatever else is imported is imported all the same."""

from __future__ import annotations

from typing import Final

from eventstore.errors import (
    InvalidArgumentError,
    InvalidCompactionError,
    InvalidMessageError,
    LimitExceededError,
    ReservedIdError,
    SessionDeletedError,
)

REFUSALS: Final = (
    InvalidArgumentError,
    InvalidCompactionError,
    InvalidMessageError,
    LimitExceededError,
    ReservedIdError,
    SessionDeletedError,
)
