"""What is wrong with a command line, in the words of this command, not of the libraries that found it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def usage_of(error: Exception) -> str:
    """What a usage error says; of a value that an option does not take also why, as a person would say it."""
    why = _why(error.__cause__)
    if why is not None and hasattr(error, "message"):
        error.message = why
    told: Any = error
    return str(told.format_message())


def _why(cause: BaseException | None) -> str | None:
    """Why a value was refused; None when this is known from the error itself."""
    problems = getattr(cause, "errors", None)
    if not callable(problems):
        return None
    first: Mapping[str, Any] = problems()[0]
    given, kind, limits = first["input"], first["type"], first.get("ctx", {})
    if kind == "value_error":
        return str(limits["error"])
    if kind == "greater_than_equal":
        return f"it must be {limits['ge']} or more, not {given}."
    if kind == "int_parsing":
        return f"{given!r} is no whole number."
    if kind == "int_parsing_size":
        return "it is too large a number."
    return str(first["msg"])
