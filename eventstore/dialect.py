"""Every difference between the database engines, and nothing that knows of messages: today SQLite alone.

Another engine is another class with the same members; no other file names one, so its lines stay together.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec
from sqlalchemy import URL, BigInteger, Float, Integer, Subquery, column, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, StaticPool

from eventstore import bm25
from eventstore.envelope import as_utc
from eventstore.errors import (
    EventStoreError,
    IntegrityError,
    InvalidArgumentError,
    NotSupportedError,
    StoreClosedError,
    StoreUnavailableError,
)
from eventstore.ports import Tx
from eventstore.statements import Row, Statement

Synchronous = Literal["full", "normal"]

BigKey = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit primary key; SQLite makes only INTEGER PRIMARY KEY the row's own number."""

REFUSALS = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
)
"""What a statement or the tables are to blame for, and not the state that the database is in."""

FILE_HEAD = b"SQLite format 3\0"
OLDEST = (3, 40)
BUSY_SECONDS = 60
READERS = 4
ASKED_EVERY = 500
"""Instructions of SQLite's machine, which are some microseconds, or some fifty rows, however large these are."""

# Checkpoints are made beside the writer. Only where they do not keep up are they made within its commits.
WRITER_SETTINGS = {"cache_size": -32 * 1024, "wal_autocheckpoint": 16_000}
NEAR_SETTINGS = {"cache_size": -16 * 1024}
# Other readers are for what is long, and may be several: they keep little.
READER_SETTINGS = {"cache_size": -4 * 1024}

_OF_FILE = ("journal_mode", "page_size", "page_count", "freelist_count", "encoding", "auto_vacuum")
LARGE_PAGES = 10_000
"""A file of fewer pages need not be made smaller."""


_NAMED = Statement(text("SELECT 1 FROM sqlite_master WHERE type = :type AND name = :name"), "type", "name")


