"""A client's whole list of messages: what of it is known, and where news hang."""

from __future__ import annotations

from typing import Any

import pytest

from eventstore import (
    DuplicateMessageError,
)
from sessions import (
    Message,
    ReconcileResult,
    Session,
    Store,
)
from tests.sessions.clients import answered, talked, twice
from tests.sessions.talk import ids, log_of, said, stored_parents


async def test_first_list_is_the_history(session: Session) -> None:
    """The list that comes to an empty session is its history, each message under the one before it."""
    given = [said("u1", "help"), answered("a1"), Message(id="u2", role="user", parts=[])]
    assert await twice(session, given) == ReconcileResult(3, 0, 0)
    assert ids(await session.get_history()) == ["u1", "a1", "u2"]
    assert await stored_parents(session) == {"u1": None, "a1": "u1", "u2": "a1"}


async def test_history_that_comes_back_is_nothing(store: Store, session: Session) -> None:
    """A history that is sent back as it was handed out writes no event."""
    await talked(session)
    before = await log_of(store)
    assert await session.reconcile(await session.get_history()) == ReconcileResult(0, 0, 4)
    assert await session.reconcile([]) == ReconcileResult(0, 0, 0)
    assert await log_of(store) == before


async def test_news_hang_on_what_stands_before_them(session: Session) -> None:
    """New messages at the end of the list are appended in its order, in one transaction."""
    known = await talked(session)
    assert await twice(session, [*known, said("u3"), answered("a3"), said("u4")]) == ReconcileResult(3, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]
    assert (await session.get_message("a3")) == Message(**answered("a3"))


