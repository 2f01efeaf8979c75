"""A block of context that is a text in the program."""

from __future__ import annotations

from eventstore.errors import InvalidArgumentError


class StaticContext:
    """A text that is always the same; it cannot be written."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidArgumentError("text", f"must be a string, not {type(text).__name__}")
        self._text = text

    def get(self) -> str:
        """The text."""
        return self._text
