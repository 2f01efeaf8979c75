"""Every way a command can fail, in one place: the line and the hint a person sees, and the exit code."""

from __future__ import annotations

import os
from typing import Any, Final, TextIO

FAILURE: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
CONFLICT: Final = 4
INTEGRITY: Final = 5
UNAVAILABLE: Final = 6
SCHEMA: Final = 8
INTERRUPTED: Final = 130

EXIT_CODES: Final = {
    "version_conflict": CONFLICT,
    "session_not_found": NOT_FOUND,
    "message_not_found": NOT_FOUND,
    "parent_not_found": NOT_FOUND,
    "integrity": INTEGRITY,
    "store_unavailable": UNAVAILABLE,
    "store_closed": UNAVAILABLE,
    "schema_version": SCHEMA,
    "invalid_argument": USAGE,
    "not_supported": USAGE,
}
"""The exit code for each error's stable code; all others are plain failures."""

HINTS: Final = {
    "session_not_found": "`eventstore ls` lists them",
    "store_unavailable": "see that the file can be written and no other program keeps it locked, then try again",
    "import_problem": "without --strict, what cannot be read is left out and reported",
}


class Failure(Exception):  # noqa: N818 - it is told to a person, not caught by a program
    """A command's end before its time: one line that says why, a hint, and the exit code."""

    def __init__(self, message: str, hint: str | None = None, *, exit_code: int = FAILURE) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code

    def tell(self, file: TextIO) -> None:
        """Print the line, and the hint below it."""
        print(f"error: {' '.join(str(self).split())}", file=file)
        if self.hint:
            print(f"hint: {self.hint}", file=file)


def explain(error: Exception) -> Failure:
    """The failure that an exception stands for; one that nobody foresaw is named by its type."""
    code = getattr(error, "code", None)
    if isinstance(code, str):
        return Failure(str(error), HINTS.get(code), exit_code=EXIT_CODES.get(code, FAILURE))
    told = getattr(error, "format_message", None)
    if callable(told):
        return _of_usage(str(told()), getattr(error, "ctx", None))
    if isinstance(error, OSError):
        return _of_system(error)
    return Failure(f"{type(error).__name__}: {error}", "run it again with -v to see where this happened")


def _of_usage(message: str, context: Any) -> Failure:
    command = getattr(context, "command_path", "eventstore")
    return Failure(message, f"`{command} --help` says more", exit_code=USAGE)


def _of_system(error: OSError) -> Failure:
    reason = error.strerror or str(error)
    message = f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason
    return Failure(message, exit_code=NOT_FOUND if isinstance(error, FileNotFoundError) else FAILURE)