async def test_whole_history_under_other_ids_is_not_doubled(store: Store, session: Session) -> None:
    """Answers that a client has under ids of its own are the stored ones, equal ones each in its turn (TREE-6)."""
    known = await talked(session)
    seen = [known[0], answered("x1"), known[2], answered("x2")]
    before = await log_of(store)
    assert await twice(session, seen) == ReconcileResult(0, 0, 4)
    assert await log_of(store) == before
    assert await twice(session, [*seen, said("u3")]) == ReconcileResult(1, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3"]


@pytest.mark.parametrize(
    "own", [{0}, {1}, {3}, {0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 1, 2}, {1, 2, 3}, {0, 1, 2, 3}], ids=str
)
async def test_any_ids_may_be_the_clients_own(session: Session, own: set[int]) -> None:
    """Whichever messages a client has under other ids, they are found before and behind known ones."""
    known = await talked(session)
    seen = [{**message, "id": f"x{n}"} if n in own else message for n, message in enumerate(known)]
    assert await twice(session, [*seen, said("u3")]) == ReconcileResult(1, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3"]


async def test_messages_without_ids(session: Session) -> None:
    """A list whose messages have no ids at all is stored once, however often it comes (TREE-6, CON-4)."""
    given: list[dict[str, Any]] = [said("u1", "yes"), answered("a1"), said("u2", "yes"), answered("a2")]
    for message in given:
        del message["id"]
    assert await twice(session, given) == ReconcileResult(4, 0, 0)
    assert await twice(session, [*given, {"role": "user", "parts": []}]) == ReconcileResult(1, 0, 4)
    assert [message.text for message in await session.get_history()] == ["yes", "Sure", "yes", "Sure", ""]


async def test_what_differs_is_another_message(session: Session) -> None:
    """A message under an unknown id that says something else, or is of another role, is new: a branch."""
    known = await talked(session)
    for number, other in enumerate([answered("x0", "No"), said("x1", "Sure"), answered("x2", "Sure ")]):
        assert await twice(session, [*known[:3], other]) == ReconcileResult(1, 0, 3)
        assert ids(await session.get_history()) == ["u1", "a1", "u2", f"x{number}"]
        assert ids(await session.get_history("a2")) == ["u1", "a1", "u2", "a2"]
    assert ids(await session.get_branches("u2")) == ["a2", "x0", "x1", "x2"]


async def test_equal_content_elsewhere_is_another_message(session: Session) -> None:
    """What says the same as a stored message in another place is new: whoever says yes twice means it twice."""
    known = await talked(session)
    assert await twice(session, [*known, said("u3", "more"), answered("x3")]) == ReconcileResult(2, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3", "x3"]


async def test_branch_under_a_clients_id(session: Session) -> None:
    """Of several answers to a question the one is found that says the same, whichever branch was chosen (TREE-9)."""
    known = await talked(session)
    await session.append_message(answered("b2", "No"), "u2")
    assert await twice(session, [*known[:3], answered("x"), said("u3")]) == ReconcileResult(1, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3"]
    assert await twice(session, [*known[:3], answered("y", "No"), said("v3")]) == ReconcileResult(1, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "b2", "v3"]


async def test_edited_question(session: Session) -> None:
    """A question edited under its id is updated in place, one under a new id is a branch; what is left out stays."""
    known = await talked(session)
    assert await twice(session, [*known[:2], said("u2", "less")]) == ReconcileResult(0, 1, 2)
    assert [message.text for message in await session.get_history()] == ["help", "Sure", "less", "Sure"]
    assert await twice(session, [*known[:2], said("v2", "least")]) == ReconcileResult(1, 0, 2)
    assert [message.text for message in await session.get_history()] == ["help", "Sure", "least"]
    assert ids(await session.get_history("a2")) == ["u1", "a1", "u2", "a2"]


async def test_list_that_leaves_out_messages(session: Session) -> None:
    """What a list leaves out, at its end or within, is neither deleted nor hidden, as when an answer is made again."""
    known = await talked(session)
    for shorter in (known[:1], known[:3], [known[0], known[3]], known[2:]):
        assert await twice(session, shorter) == ReconcileResult(0, 0, len(shorter))
        assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2"]


async def test_outdated_list_with_news_is_a_branch(session: Session) -> None:
    """News of a client that has not seen the latest messages hang on the last one that it has seen."""
    known = await talked(session)
    assert await twice(session, [*known[:2], said("v2", "wait")]) == ReconcileResult(1, 0, 2)
    assert ids(await session.get_history()) == ["u1", "a1", "v2"]
    assert ids(await session.get_branches("a1")) == ["u2", "v2"]
    assert await twice(session, [*known, said("u3")]) == ReconcileResult(1, 0, 4)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3"]


async def test_end_of_a_history_with_news(session: Session) -> None:
    """A list that begins in the middle of the history goes on from its end."""
    known = await talked(session)
    assert await twice(session, [*known[2:], said("u3")]) == ReconcileResult(1, 0, 2)
    assert await twice(session, [{**known[2], "id": "x2"}, known[3], said("v3", "or")]) == ReconcileResult(1, 0, 2)
    assert ids(await session.get_branches("a2")) == ["u3", "v3"]
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "v3"]


async def test_news_within_the_list(session: Session) -> None:
    """A new message between known ones is a branch, and the latest leaf stays as it was chosen (TREE-9)."""
    known = await talked(session)
    await session.append_message(said("b"), "a1")
    assert await twice(session, [known[0], answered("x", "No"), *known[2:]]) == ReconcileResult(1, 0, 3)
    assert ids(await session.get_history()) == ["u1", "a1", "b"]
    assert ids(await session.get_history("x")) == ["u1", "x"]
    given = [known[0], answered("y", "Maybe"), *known[2:], said("u3")]
    assert await twice(session, given) == ReconcileResult(2, 0, 3)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3"]


async def test_news_before_the_first_known(session: Session) -> None:
    """What stands before all that is known is another version of what is stored there, else another beginning."""
    known = await talked(session)
    assert await twice(session, [said("s", "be kind", role="system"), *known]) == ReconcileResult(1, 0, 4)
    assert await twice(session, [answered("x", "No"), *known[2:]]) == ReconcileResult(1, 0, 2)
    given = [{**known[0], "id": "y"}, answered("z", "Never"), *known[2:]]
    assert await twice(session, given) == ReconcileResult(1, 0, 3)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2"]
    found = await stored_parents(session)
    assert (found["s"], found["x"], found["z"]) == (None, "u1", "u1")


async def test_list_with_nothing_in_common_is_another_beginning(session: Session) -> None:
    """A list of which nothing is known is a conversation of its own, and what was there stays (TREE-1)."""
    await talked(session)
    assert await twice(session, [said("v1", "other"), answered("b1")]) == ReconcileResult(2, 0, 0)
    assert ids(await session.get_history()) == ["v1", "b1"]
    assert ids(await session.get_history("a2")) == ["u1", "a1", "u2", "a2"]
    assert await twice(session, [said("x1", "other"), answered("x2"), said("v2")]) == ReconcileResult(1, 0, 2)
    assert ids(await session.get_history()) == ["v1", "b1", "v2"]


async def test_deleted_message_stays_deleted(session: Session) -> None:
    """A message that was deleted does not come back, and what follows it hangs on the one before (TREE-2)."""
    known = await talked(session)
    await session.delete_messages(["u1", "u2"])
    assert await twice(session, [*known, said("u3")]) == ReconcileResult(1, 0, 4)
    assert ids(await session.get_history()) == ["a1", "a2", "u3"]
    assert await twice(session, [*known[:3], said("v")]) == ReconcileResult(1, 0, 3)
    assert (await stored_parents(session))["v"] == "a1"
    await session.clear_messages()
    assert await twice(session, known) == ReconcileResult(4, 0, 0)


async def test_one_id_twice(store: Store, session: Session) -> None:
    """A message that stands twice in a list is one message, and two messages under one id are refused (TREE-6)."""
    known = await talked(session)
    assert await twice(session, [*known, said("u3"), known[1], said("u3")]) == ReconcileResult(1, 0, 6)
    assert ids(await session.get_history()) == ["u1", "a1", "u2", "a2", "u3"]
    before = await log_of(store)
    for first, second in [(said("n"), said("n", "bye")), (said("u3"), answered("u3", "hello")), (known[1], said("a1"))]:
        with pytest.raises(DuplicateMessageError) as raised:
            await session.reconcile([*known, said("new"), first, second])
        assert (raised.value.session_id, raised.value.message_id) == ("chat", first["id"])
    assert await log_of(store) == before
