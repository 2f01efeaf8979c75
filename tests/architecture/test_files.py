from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import package_files, place, project_files

LONGEST = 350

# In pieces, so that this file does not find itself.
ELSEWHERE = re.compile("|".join(("pypi" + r"\.org", "python" + "hosted", "/wor" + "k/", "/tm" + "p/w/")).encode())


def too_long(source: str) -> bool:
    """Tell whether a file is long and its docstring does not speak of its lines."""
    if len(source.splitlines()) <= LONGEST:
        return False
    return re.search(r"\blines\b", ast.get_docstring(ast.parse(source)) or "") is None


def test_long_files_say_why() -> None:
    """A file of more than 350 lines says in its docstring why its lines belong together."""
    assert [place(path) for path in package_files() if too_long(path.read_text(encoding="utf-8"))] == []


def test_nothing_points_elsewhere() -> None:
    """No file of the project names the host of a package registry or a folder of one machine."""
    found = [(place(path), match[0]) for path in project_files() if (match := ELSEWHERE.search(path.read_bytes()))]
    assert found == []


@pytest.mark.parametrize(
    ("docstring", "lines", "long"),
    [
        ("A file.", LONGEST, False),
        ("A file.", LONGEST + 1, True),
        ("A file of outlines.", LONGEST + 1, True),
        ("A file.\n\nIts lines are one table.", LONGEST + 1, False),
    ],
    ids=["short", "long", "another word", "explained"],
)
def test_long_file_is_seen(docstring: str, lines: int, long: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A file one line above the limit is found unless its docstring speaks of its lines."""
    text = f'"""{docstring}"""\n'
    assert too_long(text + "x = 1\n" * (lines - text.count("\n"))) == long


def test_host_is_seen() -> None:
    """The host of a registry is found in the middle of a line."""
    assert ELSEWHERE.search(("--index-url https://" + "pypi" + ".org/simple").encode())
