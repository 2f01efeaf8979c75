from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions import SessionManager, Store, StoredSession, import_file, open_store
from tests.sessions.exporters.exports import branching, exported, grow, imported, shape
from tests.sessions.importers.counting import FIXTURES, export_in
from tests.sessions.talk import said

FOLDERS = sorted((FIXTURES / "chatgpt").iterdir())

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
parts = st.builds(lambda text, more: {**more, "type": "text", "text": text}, st.text(), st.just({}))
others = st.builds(lambda kind, more: {**more, "type": kind}, st.text(), st.dictionaries(st.text(), values, max_size=3))
bodies = st.builds(
    lambda role, given, more: {**more, "role": role, "parts": given},
    st.sampled_from(["user", "assistant", "tool", "narrator"]),
    st.lists(parts | others, max_size=3),
    st.dictionaries(st.text().filter(lambda key: key != "id"), values, max_size=2),
)
trees = st.lists(st.tuples(st.integers(0, 20), bodies), max_size=12)
numbers = st.integers(0, 20)


async def test_session_comes_back(store: Store) -> None:
    """An exported session, imported, is the same tree under an id of its own: ids, order, leaf, compactions, name."""
    await branching(store)
    report = await imported(store, await exported(store, "walk", "json"))
    (session,) = report.sessions
    assert (session.session_id, session.source_id, session.messages, session.overlays, session.inserted) == (
        "json:walk",
        "walk",
        6,
        1,
        6,
    )
    assert report.problems == []
    before = await shape(store, "walk")
    assert before["leaf"] == "a2"
    assert len(before["compactions"]) == 1
    assert await shape(store, "json:walk") == before
    info = await SessionManager(store).get("json:walk")
    assert info is not None
    assert info.source == "json"


async def test_importing_twice_changes_nothing(store: Store) -> None:
    """The same file again finds all of it known and leaves the log as it was."""
    await branching(store)
    text = await exported(store, "walk", "json")
    await imported(store, text)
    head = await store.log.high_water()
    report = await imported(store, text)
    assert [one.inserted for one in report.sessions] == [0]
    assert await store.log.high_water() == head


async def test_later_export_adds_what_is_new(store: Store) -> None:
    """A later export of a session that went on adds the new messages and compactions to what was imported."""
    session = await branching(store)
    await imported(store, await exported(store, "walk", "json"))
    await session.append_message(said("u4"))
    await session.add_compaction("They went on.", "a2", "u4")
    report = await imported(store, await exported(store, "walk", "json"))
    assert [one.inserted for one in report.sessions] == [1]
    assert await shape(store, "json:walk") == await shape(store, "walk")


async def test_what_was_deleted_here_stays_deleted(store: Store) -> None:
    """A message deleted after its import does not come back, nor does a compaction that would need it."""
    await branching(store)
    text = await exported(store, "walk", "json")
    await imported(store, text)
    copy = StoredSession(store, "json:walk")
    await copy.delete_messages(["a1", "u2"])
    await imported(store, text)
    after = await shape(store, "json:walk")
    assert [msgspec.json.decode(raw)["id"] for _, raw in after["messages"]] == ["u1", "a2", "u3", "r2"]
    assert after["compactions"] == []


async def test_one_path_comes_back_as_one(store: Store) -> None:
    """An export of one path has its messages, its end as the leaf, and of the compactions those that lie on it."""
    session = await branching(store)
    await session.add_compaction("Elsewhere.", "u3", "u3")
    (report,) = (await imported(store, await exported(store, "walk", "json", "u3"))).sessions
    assert report.messages == 3
    copy = await shape(store, "json:walk")
    assert copy["leaf"] == "u3"
    assert [summary for _, summary, _, _ in copy["compactions"]] == ["Elsewhere."]


async def test_file_is_lines_with_what_is_known(store: Store) -> None:
    """The file says what it is and what is known of the session, and has each message, as it is stored, on a line."""
    await branching(store)
    text = await exported(store, "walk", "json")
    tree = msgspec.json.decode(text)
    assert (tree["format"], tree["version"], tree["current_leaf"]) == ("session-eventstore/tree", 1, "a2")
    assert (tree["session"]["id"], tree["session"]["name"], tree["session"]["model"]) == ("walk", "A walk", "m-1")
    lines = text.splitlines()
    stored = await shape(store, "walk")
    for number, (parent, raw) in enumerate(stored["messages"]):
        line = lines[3 + number]
        assert line.startswith(f'{{"parent_id":{msgspec.json.encode(parent).decode()},')
        assert line.removesuffix(",").endswith(f'"message":{raw}}}')


async def test_times_and_metadata_of_a_source_are_kept(store: Store) -> None:
    """What a first source said of a session, and the times of its messages, survive the way out and in."""
    first = (await import_file(store, export_in(FOLDERS[0]))).sessions[0].session_id
    tree = msgspec.json.decode(await exported(store, first, "json"))
    assert tree["session"]["source"] == "chatgpt"
    assert tree["session"]["metadata"]["chatgpt"]
    await imported(store, msgspec.json.encode(tree).decode())
    again = msgspec.json.decode(await exported(store, f"json:{first}", "json"))
    assert again["session"]["metadata"] == {"json": tree["session"]}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
async def test_shared_exports_survive(folder: Path) -> None:
    """Every session of every shared export is the same tree after export and import into another store (IMP-7)."""
    async with open_store("sqlite://") as one, open_store("sqlite://") as other:
        for session in (await import_file(one, export_in(folder))).sessions:
            report = await imported(other, await exported(one, session.session_id, "json"))
            assert report.problems == []
            assert await shape(other, f"json:{session.session_id}") == await shape(one, session.session_id)


