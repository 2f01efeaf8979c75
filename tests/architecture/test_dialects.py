from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source import bare_strings, package_files, parse, place

DIALECT = "eventstore/dialect.py"
CROSSING = "eventstore/crossing.py"

WORDS = re.compile("sqlite|postgres|asyncpg|pragma|fts5|tsvector", re.IGNORECASE)
DRIVER = re.compile("aiosqlite|sqlite3")
URL = re.compile("[a-z0-9+]+://")


def dialect_words(tree: ast.Module, file: str) -> Iterator[str]:
    """Yield the places in a file's code, comments and docstrings aside, that name a SQL dialect."""
    skipped = {id(string) for string in bare_strings(tree)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        for text in _texts(node):
            if file == CROSSING:
                text = DRIVER.sub("", text)  # noqa: PLW2901 - the driver's name is what this file may say
            if file.startswith("replay/cli/") and isinstance(node, ast.Constant) and URL.match(text):
                continue
            if WORDS.search(text):
                yield f"{file}:{getattr(node, 'lineno', '?')}: {text!r}"


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield every name and string that a node itself holds, whatever kind of node it is."""
    for _, field in ast.iter_fields(node):
        for value in field if isinstance(field, list) else [field]:
            if isinstance(value, str):
                yield value
            elif isinstance(value, bytes):
                yield value.decode("latin-1")


def test_dialects_are_named_in_one_file() -> None:
    """A SQL dialect is named in one file only, but for the crossing's driver and the command line's URLs."""
    found = [
        word for path in package_files() if place(path) != DIALECT for word in dialect_words(parse(path), place(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "import sqlite3",
        "from sqlalchemy.dialects import postgresql as p",
        "is_sqlite = True",
        "x = engine.SQLite",
        "def run(asyncpg_pool): ...",
        "table(sqlite_autoincrement=True)",
        "tx.execute('PRAGMA data_version')",
        "tx.execute(f'select * from {name} using fts5')",
        "x = b'tsvector'",
        "url = 'sqlite://'",
    ],
)
def test_dialect_word_is_seen(code: str) -> None:
    """An import, a name, an option or a piece of SQL of one dialect is found wherever it stands."""
    assert list(dialect_words(ast.parse(code), "eventstore/log.py"))


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("eventstore/log.py", '"""On SQLite this waits."""\n# PRAGMA\nx = 1'),
        ("eventstore/log.py", 'class A:\n    x: int\n    """Kept in SQLite."""'),
        (CROSSING, "import aiosqlite\nimport sqlite3\nx = aiosqlite.Connection"),
        ("replay/cli/main.py", "url = 'sqlite:///' + path"),
    ],
    ids=["docstring", "attribute", "driver", "url"],
)
def test_dialect_word_is_let_pass(file: str, code: str) -> None:
    """Prose may speak of a dialect, the crossing of its driver, and the command line of a URL."""
    assert list(dialect_words(ast.parse(code), file)) == []


@pytest.mark.parametrize("code", ["x = 'PRAGMA data_version'", "fts5 = 1"])
def test_crossing_names_only_the_driver(code: str) -> None:
    """What the crossing may say of its driver gives it no other word of a dialect."""
    assert list(dialect_words(ast.parse(code), CROSSING))
