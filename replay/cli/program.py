"""The command lines that hints speak of, as the person can type them."""

from __future__ import annotations

NAME = "eventstore"
URL_VARIABLE = "EVENTSTORE_URL"
"""The environment variable that names the store."""
EXAMPLE_URL = "sqlite:///file.db"


def command_line(*words: str, store: str | None) -> str:
    """A command line with a store's URL, quoted for a shell."""
    import shlex

    chosen = [] if store is None else ["--store", store]
    return shlex.join([_program(), *words, *chosen])


def _program() -> str:
    """The command as the person can type it: in an environment that is not activated, its path."""
    import shutil
    import sys
    from pathlib import Path

    called = Path(sys.argv[0])
    if called.name != NAME or shutil.which(NAME):
        return NAME
    return str(called.relative_to(Path.cwd())) if called.is_relative_to(Path.cwd()) else str(called)
