"""A small agent: it remembers, takes notes, reads skills, and has its conversation compacted when that grows too long.

    python examples/agent.py
    python examples/agent.py --store sqlite:///agent.db "Please remember: I get up late." "What do you know about me?"

It talks to the server that `OPENAI_BASE_URL` names, else to one of its own, `chat_server.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolUnionParam

from sessions import (
    DirectorySkills,
    Message,
    Session,
    SessionManager,
    StaticContext,
    Store,
    StoredSearch,
    create_compact_function,
    open_store,
)

HERE: Final = Path(__file__).resolve().parent
LINES: Final = (
    "Please remember: I draw houses.",
    "Tell me about sketching.",
    "Take a note of tram 28: Tram 28 leaves from Martim Moniz every ten minutes.",
    "Please remember: I get up late. And look up trams.",
    "What do you know about me?",
)
COMPACT_AFTER: Final = 400
"""The tokens after which the conversation is compacted: few, so that a short one gets there; 100,000 may be right."""
MOST_STEPS: Final = 8
"""How often the model may run tools before it has to answer."""


class Agent:
    """A model with a session: the one is sent what the other holds, and what it says is appended."""

    def __init__(self, store: Store, session_id: str, client: AsyncOpenAI, model: str) -> None:
        self._client = client
        self._model = model
        self._manager = SessionManager(store)
        self._session = (
            Session.create(store)
            .for_session(session_id)
            .with_context("soul", provider=StaticContext("You help people who travel and draw."))
            .with_context("memory", description="What you know about the user", max_tokens=200)
            .with_context("skills", provider=DirectorySkills(HERE / "skills"))
            .with_context("kb", description="Notes", provider=StoredSearch(store))
            .with_cached_prompt()
            .on_compaction(create_compact_function(summarize=self._summarize, protect_head=1, tail_token_budget=120))
            .compact_after(COMPACT_AFTER)
            .with_publisher(self)
        )

    async def turn(self, text: str) -> None:
        """Append what the user says, and have the model answer it, with as many tools as it wants to run first."""
        await self._session.append_message({"role": "user", "parts": [{"type": "text", "text": text}]})
        for _ in range(MOST_STEPS):
            if not await self._step():
                return

    async def _step(self) -> bool:
        """Ask the model once, run the tools that it wants, and append both; returns whether there were any."""
        session = self._session
        tools = await session.tools()
        system: ChatCompletionMessageParam = {"role": "system", "content": await session.freeze_system_prompt()}
        stream = await self._client.chat.completions.create(
            model=self._model,
            messages=[system, *to_chat(await session.get_model_messages())],
            tools=[cast("ChatCompletionToolUnionParam", tool.to_openai()) for tool in tools.values()],
            stream=True,
            stream_options={"include_usage": True},
        )
        answer = await Answer.read(stream)
        parts: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        for call_id, name, arguments in answer.calls:
            known = tools.get(name)
            output = await known.execute(arguments) if known else f"Error: there is no tool {name}"
            print(f"  [{name} {arguments}]")
            about = {"type": f"tool-{name}", "toolCallId": call_id, "state": "output-available"}
            parts.append({**about, "input": _value(arguments), "output": output})
        await session.append_message({"role": "assistant", "parts": parts})
        await self._manager.add_usage(session.session_id, answer.input_tokens, answer.output_tokens, 0.0)
        return bool(answer.calls)

    async def _summarize(self, prompt: str) -> str:
        completion = await self._client.chat.completions.create(
            model=self._model, messages=[{"role": "user", "content": prompt}]
        )
        return completion.choices[0].message.content or ""

    async def publish(self, channel: str, message: dict[str, Any]) -> None:
        """Take the session's live status: tell the person when it was compacted, or when that failed."""
        if "compacted" in message:
            before, now = message["compacted"]["tokensBefore"], message["tokenEstimate"]
            print(f"  ({channel}: compacted from {before} tokens to {now})")
        elif "error" in message:
            print(f"  ({channel}: {message['error']})")


class Answer:
    """What a model answered: its text, its calls as id, name and arguments, and the tokens that it took."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[tuple[str, str, str]] = []
        self.input_tokens = 0
        self.output_tokens = 0

    @classmethod
    async def read(cls, stream: AsyncIterable[ChatCompletionChunk]) -> Answer:
        """Read an answer to its end, and print its text as it comes."""
        answer = cls()
        calls: dict[int, list[str]] = {}
        async for chunk in stream:
            if chunk.usage is not None:
                answer.input_tokens, answer.output_tokens = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
            for choice in chunk.choices:
                answer.text += choice.delta.content or ""
                print(choice.delta.content or "", end="", flush=True)
                for piece in choice.delta.tool_calls or []:
                    call = calls.setdefault(piece.index, [piece.id or "", "", ""])
                    if piece.function is not None:
                        call[1] += piece.function.name or ""
                        call[2] += piece.function.arguments or ""
        answer.calls = [(call_id, name, arguments) for call_id, name, arguments in calls.values()]
        if answer.text:
            print()
        return answer


def to_chat(messages: Iterable[Message]) -> Iterator[ChatCompletionMessageParam]:
    """The messages of a session as OpenAI takes them: there the result of a tool is a message of its own."""
    for message in messages:
        if message.role != "assistant":
            yield {"role": "user", "content": message.text}
            continue
        tools = [part for part in message.parts if part["type"].startswith("tool-")]
        # The stub of a lost result comes alone: its call stands in the message before.
        calls = [part for part in tools if part["type"] != "tool-result"]
        if calls:
            yield {
                "role": "assistant",
                "content": message.text or None,
                "tool_calls": [
                    {
                        "type": "function",
                        "id": part["toolCallId"],
                        "function": {"name": part["type"].removeprefix("tool-"), "arguments": _text(part["input"])},
                    }
                    for part in calls
                ],
            }
        elif not tools:
            yield {"role": "assistant", "content": message.text}
        for part in tools:
            if "output" in part or "result" in part:
                content = _text(part["output"] if "output" in part else part["result"])
                yield {"role": "tool", "tool_call_id": part["toolCallId"], "content": content}


def _value(arguments: str) -> Any:
    """The arguments of a call as JSON, or as the model wrote them when they are none."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The base URL of the server that the environment names, else of one of our own, as long as the context lasts."""
    given = os.environ.get("OPENAI_BASE_URL")
    if given:
        yield given
        return
    command = [sys.executable, str(HERE / "chat_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


async def talk(base_url: str, model: str, store_url: str, session_id: str, lines: Iterable[str]) -> None:
    """Say some lines to an agent, one after the other."""
    key = os.environ.get("OPENAI_API_KEY", "none")
    async with AsyncOpenAI(base_url=base_url, api_key=key) as client, open_store(store_url) as store:
        agent = Agent(store, session_id, client, model)
        for line in lines:
            print(f"> {line}")
            await agent.turn(line)


def main() -> None:
    """Talk to the agent."""
    parser = argparse.ArgumentParser(description="A small agent with a memory, over a session store.")
    parser.add_argument(
        "lines", nargs="*", default=LINES, metavar="LINE", help="what to say to it, one after the other"
    )
    parser.add_argument("--store", default="sqlite://", metavar="URL", help="where to keep it; by default nowhere")
    parser.add_argument("--session", default="agent", metavar="ID", help="which conversation to go on with")
    parser.add_argument("--model", default=os.environ.get("OPENAI_MODEL", "rules"), help="by default $OPENAI_MODEL")
    options = parser.parse_args()
    with served() as base_url:
        asyncio.run(talk(base_url, options.model, options.store, options.session, options.lines))


if __name__ == "__main__":
    main()
