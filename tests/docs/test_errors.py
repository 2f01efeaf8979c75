from __future__ import annotations

import inspect

import eventstore
from eventstore import errors
from eventstore.errors import EventStoreError
from tests.docs.pages import REFERENCE, codes, rows

PAGE = REFERENCE / "errors.md"
CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, EventStoreError)]


def facts(kind: type[EventStoreError]) -> list[str]:
    """Return the names of the attributes that an error carries."""
    given = [name for name in inspect.signature(kind.__init__).parameters if name not in {"self", "args", "kwargs"}]
    return list(vars(kind(*given)))


def test_errors_are_described() -> None:
    """The table has every error, with its code and its attributes, and says when it is raised."""
    table = {codes(cells[0])[0]: cells[1:] for cells in rows(PAGE.read_text(encoding="utf-8").splitlines())}
    assert {name: (codes(cells[0]), codes(cells[1])) for name, cells in table.items()} == {
        kind.__name__: ([kind.code], facts(kind)) for kind in CLASSES
    }
    assert all(cells[2] for cells in table.values())


def test_errors_are_where_the_page_says() -> None:
    """Every error can be imported from where the page says."""
    assert {kind.__name__ for kind in CLASSES} <= set(eventstore.__all__)
