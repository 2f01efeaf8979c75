from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from eventstore import InvalidCompactionError
from sessions import Compaction, CompactResult, Message, Session, estimate_message_tokens
from tests.projections.support import NOON
from tests.sessions.compactions import Compactor, Frames, Waiting, during, middle, shown
from tests.sessions.talk import chain, said
from tests.sessions.test_compacting_by_itself import LONG, constant


class Elsewhere:
    """Messages kept by an application, each with its parent, and compactions laid over a path; counts its reads."""

    session_id = "chat"

    def __init__(self) -> None:
        self.messages: dict[str, tuple[dict[str, Any], str | None]] = {}
        self.compactions: list[dict[str, Any]] = []
        self.reads = 0

    def get_message(self, message_id: str) -> Any:
        """Give a message."""
        return self.messages.get(message_id, (None, None))[0]

    async def get_history(self, leaf_id: str | None = None) -> list[Any]:
        """Give the path to a leaf, with the compactions that lie on it."""
        self.reads += 1
        path: list[dict[str, Any]] = []
        at = leaf_id or next(reversed(self.messages), None)
        while at is not None:
            message, at = self.messages[at]
            path.insert(0, message)
        for each in reversed(self.compactions):
            names = [message["id"] for message in path]
            if {each["fromMessageId"], each["toMessageId"]} <= {*names}:
                first, last = names.index(each["fromMessageId"]), names.index(each["toMessageId"])
                path[first : last + 1] = [said(f"compaction_{each['id']}", each["summary"])]
        return path

    def get_latest_leaf(self) -> Any:
        """Give the last message."""
        return self.get_message(next(reversed(self.messages), ""))

    def get_branches(self, message_id: str) -> list[Any]:
        """Give the children of a message."""
        return [message for message, parent_id in self.messages.values() if parent_id == message_id]

    def get_path_length(self, _leaf_id: str | None = None) -> int:
        """Count messages."""
        return len(self.messages)

    async def append_message(self, message: Message, *parent: str | None) -> None:
        """Append a message, which is ignored when it is there."""
        under = parent[0] if parent else next(reversed(self.messages), None)
        self.messages.setdefault(message.id, (message.to_dict(), under))

    def update_message(self, message: Message) -> None:
        """Replace a message."""
        self.messages[message.id] = (message.to_dict(), self.messages[message.id][1])

    def delete_messages(self, ids: Sequence[str]) -> None:
        """Delete messages."""
        for one in ids:
            _, above = self.messages.pop(one, (None, None))
            for name, (message, parent) in self.messages.items():
                if parent == one:
                    self.messages[name] = (message, above)

    def clear_messages(self) -> None:
        """Delete everything."""
        self.messages.clear()
        self.compactions.clear()

    def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> Any:
        """Keep a compaction."""
        each = {"id": str(len(self.compactions)), "summary": summary}
        self.compactions.append({**each, "fromMessageId": from_message_id, "toMessageId": to_message_id})
        return self.compactions[-1]

    def get_compactions(self) -> list[Any]:
        """Give the compactions."""
        return self.compactions


def over(provider: Any, **options: Any) -> Session:
    """Return a session over a provider, which may lack what is optional."""
    return Session(provider, **options)


def told(frames: Frames) -> int:
    """Return the estimate that was told last."""
    tokens: int = frames.sent[-1][1]["tokenEstimate"]
    return tokens


async def test_history_is_read_once_for_the_status() -> None:
    """The status of a session of another provider follows its writes, and its history is read once."""
    provider, frames = Elsewhere(), Frames()
    await chain(over(provider), "m0", "m1")
    session = over(provider).with_publisher(frames)
    writes = [
        session.append_message(said("m2", LONG)),
        session.append_message(said("m2", LONG)),
        session.append_message(said("m3"), "m2"),
        session.append_messages([said("m4"), said("m5", LONG)]),
        session.update_message(said("m1", LONG)),
        session.update_message(said("gone")),
        session.upsert_message(said("m1", "short")),
        session.delete_messages(["m1", "gone"]),
        session.append_message(said("m6")),
        session.append_message(said("r0"), None),
        session.clear_messages(),
        session.append_message(said("n0")),
    ]
    for write in writes:
        await write
        provider.reads, reads = 0, provider.reads
        assert told(frames) == estimate_message_tokens(await provider.get_history())
        provider.reads = reads
    assert provider.reads == 1


