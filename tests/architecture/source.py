"""The project's own source, as the architecture tests read it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# From the top floor down: a package may import those after it.
PACKAGES = ("replay", "sessions", "projections", "eventstore")


def package_files() -> list[Path]:
    """Return every Python file of the four packages, in path order."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def files_of_tests() -> list[Path]:
    """Return every Python file under `tests`, in path order."""
    return sorted((ROOT / "tests").rglob("*.py"))


def project_files() -> list[Path]:
    """Return the files that belong to the project: those git knows or would add, else all but hidden folders'."""
    if (ROOT / ".git").exists() and (git := shutil.which("git")):
        command = [git, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        # Git may have been told of another repository by a hook that runs these tests.
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        listed = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True).stdout
        return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not _is_made(path.relative_to(ROOT))]


def _is_made(path: Path) -> bool:
    return any((part.startswith(".") and part != ".ci") or part == "__pycache__" for part in path.parts)


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def place(path: Path) -> str:
    """Return a path as it is written from the project's top, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def bare_strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings that stand alone as a statement: docstrings, of attributes too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value
