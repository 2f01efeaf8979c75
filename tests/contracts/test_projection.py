"""What every projection promises: its rows follow from the log alone, and it touches nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from eventstore import rows
from eventstore.events import EVENT_TYPES, Event
from eventstore.log import EventLog, fold
from eventstore.ports import Tx
from eventstore.statements import Row
from projections import Directory, MessageTree, Projection, SearchIndex
from tests.eventstore.support import NOON, Tally, created, message, note, opened, sql

MAKERS: dict[str, Callable[[], Projection]] = {
    "message_tree": lambda: MessageTree(len),
    "search_index": SearchIndex,
    "directory": Directory,
    "tally": Tally,
}

STORY: Sequence[tuple[str, Event]] = (
    ("s", created("First")),
    ("s", message("a", "hello world")),
    ("t", message("a", "another world")),
    ("s", message("b", "left", "a")),
    ("s", message("c", "right \u4e2d\u6587", "a", createdAt="2020-01-01T00:00:00Z")),
    ("s", note("b")),
    ("context:key", note("a")),
    ("s", message("d", "below the left", "b")),
    ("s", message("e", "", "d")),
    ("t", message("r", "a second root")),
    ("s", note("c")),
    ("t", note("a")),
    ("u", created("Empty")),
)


@pytest.fixture(params=MAKERS)
def projection(request: pytest.FixtureRequest) -> Projection:
    """Return one of the projections."""
    return MAKERS[request.param]()


@pytest.fixture
async def log(url: str, projection: Projection) -> AsyncIterator[EventLog]:
    """Return a log with the projection under test and a story in it, appended event by event."""
    async with opened(url, projection, clock=lambda: NOON) as log:
        for stream_id, event in STORY if projection.name != "message_tree" else _without_context(STORY):
            await log.append(stream_id, [event])
        yield log


def _without_context(story: Sequence[tuple[str, Event]]) -> list[tuple[str, Event]]:
    """Leave out the stream in which a leaf without a message is selected."""
    return [(stream_id, event) for stream_id, event in story if not stream_id.startswith("context:")]


async def dump(log: EventLog, projection: Projection, stream_no: int | None = None) -> list[Row]:
    """Return all that the projection holds, or what it holds of a stream."""
    return await log.read(lambda tx: list(projection.dump(tx, stream_no)))


def again(projection: Projection) -> Callable[[Tx], int]:
    """Return the work of emptying a projection and filling it from the log."""

    def work(tx: Tx) -> int:
        projection.reset(tx)
        return fold(tx, [projection])

    return work


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


async def test_reset_is_as_new(log: EventLog, projection: Projection) -> None:
    """After a reset a projection is as it was when it was created, and can be filled again and again."""
    before = await dump(log, projection)
    await log.database.write(projection.reset)
    assert await dump(log, projection) == []
    for _ in range(2):
        await log.database.write(again(projection))
        assert await dump(log, projection) == before


async def test_it_goes_on_after_a_rebuild(log: EventLog, projection: Projection) -> None:
    """What is appended after a rebuild gives the rows that it gives without one."""
    await log.database.write(again(projection))
    for stream_id, event in (("s", message("f", "on", "c")), ("s", note("f")), ("v", created("New"))):
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
    for kind in ("message_appended", "leaf_selected"):
        insert = (
            f"INSERT INTO events SELECT MAX(position) + 1, {columns.replace('99, ', f'version + 90 + {len(kind)}, ')}"
        )
        insert = insert.replace("'odd'", f"'odd {kind}'").replace("type", f"'{kind}'")
        await log.database.write(lambda tx, insert=insert: tx.execute(sql(f"{insert} FROM events")))  # type: ignore[misc]
    await log.database.write(again(projection))
    assert await dump(log, projection)


@pytest.mark.parametrize("name", MAKERS)
async def test_it_leaves_its_siblings_alone(url: str, name: str) -> None:
    """Emptying and filling one projection changes nothing of the others."""
    projections = {other: make() for other, make in MAKERS.items()}
    chosen = projections[name]
    async with opened(url, *projections.values(), clock=lambda: NOON) as log:
        for stream_id, event in _without_context(STORY):
            await log.append(stream_id, [event])
        before = {other: await dump(log, projection) for other, projection in projections.items()}
        await log.database.write(chosen.reset)
        emptied = {other: await dump(log, projection) for other, projection in projections.items()}
        assert emptied == {**before, name: []}
        await log.database.write(again(chosen))
        assert {other: await dump(log, projection) for other, projection in projections.items()} == before