class SQLiteDialect:
    """SQLite 3.40 or newer: a file in WAL mode, or one private connection in memory."""

    name = "sqlite"
    begin_write = "BEGIN IMMEDIATE"
    begin_read = "BEGIN"

    def __init__(self, url: URL, synchronous: Synchronous) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise NotSupportedError(f"SQLite {sqlite3.sqlite_version}, older than 3.40,")
        self.url = url
        self.in_memory = url.database in (None, "", ":memory:")
        self._synchronous = synchronous

    def create_engine(self, connect: Callable[..., Awaitable[Any]]) -> AsyncEngine:
        """The engine: every connection that it opens by `connect` gets the same settings."""
        pool: dict[str, Any] = {"poolclass": StaticPool}
        if not self.in_memory:
            # Beside the readers: one for short reads, one that writes, one that watches for other processes, one for
            # checkpoints, two for who uses the engine directly. No overflow: closing one on its return needs
            # SQLAlchemy's greenlet.
            pool = {
                "poolclass": AsyncAdaptedQueuePool,
                "pool_size": READERS + 6,
                "max_overflow": 0,
                "pool_timeout": None,
            }
        engine = create_async_engine(
            self.url,
            connect_args={
                "async_creator_fn": connect,
                "isolation_level": None,
                "timeout": BUSY_SECONDS,
                # Of short reads, on the event loop's thread; no two threads use a connection at once.
                "check_same_thread": False,
                "cached_statements": 512,
            },
            pool_reset_on_return=None,
            **pool,
        )
        event.listen(engine.sync_engine, "connect", self._configure)
        event.listen(engine.sync_engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return engine

    def _configure(self, connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for name, value in self.settings.items():
            cursor.execute(f"PRAGMA {name}={value}")
        cursor.close()

    @property
    def settings(self) -> dict[str, object]:
        """What every connection is set to, by the pragma's name."""
        return {
            "busy_timeout": BUSY_SECONDS * 1000,
            "foreign_keys": "ON",
            "synchronous": self._synchronous.upper(),
            "temp_store": "MEMORY",
            # Deleted content is overwritten where that costs no further write, whatever the library's default is.
            "secure_delete": "FAST",
            **READER_SETTINGS,
        }

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the engine, by its name, and of the driver."""
        return {self.name: sqlite3.sqlite_version, "aiosqlite": version("aiosqlite")}

    def state(self, tx: Tx) -> dict[str, object]:
        """What a connection and its file are set to, as the engine says it, and whether it has a full-text index."""
        named = (*self.settings, *WRITER_SETTINGS, *_OF_FILE)
        found: dict[str, object] = {
            name: tx.fetch(Statement(text(f"PRAGMA {name}")))[0][0] for name in dict.fromkeys(named)
        }
        return {**found, "fts5": ("fts5",) in tx.fetch(Statement(text("SELECT name FROM pragma_module_list")))}

    def flaws(self, state: dict[str, Any]) -> list[tuple[str, str]]:
        """What in a `state` is not as it should be, and what can be done about it."""
        found: list[tuple[str, str]] = []
        if state["journal_mode"] != "wal":
            found.append(("the file is not in WAL mode", "keep it on a local disk, where a writer can set that"))
        if not state["fts5"]:
            found.append(("this SQLite has no FTS5", "use a Python whose SQLite was built with it"))
        if state["freelist_count"] * 4 > state["page_count"] > LARGE_PAGES:
            found.append(("more than a quarter of the file is free pages", "VACUUM gives them back to the system"))
        return found

    def damage(self, tx: Tx) -> list[str]:
        """What the engine finds wrong with the file; it reads all of it."""
        return [row[0] for row in tx.fetch(Statement(text("PRAGMA quick_check(20)"))) if row[0] != "ok"]

    def prepare_file(self, connection: sqlite3.Connection) -> None:
        """Set what the file itself keeps: write-ahead logging, so that readers and the writer do not wait."""
        if not self.in_memory:
            connection.execute("PRAGMA journal_mode=WAL")

    def prepare_writer(self, connection: sqlite3.Connection) -> None:
        """Give the writing connection its larger cache."""
        for name, value in WRITER_SETTINGS.items():
            connection.execute(f"PRAGMA {name}={value}")

    def prepare_near(self, connection: sqlite3.Connection) -> None:
        """Give the connection of short reads its larger cache, and have it wait for no lock."""
        self.wait(connection, 0)
        for name, value in NEAR_SETTINGS.items():
            connection.execute(f"PRAGMA {name}={value}")

    def checkpoint(self, connection: sqlite3.Connection) -> int:
        """Copy the write-ahead log into the file as far as no reader needs it; returns the pages that the log holds."""
        _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(pages)

    def data_version(self, connection: sqlite3.Connection) -> int:
        """A number that changes, for this connection, when another one has written."""
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def immutability(self, table: str, keys: Sequence[Sequence[str]]) -> list[str]:
        """DDL that makes a table append-only; an INSERT over an existing key raises too, or REPLACE would slip past."""
        no_update, no_delete, no_replace = _guards(table)
        refuse = f"SELECT RAISE(ABORT, '{table} is append-only')"
        taken = " OR ".join(
            f"EXISTS (SELECT 1 FROM {table} WHERE {' AND '.join(f'{column} = NEW.{column}' for column in key)})"
            for key in keys
        )
        return [
            f"CREATE TRIGGER {no_update} BEFORE UPDATE ON {table} BEGIN {refuse}; END",
            f"CREATE TRIGGER {no_delete} BEFORE DELETE ON {table} BEGIN {refuse}; END",
            f"CREATE TRIGGER {no_replace} BEFORE INSERT ON {table} WHEN {taken} BEGIN {refuse}; END",
        ]

    def missing_guards(self, tx: Tx, table: str) -> list[str]:
        """The names of the triggers of `immutability` that the table has not."""
        return [name for name in _guards(table) if not tx.fetch(_NAMED, ("trigger", name))]

    def time(self, time: dt.datetime) -> str:
        """A time as it stands in a projection's column: ISO-8601 UTC text."""
        return _time_text(time)

    def to_time(self, stored: Any) -> dt.datetime:
        """The time that stands in a projection's column."""
        return dt.datetime.fromisoformat(stored)

    def text_index(self, name: str) -> FtsIndex:
        """The text index with this name."""
        return _text_index(name)

    def has_table(self, tx: Tx, table: str) -> bool:
        """Whether the database has this table."""
        return bool(tx.fetch(_NAMED, ("table", table)))

    def is_busy(self, error: BaseException) -> bool:
        """Whether another connection was in the way, so that trying again may help."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def wait(self, connection: sqlite3.Connection, seconds: int) -> None:
        """Have a connection wait so long where another one is in the way."""
        connection.execute(f"PRAGMA busy_timeout={seconds * 1000}")

    def break_off(self, connection: sqlite3.Connection, is_over: Callable[[], bool]) -> None:
        """Have a connection's statements fail from when on `is_over` says so, which is asked now and then."""
        connection.set_progress_handler(is_over, ASKED_EVERY)

    def is_broken_off(self, error: BaseException) -> bool:
        """Whether this is how a statement fails that was broken off."""
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT

    def translate(self, error: Exception) -> EventStoreError | None:
        """The typed error that stands for a driver's, or None for an error that is not the driver's."""
        if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
            return self.translate(error.orig)
        if isinstance(error, sqlite3.IntegrityError):
            return IntegrityError(f"the database refused a row: {error}")
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
            return StoreClosedError()
        if isinstance(error, sqlite3.Error):
            # Without a code it comes from the driver: a value that it cannot bind or read.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code == sqlite3.SQLITE_CORRUPT:
                return IntegrityError(f"the database is damaged: {error}")
            if code in REFUSALS:
                return IntegrityError(f"the database refused a statement: {error}")
            return StoreUnavailableError(str(error))
        return None


Dialect = SQLiteDialect


def _guards(table: str) -> tuple[str, str, str]:
    return f"{table}_no_update", f"{table}_no_delete", f"{table}_no_replace"


# Left to itself FTS5 merges hundreds of pages within one commit now and then; here few pages are merged often. Merging
# from eight segments of a size on, instead of four, rewrites an index a third less often while it grows.
_INDEX_SETTINGS: dict[str, str | int] = {"rank": "bm25(1.0, 0.0)", "automerge": 0, "usermerge": 8}
_MERGE_EVERY = 16
"""Positions after which pages of the index are merged, as many pages: twice what single appends need to keep up."""


class FtsIndex:
    """A full-text index of ready-made tokens: FTS5 without content, read by row number and ranked by BM25.

    Tokens hold no ASCII character but letters and digits, so that the plain tokenizer gives them back unchanged. A
    row's scope is a token in a column of its own, which counts for nothing in the rank.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        insert = f"INSERT INTO {name} (rowid, terms, scope)"
        self._add = Statement(text(f"{insert} VALUES (:row, :terms, :scope)"), "row", "terms", "scope")
        every = "SELECT value->>0, value->>1, value->>2 FROM json_each(:rows)"
        self._add_all = Statement(text(f"{insert} {every}"), "rows")
        self._merge = Statement(text(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', :pages)"), "pages")
        remove = f"INSERT INTO {name} ({name}, rowid, terms, scope) VALUES ('delete', :row, :terms, :scope)"
        self._remove = Statement(text(remove), "row", "terms", "scope")
        self._clear = Statement(text(f"INSERT INTO {name} ({name}) VALUES ('delete-all')"))
        self._count = Statement(text(f"SELECT count(*) FROM {name} WHERE {name} MATCH :query"), "query")
        # The number of rows, and of tokens in each column, as FTS5 keeps them for its own ranks.
        self._averages = Statement(text(f"SELECT block FROM {name}_data WHERE id = 1"))
        self._terms = Statement(text(f"SELECT term, doc, col, offset FROM {name}_vocabulary"))

    def create(self, tx: Tx) -> None:
        """Create the index."""
        ddl = f"CREATE VIRTUAL TABLE {self.name} USING fts5(terms, scope, content='', tokenize='ascii')"
        tx.execute(Statement(text(ddl)))
        for setting, value in _INDEX_SETTINGS.items():
            configure = f"INSERT INTO {self.name} ({self.name}, rank) VALUES ('{setting}', {value!r})"
            tx.execute(Statement(text(configure)))
        vocabulary = f"CREATE VIRTUAL TABLE {self.name}_vocabulary USING fts5vocab({self.name}, instance)"
        tx.execute(Statement(text(vocabulary)))

    def add(self, tx: Tx, rows: Sequence[tuple[int, Sequence[str], int]]) -> None:
        """Add the tokens of rows that are not in the index, each with the number of its scope; rows rise."""
        added = [(row, " ".join(tokens), _scope_token(scope)) for row, tokens, scope in rows]
        # Before each statement that may write several rows, the index writes a segment of those that it has got.
        if tx.is_here:
            for row in added:
                tx.execute(self._add, row)
        elif added:
            tx.execute(self._add_all, (msgspec.json.encode(added).decode(),))

    def maintain(self, tx: Tx, first: int, last: int) -> None:
        """Do the upkeep that falls due between two positions of the log, which every call continues."""
        if due := last // _MERGE_EVERY - (first - 1) // _MERGE_EVERY:
            tx.execute(self._merge, (due * _MERGE_EVERY,))

    def remove(self, tx: Tx, rows: Sequence[tuple[int, Sequence[str], int]]) -> None:
        """Remove rows, given with what they were added with: without content the index cannot know it."""
        tx.executemany(self._remove, [(row, " ".join(tokens), _scope_token(scope)) for row, tokens, scope in rows])

    def clear(self, tx: Tx) -> None:
        """Remove all rows."""
        tx.execute(self._clear)

    def drop(self, tx: Tx) -> None:
        """Drop the index."""
        for name in (f"{self.name}_vocabulary", self.name):
            tx.execute(Statement(text(f"DROP TABLE IF EXISTS {name}")))

    def query(self, phrases: Sequence[Sequence[str]], scope: int | None = None) -> str:
        """The parameter `query` of `hits` for rows that hold every phrase, of one scope or of all."""
        if scope is not None:
            phrases = [*phrases, [_scope_token(scope)]]
        return " AND ".join(f'"{" ".join(phrase)}"' for phrase in phrases)

    def hits(self) -> Subquery:
        """The rows that hold what the parameter `query` asks for, as columns `row_no` and `rank`: to be joined.

        A smaller rank is a better match; it is worked out only where it is asked for, and takes a look at every row
        that holds one of the phrases, the scope included. Ordered by falling `row_no` the rows come as they are read.
        """
        found = f"SELECT rowid AS row_no, rank AS rank FROM {self.name} WHERE {self.name} MATCH :query"
        return text(found).columns(column("row_no", BigInteger), column("rank", Float)).subquery("hits")

    def terms(self, tx: Tx) -> Iterator[Row]:
        """Every (token, row number, column, place) of the index, in that order; for comparing it with its source."""
        return tx.iterate(self._terms)

    def ranks_of(self, tx: Tx, phrases: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[float]:
        """What `hits` would have as the ranks of rows with these tokens, if they were added."""
        # Nothing stands there while the index is new; what this transaction has added itself is not in it.
        others, *tokens = [*_varints(tx.fetch(self._averages)[0][0])] or [0]
        hits = [tx.fetch(self._count, (self.query([phrase]),))[0][0] if others else 0 for phrase in phrases]
        return bm25.ranks(
            rows, phrases, others=others, tokens_of_others=sum(tokens), hits_of_others=hits, extra_tokens=1
        )

    def terms_of(self, rows: Sequence[tuple[int, Sequence[str], int]]) -> Iterator[Row]:
        """What `terms` would have of rows that are added, in any order."""
        yield from ((_scope_token(scope), row, "scope", 0) for row, _, scope in rows)
        for row, tokens, _ in rows:
            yield from ((token, row, "terms", place) for place, token in enumerate(tokens))


def _scope_token(scope: int) -> str:
    """A token that no text gives: a symbol parts words, but the plain tokenizer takes it for a letter."""
    return f"\u00a7{scope}"


def _varints(block: bytes) -> Iterator[int]:
    """The numbers of a record of FTS5, seven bits to a byte, a higher bit in all bytes of a number but the last."""
    number = 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0


_text_index = cache(FtsIndex)


# The rows of a group mostly share one time.
@lru_cache(maxsize=4)
def _time_text(time: dt.datetime) -> str:
    return f"{as_utc(time).isoformat(timespec='microseconds')[:26]}Z"


def dialect_of(url: str, *, synchronous: Synchronous = "full") -> Dialect:
    """The dialect for a database URL; the driver's name in it is optional."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidArgumentError("url", "not a database URL like sqlite:///file.db") from None
    if parsed.drivername not in ("sqlite", "sqlite+aiosqlite"):
        raise NotSupportedError(f"the engine {parsed.drivername}")
    if parsed.host or parsed.query or "\0" in (parsed.database or ""):
        raise InvalidArgumentError("url", "not a file's URL: sqlite:///file.db has three slashes and no options")
    if synchronous not in ("full", "normal"):
        raise InvalidArgumentError("synchronous", "must be 'full' or 'normal'")
    return SQLiteDialect(parsed.set(drivername="sqlite+aiosqlite"), synchronous)


def file_url(path: Path) -> str:
    """The URL of the embedded database in a file."""
    return URL.create("sqlite", database=str(path)).render_as_string()