@pytest.mark.parametrize("change", ["branch", "tip", "summary"])
async def test_history_is_read_again_when_it_must(change: str) -> None:
    """After a branch, the deletion of the tip and a summary the status is right, which takes another read."""
    provider, frames = Elsewhere(), Frames()
    session = over(provider).with_publisher(frames)
    await chain(session, "m0", "m1", "m2")
    if change == "branch":
        await session.append_message(said("b1", LONG), "m0")
    elif change == "tip":
        await session.delete_messages(["m2"])
    else:
        await session.add_compaction(LONG, "m0", "m1")
        await session.append_message(said("m3"))
    assert told(frames) == estimate_message_tokens(await provider.get_history())
    assert provider.reads == 3


async def test_nothing_is_read_when_nobody_listens() -> None:
    """Without a publisher and a threshold no history is read."""
    provider = Elsewhere()
    session = over(provider)
    await chain(session, "m0", "m1")
    await session.clear_messages()
    assert provider.reads == 0


async def test_counter_reads_each_time() -> None:
    """A counter of one's own gets the history as it is, read for it."""
    provider = Elsewhere()
    session = over(provider, token_counter=constant(0)).on_compaction(Compactor(None)).compact_after(1)
    await chain(session, "m0", "m1", "m2")
    assert provider.reads == 3


async def test_compacting() -> None:
    """Over another provider a session compacts by itself, and a new summary reaches back over the last one."""
    function, errors = Compactor(middle()), list[Exception]()
    session = over(Elsewhere()).on_compaction_error(errors.append).on_compaction(function).compact_after(40)
    await chain(session, *(f"m{n}" for n in range(7)))
    assert await shown(session) == ["m0", "S(m1 m2 m3 m4 m5)", "m6"]
    await session.append_message(said("m7", LONG))
    assert await shown(session) == ["m0", "S(m6)", "m7"]
    assert [(one["fromMessageId"], one["toMessageId"]) for one in await session.get_compactions()] == [  # type: ignore[index]
        ("m1", "m5"),
        ("m1", "m6"),
    ]
    assert errors == []


class Objects(Elsewhere):
    """The same, which gives compactions as objects, and nothing when one is added."""

    def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> None:
        """Keep a compaction."""
        super().add_compaction(summary, from_message_id, to_message_id)

    def get_compactions(self) -> list[Any]:
        """Give the compactions."""
        return [
            Compaction(one["id"], one["summary"], one["fromMessageId"], one["toMessageId"], NOON, stale=False)
            for one in self.compactions
        ]


async def test_compactions_may_be_objects() -> None:
    """A provider may tell of its compactions as objects, and of one that was added nothing at all."""
    session = over(Objects()).on_compaction(Compactor(CompactResult("m3", "m3", "longer")))
    await chain(session, "m0", "m1", "m2", "m3", "m4")
    added = await session.add_compaction("S", "m1", "m2")
    assert (added.summary, added.from_message_id, added.to_message_id) == ("S", "m1", "m2")
    assert await session.compact() == CompactResult("m1", "m3", "longer")
    assert await shown(session) == ["m0", "longer", "m4"]


async def test_answers_are_checked() -> None:
    """Nothing is handed to a provider of unknown messages, of a reversed range, or without a summary (CMP-6)."""
    answers = [CompactResult("m1", "gone", "S"), CompactResult("m2", "m1", "S"), CompactResult("m1", "m2", " ")]
    session = over(Elsewhere()).on_compaction(Compactor(*answers))
    await chain(session, "m0", "m1", "m2")
    assert await session.compact() is None
    for _ in range(2):
        with pytest.raises(InvalidCompactionError):
            await session.compact()
    assert await session.get_compactions() == []


@pytest.mark.parametrize(
    ("change", "recorded"), [("edit", False), ("delete", False), ("append", True), ("edit outside", True)]
)
async def test_change_while_summarising(change: str, *, recorded: bool) -> None:
    """A summary is handed in when the history still shows what was summarised."""
    waiting = Waiting(middle())
    session = over(Elsewhere()).on_compaction(waiting)
    await chain(session, "m0", "m1", "m2", "m3")
    changes = {
        "edit": lambda: session.update_message(said("m1", "!")),
        "delete": lambda: session.delete_messages(["m1"]),
        "append": lambda: session.append_message(said("m4")),
        "edit outside": lambda: session.update_message(said("m3", "!")),
    }
    # Without a leaf the latest is meant, which may be another one by now.
    assert (await during(waiting, session.compact(), meanwhile=changes[change]) is not None) is recorded
    assert len(await session.get_compactions()) == int(recorded)
