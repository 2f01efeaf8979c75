"""What every log promises of event ids: the same again is a no-op, anything else under the id is refused."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import msgspec
import pytest

from eventstore.errors import DuplicateEventError, InvalidArgumentError, LimitExceededError, VersionConflictError
from eventstore.events import Event, MessageAppended
from eventstore.expected import NO_STREAM, STREAM_EXISTS, ExpectedVersion
from eventstore.heads import Head, Proposal
from eventstore.log import EventLog
from eventstore.ports import Tx
from tests.eventstore.support import everything, message, note, notes, stream, texts_of


def raw(json: str) -> MessageAppended:
    """Return the event of a message with exactly this JSON."""
    return MessageAppended(raw=msgspec.Raw(json.encode()))


@pytest.mark.parametrize("expected", [0, NO_STREAM, 2, STREAM_EXISTS, 77])
async def test_repeat_returns_the_first_result(log: EventLog, expected: ExpectedVersion) -> None:
    """A batch appended again is a no-op with the first result, whatever version the repeat carries (CON-4)."""
    first = await log.append("s", notes("a", "b"), event_ids=["k1", "k2"], expected=0, metadata={"try": 1})
    await log.append("other", notes("x"))
    again = await log.append("s", notes("a", "b"), event_ids=["k1", "k2"], expected=expected, metadata={"try": 2})
    assert again == first
    assert [e.event_id for e in again.envelopes] == ["k1", "k2"]
    assert len(await everything(log)) == 3


async def test_repeat_of_some_returns_those(log: EventLog) -> None:
    """Events of one batch may be repeated one by one, and each is recognised."""
    first = await log.append("s", notes("a", "b"), event_ids=["k1", "k2"])
    again = await log.append("s", notes("b"), event_ids=["k2"])
    assert again.envelopes == first.envelopes[1:]


@pytest.mark.parametrize(
    ("events", "ids"),
    [
        (notes("a", "c"), ["k1", "k3"]),
        (notes("c", "a"), ["k3", "k1"]),
        (notes("a", "c"), ["k1", "k2"]),
        (notes("b"), ["k1"]),
        (notes("a", "b", "c"), ["k1", "k2", "k3"]),
        ([message("a")], ["k1"]),
    ],
    ids=["overlap", "overlap behind", "second differs", "moved", "longer", "other type"],
)
async def test_other_content_under_a_known_id_is_refused(
    log: EventLog, events: Sequence[Event], ids: list[str]
) -> None:
    """A batch that only partly repeats another, or repeats an id with other content, is refused whole (CON-4)."""
    await log.append("s", notes("a", "b"), event_ids=["k1", "k2"])
    with pytest.raises(DuplicateEventError) as caught:
        await log.append("s", events, event_ids=ids)
    assert caught.value.stream_id == "s"
    assert caught.value.event_id in {"k1", "k2"}
    assert texts_of(await stream(log)) == ["a", "b"]


async def test_id_twice_in_a_batch_is_refused(log: EventLog) -> None:
    """A batch in which an id stands twice is refused whole, even with the same event (CON-4)."""
    with pytest.raises(DuplicateEventError) as caught:
        await log.append("s", notes("a", "a"), event_ids=["k", "k"])
    assert caught.value.event_id == "k"
    await log.append("s", notes("a"), event_ids=["k"])
    with pytest.raises(DuplicateEventError):
        await log.append("s", notes("a", "a"), event_ids=["k", "k"])
    assert len(await everything(log)) == 1


async def test_ids_belong_to_their_stream(log: EventLog) -> None:
    """The same id in another stream is another event's (CON-4)."""
    await log.append("s", notes("a"), event_ids=["k"])
    committed = await log.append("t", notes("b"), event_ids=["k"])
    assert committed.envelopes[0].version == 1
    assert texts_of(await everything(log)) == ["a", "b"]


async def test_unrelated_event_beside_a_repeat_is_refused(log: EventLog) -> None:
    """A repeat and an event without an id cannot come in one append: it would be lost or doubled."""

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        return [(note("a"), "k"), note("b")], None

    await log.append("s", notes("a"), event_ids=["k"])
    with pytest.raises(DuplicateEventError):
        await log.transact("s", decide)
    assert texts_of(await stream(log)) == ["a"]


async def test_repeat_over_streams_returns_all_of_it(log: EventLog) -> None:
    """The repeat of an append to several streams returns what the first one wrote to all of them."""

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, str]:
        return {"s": [(note("a"), "k")], "t": [(note("b"), "k"), (note("c"), "l")]}, "done"

    first = await log.transact("s", decide)
    assert len(first.envelopes) == 3
    assert await log.transact("s", decide) == first
    assert len(await everything(log)) == 3


