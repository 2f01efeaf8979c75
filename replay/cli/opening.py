"""Where the store is, and opening it: to read what is there, or to write, which alone may create it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from replay.cli.failures import NOT_FOUND, SCHEMA, UNAVAILABLE, USAGE, Failure
from replay.cli.location import Location, location_of
from replay.cli.program import EXAMPLE_URL, command_line

if TYPE_CHECKING:
    from eventstore.database import Database
    from eventstore.errors import SchemaVersionError
    from eventstore.ports import Projection
    from replay.cli.options import Run
    from sessions.store import Store

ANOTHER_FILE: Final = f"name another file with --store, as {EXAMPLE_URL}"


def locate(run: Run) -> Location:
    """The store that a command is for; raises typed errors for a URL that is none, or not of a file."""
    return location_of(run.url)


@contextlib.asynccontextmanager
async def reading(run: Run, *, refill: bool = False) -> AsyncIterator[Store]:
    """The store, which must be there; no table and no file is made for it.

    With `refill`, projections that this version would fill otherwise are made again on the way.
    """
    from eventstore.errors import SchemaVersionError
    from sessions.store import open_store

    location = locate(run)
    if not _size(location.path):
        raise await _nothing(run, location)
    try:
        store = await open_store(location.url, create_tables=False)
    except SchemaVersionError as error:
        if error.found is None:
            raise await _nothing(run, location) from error
        if not refill:
            raise _outdated(run, location, error) from error
        store = await open_store(location.url)
    async with store:
        yield store


@contextlib.asynccontextmanager
async def looking(run: Run) -> AsyncIterator[Database]:
    """The database of a store, of whatever version its tables are; nothing of it is changed by this."""
    from eventstore.database import Database
    from eventstore.dialect import dialect_of
    from eventstore.migrations import schema_version

    location = locate(run)
    if not _size(location.path):
        raise await _nothing(run, location)
    database = await Database.open(dialect_of(location.url))
    try:
        if not await database.read_on_writer(schema_version):
            raise await _nothing(run, location)
        yield database
    finally:
        await database.close()


async def known_projections() -> Sequence[Projection]:
    """The projections that a store of this version has."""
    from sessions.store import open_store

    # It is put together where a store is opened, and nowhere else.
    async with open_store("sqlite://") as store:
        return store.log.projections


@contextlib.asynccontextmanager
async def writing(run: Run) -> AsyncIterator[Store]:
    """The store, which is made when it is not there; so is the folder of the default one.

    Raises Failure for a database of another program, of which nothing is touched.
    """
    from sessions.store import open_store

    location = locate(run)
    if run.url is None:
        try:
            location.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unreachable(location.path.parent, error) from error
    elif not location.path.parent.is_dir():
        raise Failure(f"there is no folder {location.path.parent} for the store", exit_code=NOT_FOUND)
    if _size(location.path) and await _is_foreign(location):
        raise Failure(_foreign(location), ANOTHER_FILE)
    async with open_store(location.url) as store:
        yield store


def _size(path: Path) -> int:
    """The size of a file; 0 when there is none."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError as error:
        raise _unreachable(path, error) from error


def _unreachable(path: Path, error: OSError) -> Failure:
    return Failure(f"{path}: {error.strerror}", ANOTHER_FILE, exit_code=UNAVAILABLE)


async def _is_foreign(location: Location) -> bool:
    """Whether a database has tables, and none of a store among them; it is opened for reading alone."""
    from eventstore.errors import SchemaVersionError
    from sessions.store import open_store

    try:
        await (await open_store(location.url, create_tables=False)).close()
    except SchemaVersionError as error:
        return error.found is None and await _has_tables(location)
    return False


async def _has_tables(location: Location) -> bool:
    """Whether there is any table; a store that is being made by another process has none yet."""
    from sqlalchemy import inspect
    from sqlalchemy.ext.asyncio import create_async_engine

    from eventstore.dialect import dialect_of

    engine = create_async_engine(dialect_of(location.url).url)
    try:
        async with engine.connect() as connection:
            return bool(await connection.run_sync(lambda plain: inspect(plain).get_table_names()))
    finally:
        await engine.dispose()


def _foreign(location: Location) -> str:
    return f"{location} is another program's database"


async def _nothing(run: Run, location: Location) -> Failure:
    if _size(location.path) and await _has_tables(location):
        return Failure(f"{_foreign(location)} and holds no store", ANOTHER_FILE, exit_code=NOT_FOUND)
    message = f"{location} holds no store" if location.path.exists() else f"there is no store at {location}"
    demo = command_line("demo", store=None)
    hint = f"`{run.hint('import', 'auto', 'PATH')}` makes one, `{demo}` shows one"
    return Failure(message, hint, exit_code=NOT_FOUND)


def _outdated(run: Run, location: Location, error: SchemaVersionError) -> Exception:
    """What to say of a store that this version cannot read as it is."""
    if "newer" in error.advice:
        return error
    told = f"{location} has to be filled again from its log"
    if error.found != error.supported:
        told = f"{location} has the tables of schema version {error.found}, this version needs {error.supported}"
    return Failure(told, f"`{run.hint('migrate')}` brings it up to date", exit_code=SCHEMA)


async def find_session(run: Run, store: Store, name: str, *, advice: str | None = None) -> str:
    """The id of the session that a person means: by its id, a beginning that no other id has, or `@`, the last one.

    It is remembered as the session used last. `advice` is the hint when there is none, else how to list all.
    """
    if not name:
        # It is the beginning of every id, and an unset variable of a shell rather than a wish.
        raise Failure("the name of a SESSION is empty", f"`{run.hint('ls')}` lists them", exit_code=USAGE)
    from projections.overview import match_ids
    from replay.cli.lastused import LastUsed

    last_used = LastUsed(locate(run).path)
    wanted = last_used.read() if name == "@" else name
    if wanted is None:
        raise Failure(
            "this command has used no session of this store before, so that @ means none",
            f"`{run.hint('ls')}` lists them",
            exit_code=NOT_FOUND,
        )
    found = await store.log.read(lambda tx: match_ids(tx, wanted, limit=4))
    if not found:
        hint = advice or f"`{run.hint('ls')}` lists them"
        raise Failure(f"there is no session {wanted!r}", hint, exit_code=NOT_FOUND)
    if len(found) > 1:
        raise Failure(
            f"{wanted!r} is the beginning of more than one id: {', '.join(found[:3])}{' …' if found[3:] else ''}",
            f"give more of the id: `{run.hint('ls', '-q', wanted)}` lists those that have this in them",
            exit_code=USAGE,
        )
    last_used.write(found[0])
    return found[0]
