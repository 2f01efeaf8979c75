from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source import files_of_tests, package_files, parse, place

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

SENTENCE_BREAK = re.compile(r"[.!?]\s+[A-Z`]")


def undocumented(tree: ast.Module, file: str) -> Iterator[str]:
    """Yield the public names of a file whose docstring is missing or whose first line is no sentence."""
    name = file.rsplit("/", maxsplit=1)[-1]
    if name.startswith("_") and name != "__init__.py":
        return
    if not _starts_with_a_sentence(tree):
        yield file
    for node in _public(tree.body):
        if not _starts_with_a_sentence(node):
            yield f"{file}:{node.lineno}: {node.name}"


def unpromising(tree: ast.Module, file: str) -> Iterator[str]:
    """Yield the tests of a file whose docstring is not exactly one sentence."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        promise = ast.get_docstring(node) or ""
        if not promise.endswith(".") or SENTENCE_BREAK.search(promise):
            yield f"{file}:{node.lineno}: {node.name}"


def _public(body: list[ast.stmt]) -> Iterator[Definition]:
    """Yield the public definitions of a body and of its public classes; a function's own are nobody else's."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _public([*node.body, *node.orelse])
        if isinstance(node, Definition) and not node.name.startswith("_") and not _repeats(node):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body)


def _repeats(node: Definition) -> bool:
    """Tell whether a definition adds to another of the same name, which is the documented one."""
    added = re.compile(r"(typing\.)?overload|\w+\.(setter|deleter|register)")
    return any(added.match(ast.unparse(decorator)) for decorator in node.decorator_list)


def _starts_with_a_sentence(node: ast.Module | Definition) -> bool:
    docstring = ast.get_docstring(node) or ""
    return docstring.partition("\n")[0].endswith(".")


def test_everything_public_is_documented() -> None:
    """Every public module, class, function and method says in the first line of its docstring what it is."""
    assert [name for path in package_files() for name in undocumented(parse(path), place(path))] == []


def test_every_test_states_one_promise() -> None:
    """The docstring of every test is one sentence."""
    assert [name for path in files_of_tests() for name in unpromising(parse(path), place(path))] == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('"""A module."""\nclass A:\n    """An a."""\n    def b(self):\n        """Do b."""', 0),
        ('"""A module."""\ndef _a(): ...\nclass _B:\n    def c(self): ...', 0),
        ('"""A module."""\ndef a():\n    """Do a."""\n    def b(): ...', 0),
        ('"""A module."""\n@overload\ndef a(): ...\ndef a():\n    """Do a."""', 0),
        ("x = 1", 1),
        ('"""A module\n\nand more."""', 1),
        ('"""A module."""\nclass A:\n    def b(self): ...', 2),
        ('"""A module."""\nif x:\n    async def a(): ...', 1),
    ],
    ids=["whole", "private", "inner", "overload", "none", "no full stop", "class", "conditional"],
)
def test_missing_docstring_is_seen(code: str, count: int) -> None:
    """A missing or unfinished first line is found, and private and inner names are left alone."""
    assert len(list(undocumented(ast.parse(code), "eventstore/a.py"))) == count


@pytest.mark.parametrize(
    ("docstring", "good"),
    [
        ("It holds.", True),
        ("It holds, e.g. here, and over\n    two lines.", True),
        ("", False),
        ("It holds", False),
        ("It holds. It also does more.", False),
    ],
    ids=["one", "two lines", "none", "no full stop", "two"],
)
def test_missing_promise_is_seen(docstring: str, good: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A test without a docstring, or with more than one sentence in it, is found."""
    code = f'class TestA:\n  async def test_b(self):\n    """{docstring}"""'
    assert bool(list(unpromising(ast.parse(code), "tests/a.py"))) is not good