@pytest.mark.parametrize("order", [("s", "t"), ("t", "s")])
async def test_repeat_in_one_stream_beside_news_in_another_is_refused(log: EventLog, order: tuple[str, str]) -> None:
    """An append that repeats in one stream and is new in another is refused whole, in whatever order they come."""

    def decide(_tx: Tx, _head: Head) -> tuple[Proposal, None]:
        proposed = {"s": [(note("a"), "k")], "t": [(note("b"), "l")]}
        return {name: proposed[name] for name in order}, None

    await log.append("s", notes("a"), event_ids=["k"])
    with pytest.raises(DuplicateEventError):
        await log.transact("s", decide)
    assert texts_of(await everything(log)) == ["a"]


async def test_repeat_in_the_same_group_is_recognised(log: EventLog) -> None:
    """Repeats that run at the same time as the first append, or right behind it, write nothing either."""
    calls = (log.append("s", notes("a", "b"), event_ids=["k1", "k2"]) for _ in range(20))
    first, *others = await asyncio.gather(*calls)
    assert all(other == first for other in others)
    assert len(await everything(log)) == 2


async def test_conflicting_batches_in_one_group_are_refused(log: EventLog) -> None:
    """Of two tasks that give one id to different events at the same time, one is written and one is refused."""
    outcomes = await asyncio.gather(
        log.append("s", notes("a"), event_ids=["k"]),
        log.append("s", notes("b"), event_ids=["k"]),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, DuplicateEventError) for outcome in outcomes) == 1
    assert len(await everything(log)) == 1


@pytest.mark.parametrize(
    ("again", "same"),
    [
        ('{"id": "m", "role": "user", "parts": [], "n": 1}', True),
        ('{"n":1,"parts":[],"role":"user","id":"m"}', True),
        ('{"id":"m","role":"user","parts":[],"n":1.0}', False),
        ('{"id":"m","role":"user","parts":[],"n":true}', False),
        ('{"id":"m","role":"user","parts":[],"n":"1"}', False),
        ('{"id":"m","role":"user","parts":[],"n":null}', False),
        ('{"id":"m","role":"user","parts":[]}', False),
        ('{"id":"m","role":"user","parts":[],"n":1,"x":null}', False),
    ],
)
async def test_sameness_is_strict_about_types_alone(log: EventLog, again: str, same: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """A repeat may order keys and space its JSON otherwise, but 1, 1.0 and true are three values."""
    first = await log.append("s", [raw('{"id":"m","role":"user","parts":[],"n":1}')], event_ids=["k"])
    if same:
        assert (await log.append("s", [raw(again)], event_ids=["k"])).envelopes[0].version == 1
    else:
        with pytest.raises(DuplicateEventError):
            await log.append("s", [raw(again)], event_ids=["k"])
    assert [e.hash for e in await stream(log)] == [first.envelopes[0].hash]


async def test_lost_race_is_told_from_a_repeat(log: EventLog) -> None:
    """A new id at an outdated version is a conflict."""
    await log.append("s", notes("a"), event_ids=["k"], expected=0)
    with pytest.raises(VersionConflictError):
        await log.append("s", notes("a"), event_ids=["other"], expected=0)


async def test_any_text_or_uuid_is_an_event_id(log: EventLog) -> None:
    """Event ids are texts, and a UUID object counts as its text."""
    number = uuid.uuid4()
    committed = await log.append("s", notes("a", "b"), event_ids=[number, "ключ"])  # type: ignore[list-item]
    assert [e.event_id for e in committed.envelopes] == [str(number), "ключ"]


@pytest.mark.parametrize(
    ("ids", "error"),
    [(["a"], InvalidArgumentError), (["a", "b\0"], InvalidArgumentError), (["a", "b" * 513], LimitExceededError)],
    ids=["too few", "NUL", "too long"],
)
async def test_bad_event_ids_are_refused(log: EventLog, ids: list[str], error: type[Exception]) -> None:
    """One id per event, without NUL and within the limit, or the append is refused."""
    with pytest.raises(error, match="event_ids"):
        await log.append("s", notes("a", "b"), event_ids=ids)
    assert await everything(log) == []


async def test_given_ids_are_new_otherwise(log: EventLog) -> None:
    """Without ids the same event appended twice is two events, with ids of their own."""
    await log.append("s", notes("a"))
    await log.append("s", notes("a"))
    ids = [e.event_id for e in await stream(log)]
    assert len(set(ids)) == 2
    assert all(uuid.UUID(event_id).version == 7 for event_id in ids)
