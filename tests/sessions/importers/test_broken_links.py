from __future__ import annotations

from pathlib import Path

import pytest

from sessions import Session, import_file, open_store
from tests.sessions.importers.claude import Record, assistant, read, record, tree, user, write

ISLANDS = [
    user("u1", None),
    assistant("a1", "u1"),
    user("u2", "a1"),
    assistant("a2", "phantom"),
    user("u3", "a2"),
    assistant("a3", "u3"),
]


async def test_record_with_an_unknown_parent_keeps_what_is_before_it(tmp_path: Path) -> None:
    """A record whose parent is not in the file hangs on the one before it, is counted, and nothing is lost (IMP-1)."""
    async with open_store("sqlite://") as store:
        report = await import_file(store, write(tmp_path / "s.jsonl", *ISLANDS))
        history = await Session.create(store).for_session("claude-code:s").get_history()
    assert [message.id for message in history] == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert report.repaired_links == 1
    assert history[3].to_dict()["metadata"]["claude-code"]["parent"] == "phantom"


@pytest.mark.parametrize(
    ("changes", "parents", "repaired"),
    [
        ({"u2": "other", "a2": "phantom"}, {"u2": "a1", "a2": "u2"}, 2),
        ({"u1": "phantom", "a2": "u2"}, {"u1": None}, 1),
        ({"u2": "u2", "a2": "u2"}, {"u2": "a1"}, 1),
        ({"u2": "a2", "a2": "u2"}, {"u2": None, "a2": "u2"}, 1),
        ({"u1": "a3", "a2": "u2"}, {"u1": None}, 1),
    ],
    ids=["two islands", "first", "itself", "pair", "circle of all"],
)
def test_broken_links_are_repaired(
    tmp_path: Path, changes: dict[str, str], parents: dict[str, str | None], repaired: int
) -> None:
    """Islands are joined, circles are cut at their first record, and each repair is counted once (IMP-1)."""
    records = [{**one, "parentUuid": changes.get(str(one["uuid"]), one["parentUuid"])} for one in ISLANDS]
    (found,) = read(tmp_path, *records)
    usual: dict[str, str | None] = {"u1": None, "a1": "u1", "u2": "a1", "a2": "u2", "u3": "a2", "a3": "u3"}
    assert tree(found) == {**usual, **parents}
    assert found.repaired_links == repaired


def test_order_of_the_file_does_not_matter(tmp_path: Path) -> None:
    """Children that stand before their parents hang where they belong, below a repaired one too (IMP-1)."""
    whole = [{**one, "parentUuid": "u2"} if one["uuid"] == "a2" else one for one in ISLANDS]
    (found,) = read(tmp_path, *reversed(whole))
    assert tree(found) == {"u1": None, "a1": "u1", "u2": "a1", "a2": "u2", "u3": "a2", "a3": "u3"}
    assert (found.repaired_links, found.leaf_id) == (0, "u1")
    orphans: list[Record] = [assistant("a1", "u1"), user("u1", "phantom")]
    (found,) = read(tmp_path, *orphans)
    assert (tree(found), found.repaired_links) == ({"u1": None, "a1": "u1"}, 1)


def test_link_from_the_main_conversation_into_a_sidechain_is_repaired(tmp_path: Path) -> None:
    """A record of the main conversation below one of a sidechain hangs on the record before it (IMP-1)."""
    main, side = read(
        tmp_path, user("u", None), user("s", None, isSidechain=True), assistant("a", "s"), assistant("b", "a")
    )
    assert (tree(main), main.repaired_links) == ({"u": None, "a": "u", "b": "a"}, 1)
    assert (tree(side), side.repaired_links) == ({"s": None}, 0)


def test_response_does_not_hang_on_itself(tmp_path: Path) -> None:
    """A response whose records stand above and below another message is a root, and that link is counted (IMP-1)."""
    records = [
        assistant("b", "c", response="r"),
        assistant("g", None, response="r"),
        user("i", "gone"),
        {**record("system", "c", "lost", None), "message": None},
    ]
    (found,) = read(tmp_path, *records)
    assert (tree(found), found.repaired_links) == ({"b": None, "i": "b"}, 3)


def test_fork_over_a_record_that_stands_before_it(tmp_path: Path) -> None:
    """A fork that is none is straightened to the end of what hangs below, wherever in the file that stands (IMP-1)."""
    records = [user("g", "e", isMeta=True), assistant("c", None), assistant("e", "c"), assistant("i", "c")]
    (found,) = read(tmp_path, *records)
    assert (tree(found), found.repaired_links) == ({"c": None, "e": "c", "g": "e", "i": "g"}, 0)


def test_very_long_chain_is_read(tmp_path: Path) -> None:
    """A chain of many records, in whichever order, is read without a walk per record (IMP-1)."""
    chain = [user(f"n{number}", f"n{number - 1}" if number else None) for number in range(20_000)]
    for records in (chain, chain[::-1]):
        (found,) = read(tmp_path, *records)
        assert (len(found.messages), found.repaired_links) == (20_000, 0)
        assert next(iter(found.messages)).id == "n0"
