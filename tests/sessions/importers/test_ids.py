from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from sessions.importers.ids import UNKNOWN, Ids, Runs

texts = st.one_of(st.text(st.characters(codec="utf-8")), st.uuids().map(str), st.uuids().map(lambda u: str(u).upper()))


@given(st.lists(texts, max_size=300))
def test_ids_number_texts_as_they_come(names: list[str]) -> None:
    """Each text has a number, the same each time, and is read back by it as it was."""
    ids, numbers = Ids(), {name: number for number, name in enumerate(dict.fromkeys(names))}
    assert [ids.add(name) for name in names] == [numbers[name] for name in names]
    assert (list(ids), len(ids)) == (list(numbers), len(numbers))
    assert [ids.find(name) for name in numbers] == list(numbers.values())


def test_unknown_text_has_no_number() -> None:
    """A text that was not added is unknown, in a full table as in an empty one."""
    ids = Ids()
    assert ids.find("a") == UNKNOWN
    names = [str(uuid.UUID(int=number)) for number in range(5_000)]
    for name in names:
        ids.add(name)
    assert [ids.find(name) for name in names] == list(range(5_000))
    assert ids.find(str(uuid.UUID(int=5_000))) == UNKNOWN


@given(st.lists(st.integers(-1, 2), min_size=1))
def test_runs_remember_every_row(values: list[int]) -> None:
    """A number that is kept where it changes only is known for every row."""
    runs = Runs()
    for row, value in enumerate(values):
        runs.append(row, value)
    assert [runs[row] for row in range(len(values))] == values
