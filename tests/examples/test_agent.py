from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from replay import verify
from sessions import Session, SessionManager, open_store
from tests.cli.running import ROOT, environment
from tests.docs.pages import blocks
from tests.docs.running import check_output

EXAMPLES = ROOT / "examples"
AGENT = (sys.executable, str(EXAMPLES / "agent.py"))
TOOLS = ["set_context", "load_context", "unload_context", "search_context"]


class Exchange(NamedTuple):
    """A request of the agent's, and what it was answered."""

    request: dict[str, Any]
    reply: dict[str, Any]
    pieces: int

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the messages that were sent, behind the system prompt."""
        found: list[dict[str, Any]] = self.request["messages"][1:]
        return found

    @property
    def prompt(self) -> str:
        """Return the system prompt."""
        first = self.request["messages"][0]
        assert first["role"] == "system"
        return str(first["content"])

    @property
    def answer(self) -> dict[str, Any]:
        """Return the message that was answered."""
        found: dict[str, Any] = self.reply["choices"][0]["message"]
        return found


class Server(NamedTuple):
    """A running chat server, and the file in which it keeps what went over the wire."""

    url: str
    record: Path

    def exchanges(self) -> list[Exchange]:
        """Return what went over the wire so far, of which nothing was refused."""
        lines = self.record.read_text(encoding="utf-8").splitlines()
        return [Exchange(**json.loads(line)) for line in lines]

    def streamed(self) -> list[Exchange]:
        """Return what went over the wire in turns of the conversation."""
        return [one for one in self.exchanges() if one.request.get("stream")]

    def talk(self, *arguments: str) -> str:
        """Run the agent in a process of its own, and return what it printed."""
        return run(*arguments, OPENAI_BASE_URL=self.url)


@contextlib.contextmanager
def serving(record: Path, *options: str) -> Iterator[Server]:
    """Start the chat server on a free port, in a process of its own."""
    command = [sys.executable, str(EXAMPLES / "chat_server.py"), "--record", str(record), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip(), record)
        finally:
            process.kill()


def run(*arguments: str, **more: str) -> str:
    """Run the agent as a person does, and return what it printed; it says nothing on stderr."""
    done = subprocess.run(
        [*AGENT, *arguments], env=environment(**more), capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(autouse=True)
def _nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test talk to another server than its own, or leave a file in the current folder."""
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a running chat server."""
    with serving(tmp_path / "wire.ndjson") as running:
        yield running


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """Return the URL of a store that is not there yet."""
    return f"sqlite:///{tmp_path / 'agent.db'}"


def results(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the tools among some messages gave."""
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_conversation_is_as_said() -> None:
    """Run by its name alone the agent starts a server, has the conversation of the README, and leaves no file."""
    (shown,) = (block.text for block in blocks(EXAMPLES / "README.md") if block.language == "text")
    check_output(shown, run(), "examples/README.md")
    assert list(Path.cwd().iterdir()) == []


async def test_what_is_stored(server: Server, store_url: str) -> None:
    """Everything that was said and done is stored: messages, tools with their results, memory, a note, a summary."""
    server.talk("--store", store_url)
    async with open_store(store_url) as store:
        session = Session.create(store).for_session("agent").with_context("memory")
        messages = [node.message async for node in session.tree()]
        kinds = [(one.role, [part["type"].removeprefix("tool-") for part in one.parts]) for one in messages]
        note, skill = ("user", ["text"]), ("assistant", ["load_context"])
        written, both = ("assistant", ["set_context"]), ("assistant", ["set_context", "search_context"])
        said = ("assistant", ["text"])
        assert kinds == [note, written, said, note, skill, said, note, written, said, note, both, said, note, said]
        assert messages[4].parts[0]["input"] == {"label": "skills", "key": "sketching"}
        assert "Halve it" in messages[4].parts[0]["output"]
        assert messages[10].parts[1]["output"] == "[tram-28]\nTram 28 leaves from Martim Moniz every ten minutes."
        memory = await session.get_context_block("memory")
        assert memory is not None
        assert memory.content == "I draw houses.\nI get up late."
        (compaction,) = await session.get_compactions()
        assert (compaction.from_message_id, compaction.to_message_id) == (messages[1].id, messages[7].id)
        assert compaction.summary.startswith("The user said: Tell me about sketching. / Take a note of tram 28")
        found = await session.search("martim moniz", order="newest")
        assert [hit.id for hit in found] == [messages[11].id, messages[6].id]
        info = await SessionManager(store).get("agent")
        assert info is not None
        used = [one.reply["usage"] for one in server.streamed()]
        assert info.input_tokens == sum(usage["prompt_tokens"] for usage in used)
        assert info.output_tokens == sum(usage["completion_tokens"] for usage in used)
        assert (await verify(store)).ok


def test_what_went_over_the_wire(server: Server) -> None:
    """Each request has the system prompt, all tools, and what was said so far, and its answer comes in pieces."""
    server.talk()
    exchanges = server.streamed()
    assert len(exchanges) == 9
    for one in exchanges:
        assert one.prompt.splitlines()[1] == "SOUL [readonly]"
        assert "- sketching: How to sketch a building in ten minutes" in one.prompt
        assert [tool["function"]["name"] for tool in one.request["tools"]] == TOOLS
        assert one.request["tools"][0]["function"]["parameters"]["required"] == ["label", "content"]
        assert one.pieces > 5
    for before, after in pairwise(exchanges[:7]):
        sent = [*before.messages, before.answer]
        assert after.messages[: len(sent)] == sent
        (come,) = {message["role"] for message in after.messages[len(sent) :]}
        assert come == ("tool" if before.answer.get("tool_calls") else "user")
    assert results(exchanges[6].messages)[0] == "Written to memory. Usage: 2% (4/200 tokens)"
    assert results(exchanges[6].messages)[1].startswith("1. Draw the largest outline first, lightly.\n2. Halve it")


