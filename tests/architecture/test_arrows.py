from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.architecture.source import PACKAGES, ROOT


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return one circle of modules, its first repeated as its last, or an empty list."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_contracts() -> None:
    """Imports run down the tower only, as the contracts in pyproject.toml say."""
    # In a process of its own: it configures logging, and with it that of everything that runs after it.
    lint = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run([sys.executable, "-c", lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_circle_between_files() -> None:
    """No file of the four packages imports, by whatever way round, itself."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    found = circle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    assert " <- ".join(found) == ""


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}, set()),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, {"b", "c"}),
    ],
    ids=["chain", "diamond", "circle"],
)
def test_circle_is_seen(imports: dict[str, set[str]], found: set[str]) -> None:
    """The search for circles finds one that is there, and none where two ways lead to one file."""
    assert set(circle(imports)) == found
