from __future__ import annotations

import inspect

import pytest

import eventstore
import projections
import replay
import sessions
import sessions.exporters
import sessions.importers
from eventstore import EventStoreError
from projections import Projection
from tests.docs.pages import REFERENCE, codes, prose, rows, sections
from tests.docs.signatures import brief, members

PAGE = REFERENCE / "api.md"
PACKAGES = (sessions, sessions.importers, sessions.exporters, eventstore, projections, replay)
MADE_ELSEWHERE = {"EventLog", "Store", "Limits"}
"""Classes whose constructor is not the page's to describe: nobody calls it, or another page has it."""

PUBLIC = {
    f"{package.__name__}.{name}": value
    for package in PACKAGES
    for name in package.__all__
    # Errors have a page of their own.
    if not (inspect.isclass(value := getattr(package, name)) and issubclass(value, EventStoreError))
}
CLASSES = {
    name.rpartition(".")[2]: value
    for name, value in PUBLIC.items()
    # What is built in has the methods of its base.
    if inspect.isclass(value) and (value is Projection or not issubclass(value, Projection))
}
DESCRIBED = [name for name in CLASSES if f"`{name}`" in sections(PAGE, 3)]
TOLD_IN_A_LINE = {
    *("Event", "MessageAppended", "MessageUpdated"),
    *("Conversation", "SourceMessage"),
    *("ContextProvider", "WritableContextProvider", "SkillProvider", "SearchProvider"),
    *("ContextConfig", "StaticContext", "DirectorySkills", "FsspecSkills"),
}
"""Classes with so few members that the page names them in a sentence."""


def documented() -> set[str]:
    """Return whatever the page sets as code."""
    return {code for _, line in prose(PAGE) for code in codes(line)}


@pytest.mark.parametrize("public", PUBLIC)
def test_public_names(public: str) -> None:
    """Every public name stands in the reference, with its parameters and defaults if it can be called."""
    name, value = public.rpartition(".")[2], PUBLIC[public]
    is_made = inspect.isclass(value) and name not in MADE_ELSEWHERE and not getattr(value, "_is_protocol", False)
    callable_here = inspect.isfunction(value) or is_made
    assert (brief(name, value) if callable_here else name) in documented()


@pytest.mark.parametrize("name", DESCRIBED)
def test_members(name: str) -> None:
    """The table of a class has its public methods and properties as they are, and no others."""
    table = [codes(cells[0])[0] for cells in rows(sections(PAGE, 3)[f"`{name}`"])]
    assert sorted(table) == sorted(members(CLASSES[name], CLASSES.values()))


def test_classes_with_methods_have_a_table() -> None:
    """A class has a section of its own when it has more to offer than its fields."""
    with_methods = {name for name, kind in CLASSES.items() if list(members(kind, CLASSES.values()))}
    assert with_methods - {*DESCRIBED} - TOLD_IN_A_LINE == set()


@pytest.mark.parametrize("name", sorted(TOLD_IN_A_LINE))
def test_members_are_told_in_a_line(name: str) -> None:
    """The members of a class without a table stand in the page as they are."""
    assert set(members(CLASSES[name], CLASSES.values())) <= documented() | {"type"}
