from __future__ import annotations

from tests.cli.running import eventstore


def test_fork(url: str) -> None:
    """A fork prints the new session, which has the path to the message, its parent's name, and is the one used last."""
    begun = eventstore("fork", "walk", "--at", "m5", "--store", url).value
    assert (begun["name"], begun["parent_session_id"], begun["messages"]) == ("A walk by the sea", "walk", 3)
    shown = eventstore("show", "@", "--raw", "--store", url).records
    assert [message["parts"][0]["text"] for message in shown] == ["Where to?", "Along the cliffs.", "By bus?"]
    assert begun["leaf_id"] == shown[-1]["id"] != "m5"
    assert len(eventstore("log", "walk", "--store", url).records) == 7


def test_name_of_a_fork(url: str) -> None:
    """A fork is named as is asked for, and on a terminal it is a row of the list of sessions."""
    lines = eventstore("fork", "walk", "--at", "m1", "--name", "Inland", "--store", url, "--table").lines
    assert lines[0].split()[:2] == ["ID", "NAME"]
    assert lines[1].split()[1] == "Inland"
    assert (
        eventstore("fork", "walk", "--at", "m1", "--name", "Inland", "--json", "--store", url).value["name"] == "Inland"
    )


def test_fork_at_a_summary(changed: str) -> None:
    """The id of a summary means the last message that it stands for, and the copy begins with what it says."""
    overlay = eventstore("show", "s", "--raw", "--store", changed).records[0]["id"]
    begun = eventstore("fork", "s", "--at", overlay, "--store", changed).value
    assert begun["messages"] == 1
    assert "What was said at first." in eventstore("show", "@", "--store", changed).out


def test_nothing_to_fork(url: str) -> None:
    """A session or a message that is not there is not found, the message is needed, and nothing is begun."""
    for arguments, code in [
        (["nobody", "--at", "m1"], 3),
        (["walk", "--at", "m9"], 3),
        (["walk", "--at", "m"], 2),
        (["walk", "--at", "compaction_none"], 3),
        (["walk"], 2),
    ]:
        ran = eventstore("fork", *arguments, "--store", url)
        assert (ran.code, ran.out) == (code, ""), arguments
        assert ran.err.startswith("error: ")
    assert len(eventstore("ls", "--store", url).records) == 3
