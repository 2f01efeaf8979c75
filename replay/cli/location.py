"""Where a store is: its URL and its file, and the file of the one that is used when none is named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from replay.cli.failures import USAGE, Failure
from replay.cli.program import EXAMPLE_URL

PROGRAM: Final = "eventstore"
FILE: Final = "store.db"


@dataclasses.dataclass(frozen=True)
class Location:
    """Where a store is: its URL and its file."""

    url: str
    path: Path

    def __str__(self) -> str:
        return str(self.path)


def location_of(url: str | None) -> Location:
    """The store at a URL, None for the default one; raises typed errors for what is no URL, or not of a file."""
    from eventstore.dialect import dialect_of, file_url
    from eventstore.errors import InvalidArgumentError

    if url is None:
        path = default_file()
        return Location(file_url(path), path)
    try:
        dialect = dialect_of(url)
    except InvalidArgumentError as error:
        hint = f"a file's URL is {file_url(Path(url))}" if url.count(":") == 0 else None
        raise Failure(f"{url!r} is {error.reason}", hint, exit_code=USAGE) from error
    if dialect.in_memory:
        raise Failure(
            "a store in memory ends with the command that made it", f"name a file: {EXAMPLE_URL}", exit_code=USAGE
        )
    return Location(url, Path(str(dialect.url.database)).absolute())


def default_file() -> Path:
    """The file of the store that is used when none is named."""
    import platformdirs

    return platformdirs.user_data_path(PROGRAM, appauthor=False) / FILE
