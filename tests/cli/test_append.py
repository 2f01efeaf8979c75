from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import COMMAND, Ran, environment, eventstore

HELLO = {"role": "user", "parts": [{"type": "text", "text": "Hello"}]}


def append(url: str, *arguments: str) -> Ran:
    """Append to the session `walk`."""
    return eventstore("append", "walk", *arguments, "--store", url)


def say(url: str, *arguments: str) -> Ran:
    """Append a message of a user to the session `walk`."""
    return append(url, "--role", "user", "--text", "And back?", *arguments)


def raw(url: str, session: str = "walk", *arguments: str) -> list[dict[str, Any]]:
    """Return the messages of the current branch."""
    messages: list[dict[str, Any]] = eventstore("show", session, "--raw", *arguments, "--store", url).records
    return messages


def fed(url: str, text: str, *arguments: str) -> Ran:
    """Append what stands on standard input, in a process of its own."""
    done = subprocess.run(
        [*COMMAND, "append", "walk", "--json", "-", *arguments, "--store", url],
        env=environment(),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_message_below_the_current_leaf(url: str) -> None:
    """A message is appended below the current leaf, and its id, version and position are printed."""
    (record,) = say(url).records
    assert {**record, "id": "…"} == {"session_id": "walk", "id": "…", "inserted": True, "version": 8, "position": 12}
    *_, before, last = raw(url)
    assert before["id"] == "m4"
    assert last == {"id": record["id"], "role": "user", "parts": [{"type": "text", "text": "And back?"}]}


def test_parent(url: str) -> None:
    """With --parent the message stands below that one, which a beginning of its id names."""
    assert say(url, "--parent", "m1").code == 0
    assert [message["id"] for message in raw(url)[:-1]] == ["m1"]
    for parent, error in {"m": "stands for more than one message", "x": "has no message 'x'"}.items():
        ran = say(url, "--parent", parent)
        assert (ran.code, ran.out) == (3 if parent == "x" else 2, "")
        assert error in ran.err


def test_expected_version(url: str) -> None:
    """With --expect the message is appended at that version alone; a conflict is exit code 4 and writes nothing."""
    assert say(url, "--expect", "7").code == 0
    ran = say(url, "--expect", "7")
    assert (ran.code, ran.out) == (4, "")
    error, hint = ran.err.splitlines()
    assert error == "error: session 'walk': expected version 7, found 8"
    assert hint.endswith(" what has come in between, then expect the version that was found")
    between = eventstore(*shlex.split(hint.split("`")[1])[1:]).records
    assert [(record["stream_id"], record["version"]) for record in between] == [("walk", 8)]
    assert len(eventstore("log", "walk", "--store", url).records) == 8


def test_version_that_is_not_there_yet(url: str) -> None:
    """A conflict with a version that the session has not reached, or with a new session, has a hint of its own."""
    for version, advice in {"99": "it has not come so far yet: `eventstore log walk", "0": "is there already"}.items():
        ran = say(url, "--expect", version)
        assert (ran.code, ran.out) == (4, "")
        assert ran.err.startswith(f"error: session 'walk': expected version {version}, found 7\nhint: ")
        assert advice in ran.err


def test_new_session(url: str) -> None:
    """A session that is not there is a failure, unless --expect 0 says that it is to begin, under this very name."""
    ran = eventstore("append", "new", "--role", "user", "--text", "Hi", "--store", url)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "error: there is no session 'new'\nhint: to begin a new session, add --expect 0\n"
    assert eventstore("append", "wal", "--expect", "0", "--role", "user", "--text", "Hi", "--store", url).code == 0
    assert len(raw(url, "wal")) == 1
    assert raw(url, "@") == raw(url, "wal")
    assert say(url, "--expect", "0").code == 4


def test_last_used_session_is_no_new_one(url: str) -> None:
    """A new session cannot be called @, which means the one used last, nor nothing at all."""
    for name, error in {"@": "@ means a session that is there", "": "the name of a SESSION is empty"}.items():
        ran = eventstore("append", name, "--expect", "0", "--role", "user", "--text", "Hi", "--store", url)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == f"error: {error}: a new one needs an id of its own\n"


def test_new_store(tmp_path: Path) -> None:
    """A store that is not there is made with its first session, and not without being asked for."""
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert say(url).code == 3
    assert list(tmp_path.glob("new.db*")) == []
    assert say(url, "--expect", "0").code == 0
    assert len(raw(url)) == 1


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda messages: json.dumps(messages, indent=2),
        lambda messages: "".join(json.dumps(message) + "\n" for message in messages),
        lambda messages: "\r\n\r\n".join(json.dumps(message, ensure_ascii=False) for message in messages),
    ],
    ids=["list", "indented list", "one per line", "blank lines between"],
)
def test_several_messages_on_stdin(url: str, write: Callable[[list[dict[str, Any]]], str]) -> None:
    """Messages on standard input are a list or one per line, and stand each below the one before it."""
    messages: list[dict[str, Any]] = [{"id": "a", **HELLO}, {"id": "b", "role": "assistant", "parts": [], "by": "京"}]
    ran = fed(url, write(messages))
    assert (ran.code, ran.err) == (0, "")
    assert [(record["id"], record["version"]) for record in ran.records] == [("a", 8), ("b", 9)]
    assert raw(url)[-2:] == messages