def test_calls_at_once(server: Server) -> None:
    """Two calls in one answer are put together from their pieces, and both results go back, each to its call."""
    server.talk("Please remember: I get up late. And look up trams.")
    first, second = server.streamed()
    calls = first.answer["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["set_context", "search_context"]
    assert second.messages[1:] == [
        first.answer,
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "Written to memory. Usage: 3% (6/200 tokens)"},
        {"role": "tool", "tool_call_id": calls[1]["id"], "content": "No results found."},
    ]


def test_compaction_on_the_wire(server: Server) -> None:
    """The prompt stays the same to the letter until the compaction, and then has the memory, beside the summary."""
    server.talk()
    before, after = server.streamed()[:7], server.streamed()[7:]
    (asked,) = [one for one in server.exchanges() if not one.request.get("stream")]
    assert "[Tool: load_context]\nInput: " in asked.request["messages"][0]["content"]
    assert len({one.prompt for one in before}) == len({one.prompt for one in after}) == 1
    assert "I draw houses." not in before[0].prompt
    assert "tokens] [writable]" in after[0].prompt
    assert "I draw houses.\nI get up late." in after[0].prompt
    assert after[0].messages[:2] == [before[0].messages[0], {"role": "assistant", "content": asked.answer["content"]}]
    roles = [message["role"] for message in after[0].messages[2:]]
    assert roles == ["assistant", "user", "assistant", "tool", "tool"]


def test_goes_on_in_another_process(server: Server, store_url: str) -> None:
    """Another run with the same store sends the same prompt to the letter, and all that was said before."""
    server.talk("--store", store_url, "Please remember: I get up late.")
    printed = server.talk("--store", store_url, "What do you know about me?")
    assert printed.splitlines()[1] == "You told me: I get up late."
    *_, earlier, later = server.streamed()
    assert later.prompt == earlier.prompt
    assert later.messages[:-1] == [*earlier.messages, earlier.answer]
    assert "nothing yet" not in server.talk("--store", store_url, "--session", "other", "What do you know about me?")


async def test_goes_on_after_a_crash(server: Server, store_url: str) -> None:
    """A call whose result was never stored is sent with a stub of one, so that the model takes the messages again."""
    call = {"type": "tool-search_context", "toolCallId": "c1", "state": "input-available", "input": {"label": "kb"}}
    async with open_store(store_url) as store:
        session = Session.create(store).for_session("agent")
        await session.append_message({"role": "user", "parts": [{"type": "text", "text": "Look it up."}]})
        await session.append_message({"role": "assistant", "parts": [call]})
    server.talk("--store", store_url, "What do you know about me?")
    (sent,) = server.streamed()
    assert [message["role"] for message in sent.messages] == ["user", "assistant", "tool", "user"]
    assert results(sent.messages) == ["[Result from earlier conversation — see context summary above]"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("frobnicate", "Error: there is no tool frobnicate"), ("set_context", "Error: label must be a string")],
)
def test_calls_that_make_no_sense(server: Server, name: str, told: str) -> None:
    """A tool that is not there, or an input that it cannot use, is told to the model, and the conversation goes on."""
    printed = server.talk(f"Please call {name} now.")
    assert printed.splitlines()[1:] == [f"  [{name} {{}}]", f"I found this: {told}"]
    assert results(server.streamed()[1].messages) == [told]


def test_printed_as_it_comes(tmp_path: Path) -> None:
    """What the model says is printed piece by piece while it is still speaking."""
    with serving(tmp_path / "wire.ndjson", "--pause", "0.1") as slow:
        command = [*AGENT, "What do you know about me?"]
        with subprocess.Popen(command, env=environment(OPENAI_BASE_URL=slow.url), stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            seen: list[bytes] = []
            while piece := os.read(child.stdout.fileno(), 65_536):
                seen.append(piece)
        assert b"".join(seen).endswith(b"\nYou have not told me anything yet.\n")
        assert len(seen) > 2


USER = {"role": "user", "content": "Hello"}
ASKED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "done"}


@pytest.mark.parametrize(
    ("request_body", "reason"),
    [
        ({"messages": []}, "there is no role None"),
        ({"messages": [{"role": "robot", "content": ""}]}, "there is no role 'robot'"),
        ({"messages": [{"role": "assistant", "content": None}]}, "content must be a string"),
        ({"messages": [USER, TOLD]}, "must answer a call"),
        ({"messages": [USER, ASKED]}, "must be answered first"),
        ({"messages": [USER, ASKED, USER]}, "must be answered first"),
        ({"messages": [USER, ASKED, TOLD, TOLD]}, "must answer a call"),
        ({"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]}, "must be a function of an"),
    ],
)
def test_server_refuses(server: Server, request_body: Any, reason: str) -> None:
    """The server refuses what OpenAI refuses, so that a conversation that it takes proves something."""
    with (
        OpenAI(base_url=server.url, api_key="none") as client,
        pytest.raises(BadRequestError, match=reason),
    ):
        client.chat.completions.create(model="rules", **request_body)


def test_server_knows_one_path(server: Server) -> None:
    """Other calls of the API are not found."""
    with OpenAI(base_url=server.url, api_key="none") as client, pytest.raises(NotFoundError, match="there is nothing"):
        client.embeddings.create(model="rules", input="Hello")
