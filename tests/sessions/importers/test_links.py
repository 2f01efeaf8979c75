from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions.importers.links import NONE, in_log_order, log_order, numbered, repair, root_of

LINKS = st.integers(1, 12).flatmap(
    lambda size: st.lists(st.none() | st.integers(0, size + 1), min_size=size, max_size=size)
)


def test_repairs_are_the_least() -> None:
    """Of a cycle the first record in the file becomes the root, and what hangs on a cycle keeps its link."""
    parents, repaired = repair(
        {"tail": "c", "a": "b", "b": "c", "c": "a", "self": "self", "lost": "gone", "root": None}
    )
    assert parents == {"tail": "c", "a": None, "b": "c", "c": "a", "self": None, "lost": None, "root": None}
    assert repaired == {"a", "self", "lost"}


@given(numbers=LINKS)
def test_every_record_comes_after_its_parent(numbers: list[int | None]) -> None:
    """In log order every record stands once, after its parent, with its siblings as in the file."""
    links = {str(key): None if parent is None else str(parent) for key, parent in enumerate(numbers)}
    parents, repaired = repair(links)
    order = log_order(parents)
    place = {key: at for at, key in enumerate(order)}
    assert sorted(order) == sorted(links)
    assert all(parent is None or place[parent] < place[key] for key, parent in parents.items())
    assert {key for key in links if links[key] != parents[key]} == repaired
    for parent in {*links, None}:
        siblings = [key for key in links if parents[key] == parent]
        assert sorted(siblings, key=place.__getitem__) == siblings


def test_links_in_order_stay_in_file_order() -> None:
    """A file in which every parent stands before its children keeps its order."""
    assert log_order({"b": None, "a": "b", "d": "b", "c": "a"}) == ["b", "a", "d", "c"]


@given(numbers=LINKS)
def test_root_is_the_end_of_the_walk_up(numbers: list[int | None]) -> None:
    """The root of a record is where its links lead, however often it was asked for before."""
    parents, _ = repair({str(at): None if number is None else str(number) for at, number in enumerate(numbers)})
    links = numbered(parents)
    ups = numbered(parents)
    for record in [*range(len(links)), *range(len(links))]:
        at = record
        while links[at] != NONE:
            at = links[at]
        assert root_of(ups, record) == at


def test_order_of_some_records() -> None:
    """Of some records alone the log order is that of all, without the others."""
    links = numbered({"a": None, "other": None, "b": "d", "c": "b", "d": "a"})
    assert list(in_log_order(links, [0, 2, 3, 4])) == [0, 4, 2, 3]
    assert list(in_log_order(links)) == [0, 1, 4, 2, 3]