def test_one_message_from_a_file(url: str, tmp_path: Path) -> None:
    """A message in a file may stand over several lines, and one that is there already is not appended again."""
    file = tmp_path / "message.json"
    file.write_text(json.dumps({"id": "a", **HELLO}, indent=2), encoding="utf-8")
    first, second = (append(url, "--json", str(file)).records[0] for _ in range(2))
    assert (first["inserted"], second["inserted"]) == (True, False)
    assert {**first, "inserted": False} == second


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "standard input holds no message"),
        ("[]", "standard input holds no message"),
        ("{", "standard input, line 1: this is no JSON"),
        (f"{json.dumps(HELLO)}\n{{'a'}}", "standard input, line 2: this is no JSON"),
        ("[1]", "standard input, message 1: a message is an object"),
        ('{"role": "user"}', "standard input: parts is missing"),
        (f'{json.dumps(HELLO)}\n{{"role": "user"}}', "standard input, line 2: parts is missing"),
        (f'[{json.dumps(HELLO)}, {{"parts": []}}]', "standard input, message 2: role is missing"),
        ('{"role": null, "parts": []}', "standard input: role must be a string, not null"),
        ('{"role": 1, "parts": []}', "standard input: role must be a string, not a number"),
        ('{"role": "user", "parts": {}}', "standard input: parts must be a list, not an object"),
        ('{"role": "user", "parts": ["Hi"]}', "standard input: parts[0] must be an object, not a string"),
        ('{"role": "user", "parts": [{"type": "text"}, {}]}', "standard input: parts[1].type is missing"),
        ('{"role": "user", "parts": [{"type": true}]}', "parts[0].type must be a string, not a boolean"),
        ('{"role": "user", "parts": [], "x": NaN}', "x: nan is not a number that JSON has"),
        (
            f"[{json.dumps({'id': 'm9', **HELLO})}, {json.dumps({'id': 'm1', **HELLO})}]",
            "'m1' stands for another message",
        ),
    ],
)
def test_what_is_no_message(url: str, text: str, error: str) -> None:
    """What cannot be appended is one line that says why, and of several messages none is appended."""
    ran = fed(url, text)
    assert (ran.code, ran.out) == (1, "")
    assert error in ran.err.splitlines()[0]
    assert "m9" not in [message["id"] for message in raw(url)]


@pytest.mark.parametrize(
    "arguments",
    [[], ["--role", "user"], ["--text", "Hi"], ["--json", "-", "--role", "user"], ["--json", "-", "--text", "Hi"]],
    ids=" ".join,
)
def test_either_text_or_json(url: str, arguments: list[str]) -> None:
    """A message is given by role and text, or by JSON, and by nothing in between."""
    ran = append(url, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: give either --role and --text, or --json\nhint: as `eventstore append @ --role")


@pytest.mark.parametrize(
    ("role", "text", "option"), [("user", "", "--text"), ("user", " \n", "--text"), ("", "Hi", "--role")]
)
def test_blank_is_a_usage_error(url: str, role: str, text: str, option: str) -> None:
    """A message without a text, or from nobody, is a usage error, and nothing is appended."""
    ran = append(url, "--role", role, "--text", text)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {option} must not be blank\nhint: as `eventstore append @ --role user --text")
    assert len(raw(url)) == 4


def test_table(url: str) -> None:
    """For people what was appended is a table."""
    head, row = say(url, "--table").lines
    assert head.split() == ["ID", "VER", "POS", "NEW"]
    assert row.split()[1:] == ["8", "12", "yes"]
