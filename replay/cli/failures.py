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

FORMATS: Final = ("--json", "--ndjson", "--table")
PRINTS: Final = {"demo": "for people only", "export": "what --format says", "schema": "SQL"}
"""What the commands print that take no format."""

HINTS: Final = {
    # Of an older version's tables it is said elsewhere what brings them up to date.
    "schema_version": "use the version of this package that wrote the store, or a newer one",
    "import_problem": "without --strict, what cannot be read is left out and reported",
}


UNAVAILABLE_HINTS: Final = {
    "locked": "another program keeps it locked: wait until that is done, then try again",
    "disk is full": "make room on the disk, then run it again",
    "readonly": "see that you may write the file and its folder, or name another store with --store",
    "unable to open": "see that the file and its folder are there, and that you may read and write them",
    "not a database": "see that the path is right: this file is of another kind",
    "malformed": "the file is damaged: go back to a copy of it",
}
"""The hint for each reason, by words in what the driver says."""


class Failure(Exception):  # noqa: N818 - it is told to a person, not caught by a program
    """A command's end before its time: one line that says why, a hint, and the exit code."""

    def __init__(self, message: str, hint: str | None = None, *, exit_code: int = FAILURE) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code

    def tell(self, file: TextIO) -> None:
        """Print the line, and the hint below it."""
        from replay.cli.text import label

        # An interruption is no error: the person knows why.
        kind = "" if self.exit_code == INTERRUPTED else "error: "
        print(f"{kind}{label(' '.join(str(self).split()))}", file=file)
        if self.hint:
            print(f"hint: {self.hint}", file=file)


def explain(error: Exception) -> Failure:
    """The failure that an exception stands for; one that nobody foresaw is named by its type."""
    code = getattr(error, "code", None)
    if isinstance(code, str):
        return Failure(str(error), _hint(code, error), exit_code=EXIT_CODES.get(code, FAILURE))
    if callable(getattr(error, "format_message", None)):
        from replay.cli.wording import usage_of

        context = getattr(error, "ctx", None)
        if (option := getattr(error, "option_name", None)) in FORMATS and type(error).__name__ == "NoSuchOption":
            return _of_usage(_of_format(str(option), context), context)
        return _of_usage(usage_of(error), context)
    if isinstance(error, OSError):
        return _of_system(error)
    return Failure(f"{type(error).__name__}: {error}", "run it again with -v to see where this happened")


def _hint(code: str, error: Exception) -> str | None:
    if code == "store_unavailable":
        reason = str(error)
        return next((hint for words, hint in UNAVAILABLE_HINTS.items() if words in reason), None)
    return HINTS.get(code)


def _of_format(option: str, context: Any) -> str:
    if context.parent is None:
        return f"{option} stands after the command's name"
    return f"{context.info_name} prints {PRINTS[context.info_name]}, and takes no {option}"


def _of_usage(message: str, context: Any) -> Failure:
    from replay.cli.program import command_line

    command = getattr(context, "command_path", "").split()[1:]
    return Failure(message, f"`{command_line(*command, '--help', store=None)}` says more", exit_code=USAGE)


def _of_system(error: OSError) -> Failure:
    reason = error.strerror or str(error)
    message = f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason
    return Failure(message, exit_code=NOT_FOUND if isinstance(error, FileNotFoundError) else FAILURE)