@given(tree=trees, leaf=numbers, stretches=st.lists(st.tuples(numbers, numbers), max_size=3), gone=numbers)
def test_any_tree_survives(tree: list[Any], leaf: int, stretches: list[tuple[int, int]], gone: int) -> None:
    """Whatever is said in whatever tree, with compactions and deletions, is the same after export and import."""

    async def check() -> None:
        async with open_store("sqlite://") as store:
            await grow(store, "any", tree, leaf, stretches, gone)
            report = await imported(store, await exported(store, "any", "json"))
            assert report.problems == []
            assert await shape(store, "json:any") == await shape(store, "any")

    asyncio.run(check())


def tree_of(**other: Any) -> dict[str, Any]:
    """Return what an export of one session with two messages looks like, with other values."""
    nodes = [{"parent_id": None, "message": said("m1")}, {"parent_id": "m1", "message": said("m2")}]
    return {
        "format": "session-eventstore/tree",
        "version": 1,
        "session": {"id": "s", "name": "S"},
        "messages": nodes,
        **other,
    }


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"version": 2}, "not version 1 of session-eventstore/tree, the one that can be read here"),
        ({"session": {"id": 1, "name": "S"}}, "not as it was exported: Expected `str`, got `int` - at `$.session.id`"),
        ({"messages": None}, "not as it was exported: Expected `array`, got `null` - at `$.messages`"),
        ({"messages": [{"message": {"role": "user"}}]}, "not as it was exported: Object missing required field `id`"),
        ({"messages": [{"message": {"id": "m1"}}]}, "refused: role: is missing"),
        (
            {"messages": [{"message": said("compaction_1")}]},
            "refused: message id 'compaction_1' is reserved: ids that start with 'compaction_' belong to overlays",
        ),
    ],
)
async def test_broken_file_is_left_out(store: Store, other: dict[str, Any], reason: str) -> None:
    """A file that is not as it was exported is reported with the reason, and nothing of it is written."""
    report = await imported(store, msgspec.json.encode(tree_of(**other)).decode())
    assert [(problem.reason, problem.skipped) for problem in report.problems] == [(reason, True)]
    assert await store.log.high_water() == 0


async def test_torn_file_and_other_values_are_told(store: Store) -> None:
    """Of a torn list the whole sessions are imported, what is no session is told, and so is the tear."""
    text = msgspec.json.encode([tree_of(), {"format": "other"}, 7, tree_of(session={"id": "t", "name": "T"})]).decode()
    report = await imported(store, text.removesuffix("]") + ",{")
    assert [one.session_id for one in report.sessions] == ["json:s", "json:t"]
    assert [problem.index for problem in report.problems] == [1, 2, 4]
    assert [problem.reason.partition(":")[0] for problem in report.problems] == ["no session", "no session", "not JSON"]


async def test_changed_file_is_repaired(store: Store) -> None:
    """Links that lead nowhere make roots, of the same message the first counts, and an unknown leaf is the last."""
    nodes = [
        {"parent_id": "gone", "message": said("m1")},
        {"parent_id": "m1", "message": said("m2")},
        {"parent_id": None, "message": said("m2", "again")},
    ]
    compactions = [
        {"id": "c1", "summary": "Up.", "from_message_id": "m2", "to_message_id": "m1"},
        {"id": "c2", "summary": "Down.", "from_message_id": "m1", "to_message_id": "m2"},
        {"id": "c3", "summary": "Off.", "from_message_id": "m1", "to_message_id": "gone"},
    ]
    text = msgspec.json.encode(tree_of(messages=nodes, compactions=compactions, current_leaf="gone")).decode()
    report = await imported(store, text)
    assert [problem.reason for problem in report.problems] == [
        f"compaction {name!r} has no ends on one path, and is left out" for name in ("c1", "c3")
    ]
    assert (report.repaired_links, report.messages, report.overlays) == (1, 2, 1)
    after = await shape(store, "json:s")
    assert [parent for parent, _ in after["messages"]] == [None, "m1"]
    assert (after["leaf"], [one[0] for one in after["compactions"]]) == ("m2", ["c2"])


async def test_compaction_must_lie_on_one_path_of_the_store(store: Store) -> None:
    """A compaction whose ends are on one path of a changed file, but not of what is stored, is not written."""
    apart = [{"parent_id": None, "message": said("m1")}, {"parent_id": None, "message": said("m2")}]
    await imported(store, msgspec.json.encode(tree_of(messages=apart)).decode())
    nodes = [*tree_of()["messages"], {"parent_id": "m2", "message": said("m3")}]
    compactions = [
        {"id": end, "summary": "Both.", "from_message_id": start, "to_message_id": end}
        for start, end in (("m1", "m2"), ("m1", "m3"), ("m2", "m3"))
    ]
    changed = tree_of(messages=nodes, compactions=[*compactions[:2], {**compactions[2], "id": "good"}])
    await imported(store, msgspec.json.encode(changed).decode())
    after = await shape(store, "json:s")
    assert [(one[0], one[2], one[3]) for one in after["compactions"]] == [("good", "m2", "m3")]
    assert [message.text for message in await StoredSession(store, "json:s").get_history()] == ["Both."]


async def test_several_sessions_in_one_file(store: Store) -> None:
    """Exports in one array are several sessions, and one that belongs to another still does."""
    two = tree_of(session={"id": "t", "name": "T", "parent_session_id": "s"})
    report = await imported(store, msgspec.json.encode([tree_of(), two]).decode())
    assert [(one.session_id, one.parent_session_id) for one in report.sessions] == [
        ("json:s", None),
        ("json:t", "json:s"),
    ]
