"""What every projection promises: its rows follow from the log alone, and it touches nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest

from eventstore import rows
from eventstore.events import (
    EVENT_TYPES,
    ContextBlockRemoved,
    ContextBlockSet,
    ContextEntryRemoved,
    ContextEntrySet,
    Event,
    PromptFrozen,
    SessionDeleted,
    SessionEnded,
    SessionForked,
    SessionRenamed,
    SkillLoaded,
    SkillUnloaded,
    UsageAdded,
)
from eventstore.group import apply
from eventstore.log import EventLog, fold
from eventstore.ports import Derived, Tx
from eventstore.statements import Row
from projections import ContextBlocks, ContextEntries, Directory, MessageTree, Projection, SearchIndex, Skills
from projections.search_index import INDEX
from tests.eventstore.support import NOON, Tally, created, message, note, opened, sql
from tests.projections.skill_messages import answer, answering, appended, asking, loading, reloading
from tests.projections.support import cleared, compacted, deleted, updated

MAKERS: dict[str, Callable[[], Projection]] = {
    "search_index": SearchIndex,
    "message_tree": lambda: MessageTree(len),
    "directory": Directory,
    "context_blocks": ContextBlocks,
    "context_entries": ContextEntries,
    "skills": lambda: Skills(len),
    "tally": Tally,
}
"""Every projection, in the order in which they are applied: a derived one before the one it is filled from."""

SOURCES = {"search_index": ["message_tree"]}
"""The projections that a derived one works on."""

STORY: Sequence[tuple[str, Event]] = (
    ("s", created("First")),
    ("s", message("a", "hello world")),
    ("t", message("a", "another world")),
    ("s", message("b", "left", "a")),
    ("s", message("c", "right \u4e2d\u6587", "a", createdAt="2020-01-01T00:00:00Z")),
    ("s", note("b")),
    ("context:key", note("a")),
    ("t", compacted("k", "a", "a")),
    ("s", message("d", "below the left", "b")),
    ("s", updated("d", "below the left, edited")),
    ("s", message("e", "", "d")),
    ("s", compacted("k", "a", "d", "What was said on the left")),
    ("s", updated("b", "left, and edited inside a path", createdAt="2021-01-01T00:00:00Z")),
    ("t", message("r", "a second root")),
    ("t", deleted("r")),
    ("t", cleared()),
    ("s", note("c")),
    ("s", deleted("a", "d")),
    ("t", message("a", "the world again")),
    ("t", message("r", "a third root")),
    ("t", message("q", "gone soon", "r")),
    ("s", message("g", "below the right", "c")),
    ("t", deleted("q")),
    ("t", message("p", "after a hole", "r")),
    ("t", note("a")),
    ("u", created("Empty")),
    ("v", message("a", "all of it goes")),
    ("v", cleared()),
    ("t", UsageAdded(input_tokens=3, output_tokens=4, cost=0.1, model="m")),
    ("gone", created("To be deleted")),
    ("gone", message("a", "hello and farewell")),
    ("gone", message("b", "farewell", "a")),
    ("gone", compacted("k", "a", "b")),
    ("gone", updated("a", "farewell again")),
    ("gone", deleted("b")),
    ("s", SessionRenamed(name="Second")),
    ("gone", SessionDeleted()),
    ("fork", created("Fork")),
    ("fork", SessionForked(session_id="t", version=8, message_id="p")),
    ("t", SessionEnded(reason="compaction")),
    ("t", UsageAdded(input_tokens=5, output_tokens=0, cost=0.2)),
    ("brief", created("Created and deleted")),
    ("brief", SessionDeleted()),
    ("s", ContextBlockSet(label="memory", content="first")),
    ("context:key", ContextBlockSet(label="key", content="shared")),
    ("s", ContextBlockSet(label="memory", content="second")),
    ("s", ContextBlockSet(label="notes", content="soon gone")),
    ("s", PromptFrozen(prompt="one")),
    ("s", ContextBlockRemoved(label="notes")),
    ("t", ContextBlockSet(label="notes", content="")),
    ("s", PromptFrozen(prompt="")),
    ("search:kb", ContextEntrySet(key="plan", content="The release is on Tuesday")),
    ("search:kb", ContextEntrySet(key="garden", content="The garden needs watering")),
    ("search:other", ContextEntrySet(key="plan", content="Another plan")),
    ("search:kb", ContextEntrySet(key="plan", content="The release is on Friday")),
    ("search:kb", ContextEntryRemoved(key="garden")),
    ("search:kb", ContextEntrySet(key="garden", content="The garden has enough water")),
    ("s", SkillLoaded(label="skills", key="tea")),
    ("s", loading("l1", "skills", "tea", "Boil water.")),
    ("t", SkillLoaded(label="skills", key="tea")),
    ("s", loading("l2", "skills", "bike", "Check the tyres.")),
    ("s", SkillUnloaded(label="skills", key="tea")),
    ("s", loading("l3", "skills", "tea", "Boil water.")),
    ("s", reloading("l1", "skills", "bike", "Check the tyres.")),
    ("s", deleted("l2")),
    ("s", appended(answer("l5", asking("load_context", "skills", "pot", call_id="o")))),
    ("s", appended(answering("l6", "Warm it.", call_id="o"), "l5")),
    ("s", appended(answer("l7", asking("weather", "skills", "pot", call_id="o")), "l6")),
    ("s", SkillLoaded(label="skills", key="map")),
    ("last", SkillLoaded(label="skills", key="map")),
    ("last", loading("l1", "skills", "map", "North is up.")),
    ("last", ContextBlockSet(label="memory", content="private")),
    ("last", PromptFrozen(prompt="private")),
    ("last", SessionDeleted()),
)


@pytest.fixture(params=MAKERS)
def projection(request: pytest.FixtureRequest) -> Projection:
    """Return one of the projections."""
    return MAKERS[request.param]()


@pytest.fixture
async def log(url: str, projection: Projection) -> AsyncIterator[EventLog]:
    """Return a log with the projection under test and a story in it, appended event by event."""
    async with opened(url, *_with_sources(projection), clock=lambda: NOON) as log:
        for stream_id, event in _story_for(projection):
            await log.append(stream_id, [event])
        yield log


def _with_sources(projection: Projection) -> list[Projection]:
    """Return a projection with those that it works on, in the order in which they are applied."""
    return [projection, *(MAKERS[name]() for name in SOURCES.get(projection.name, ()))]


def _story_for(projection: Projection) -> Sequence[tuple[str, Event]]:
    return _without_context(STORY) if projection.name in ("message_tree", *SOURCES) else STORY


def _without_context(story: Sequence[tuple[str, Event]]) -> list[tuple[str, Event]]:
    """Leave out the stream in which a leaf without a message is selected."""
    return [(stream_id, event) for stream_id, event in story if not stream_id.startswith("context:")]


async def dump(log: EventLog, projection: Projection, stream_no: int | None = None) -> list[Row]:
    """Return all that the projection holds, or what it holds of a stream."""
    return await log.read(lambda tx: list(projection.dump(tx, stream_no)))


async def stored(log: EventLog, projection: Projection) -> list[Row]:
    """Return the rows that the projection has: one that may lag dumps what it has when it has caught up."""
    if isinstance(projection, SearchIndex):
        return await log.read(lambda tx: list(tx.dialect.text_index(INDEX).terms(tx)))
    return await dump(log, projection)


def again(projection: Projection) -> Callable[[Tx], int]:
    """Return the work of emptying a projection and filling it from the log, or from those that it works on."""

    def work(tx: Tx) -> int:
        projection.reset(tx)
        return fold(tx, [projection])

    return work


def test_story_has_every_event_type() -> None:
    """The story that the projections are filled from has events of every type."""
    assert {event.type for _, event in STORY} == EVENT_TYPES.keys()


def test_it_says_what_it_is(projection: Projection) -> None:
    """A projection has a name, a revision from 1 on, and handles event types that there are."""
    assert projection.name.isidentifier()
    assert projection.revision >= 1
    assert set(projection.handles) <= EVENT_TYPES.keys()
    assert projection.handles


@pytest.mark.parametrize("group", [1, 2, 5, 1_000])
async def test_rows_do_not_depend_on_groups(
    log: EventLog, projection: Projection, monkeypatch: pytest.MonkeyPatch, group: int
) -> None:
    """The rows are the same whether events come one by one or many at a time."""
    before = await dump(log, projection)
    assert before
    monkeypatch.setattr(rows, "PAGE_EVENTS", group)
    await log.database.write(again(projection))
    assert await dump(log, projection) == before


async def test_rows_do_not_depend_on_commits(log: EventLog, projection: Projection) -> None:
    """The rows are the same whether events are committed one by one or many in one transaction."""
    other = MAKERS[projection.name]()
    async with opened("sqlite://", *_with_sources(other), clock=lambda: NOON) as at_once:
        await asyncio.gather(*(at_once.append(stream_id, [event]) for stream_id, event in _story_for(projection)))
        assert await dump(at_once, other) == await dump(log, projection)


@pytest.mark.parametrize("group", [1, 3, 1_000])
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "tally"])
async def test_events_that_come_again_change_nothing(
    url: str, name: str, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that a projection has folded already change nothing, whether all of them come again or the last ones."""
    monkeypatch.setattr(rows, "PAGE_EVENTS", group)
    projection = MAKERS[name]()
    async with opened(url, *_with_sources(projection), clock=lambda: NOON) as log:
        for stream_id, event in _without_context(STORY):
            await log.append(stream_id, [event])
        before = await dump(log, projection)

        def apply_again(tx: Tx, after: int) -> None:
            page, last = rows.page_of_all(tx, after, None)
            while page:
                apply(tx, projection, page)
                page, last = rows.page_of_all(tx, last, None)

        for after in (0, len(STORY) // 2, len(STORY) - 4):
            await log.database.write(lambda tx, after=after: apply_again(tx, after))  # type: ignore[misc]
            assert await dump(log, projection) == before


async def test_reset_is_as_new(log: EventLog, projection: Projection) -> None:
    """After a reset a projection is as it was when it was created, and can be filled again and again."""
    before = await dump(log, projection)
    await log.database.write(projection.reset)
    assert await stored(log, projection) == []
    for _ in range(2):
        await log.database.write(again(projection))
        assert await dump(log, projection) == before


async def test_it_goes_on_after_a_rebuild(log: EventLog, projection: Projection) -> None:
    """What is appended after a rebuild gives the rows that it gives without one."""
    await log.database.write(again(projection))
    more: Sequence[tuple[str, Event]] = (
        ("s", message("f", "on", "c")),
        ("s", note("f")),
        ("s", updated("c", "right no more")),
        ("s", compacted("l", "c", "g", "What was said on the right")),
        ("s", deleted("b", "g")),
        ("s", message("h", "under the right", "c")),
        ("t", cleared()),
        ("t", message("a", "a beginning")),
        ("w", created("New")),
        ("w", SessionRenamed(name="Newer")),
        ("t", UsageAdded(input_tokens=1, output_tokens=1, cost=0.3)),
        ("u", message("a", "soon to be deleted")),
        ("u", SessionDeleted()),
        ("s", ContextBlockSet(label="memory", content="third")),
        ("s", ContextBlockSet(label="notes", content="back again")),
        ("s", PromptFrozen(prompt="two")),
        ("search:kb", ContextEntrySet(key="plan", content="The release is over")),
        ("search:kb", ContextEntryRemoved(key="garden")),
        ("s", SkillUnloaded(label="skills", key="tea")),
        ("s", loading("l4", "skills", "map", "North is up.")),
        ("s", SkillUnloaded(label="skills", key="pot")),
        ("s", appended(answering("l8", "sunny", call_id="o"), "l7")),
        ("s", deleted("l5", "l7")),
        ("t", cleared()),
    )
    for stream_id, event in more:
        await log.append(stream_id, [event])
    after = await dump(log, projection)
    await log.database.write(again(projection))
    assert await dump(log, projection) == after


async def test_rows_of_a_stream_are_some_of_all(log: EventLog, projection: Projection) -> None:
    """What it dumps of one stream are rows of the whole dump, in its order."""
    everything = await dump(log, projection)
    for stream_no in (1, 2, 99):
        some = iter(everything)
        assert all(row in some for row in await dump(log, projection, stream_no))


async def test_derived_projection_is_filled_from_its_sources(log: EventLog, projection: Projection) -> None:
    """A projection that is filled from others has the same rows after that, and every other is folded from the log."""
    assert isinstance(projection, Derived) == (projection.name in SOURCES)
    if isinstance(projection, Derived):
        before = await dump(log, projection)

        def refill(tx: Tx) -> None:
            projection.reset(tx)
            projection.fill(tx)

        await log.database.write(refill)
        assert await dump(log, projection) == before


async def test_failed_append_leaves_no_rows(log: EventLog, projection: Projection) -> None:
    """An append that is rolled back leaves the projection as it was."""
    before = await dump(log, projection)

    def append_and_fail(tx: Tx) -> None:
        projection.reset(tx)
        fold(tx, [projection])
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        await log.database.write(append_and_fail)
    assert await dump(log, projection) == before


async def test_it_passes_over_events_that_nobody_understands(log: EventLog, projection: Projection) -> None:
    """An unreadable event of a type that it handles is passed over, and the next ones are applied."""
    columns = "stream_no, 99, 'odd', type, schema, recorded_at, salt, '{', payload_digest, hash"
    for kind in EVENT_TYPES:
        insert = (
            f"INSERT INTO events SELECT MAX(position) + 1, {columns.replace('99, ', f'version + 90 + {len(kind)}, ')}"
        )
        insert = insert.replace("'odd'", f"'odd {kind}'").replace("type", f"'{kind}'")
        await log.database.write(lambda tx, insert=insert: tx.execute(sql(f"{insert} FROM events")))  # type: ignore[misc]
    before = await dump(log, projection)
    await log.database.write(again(projection))
    after = await dump(log, projection)
    assert [row[0] for row in after] == [row[0] for row in before]

    more: Sequence[Event] = (
        message("h", "and on", "c"),
        note("h"),
        ContextBlockSet(label="memory", content="on"),
        ContextEntrySet(key="new", content="on"),
        SkillLoaded(label="skills", key="new"),
    )

    def go_on(tx: Tx) -> None:
        page, _ = rows.page_of_all(tx, 0, None)
        for number, event in enumerate(more, start=10_000):
            given = {"event": event, "type": event.type, "position": number, "version": number}
            for one in log.projections:
                apply(tx, one, [msgspec.structs.replace(page[0], **given)])

    await log.database.write(go_on)
    assert await dump(log, projection) != after


@pytest.mark.parametrize("name", MAKERS)
async def test_it_leaves_its_siblings_alone(url: str, name: str) -> None:
    """Emptying and filling one projection changes nothing of the others."""
    projections = {other: make() for other, make in MAKERS.items()}
    chosen = projections[name]
    async with opened(url, *projections.values(), clock=lambda: NOON) as log:
        for stream_id, event in _without_context(STORY):
            await log.append(stream_id, [event])
        await log.database.write(SearchIndex().catch_up)
        before = {other: await stored(log, projection) for other, projection in projections.items()}
        await log.database.write(chosen.reset)
        emptied = {other: await stored(log, projection) for other, projection in projections.items()}
        assert emptied == {**before, name: []}
        await log.database.write(again(chosen))
        assert {other: await stored(log, projection) for other, projection in projections.items()} == before
