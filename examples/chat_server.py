"""A small server of chat completions, with a model that always answers alike: for trying out an agent, and for tests.

It speaks the part of OpenAI's API that `agent.py` needs: messages, tools, streaming by server-sent events, and the
refusal of messages that OpenAI refuses. The model is a handful of rules for what a user may say, and knows nothing but
what it is sent.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

PATH = "/v1/chat/completions"
PIECE = 12
"""The characters of a piece of an answer that is streamed."""

Json = dict[str, Any]


class RefusedError(Exception):
    """A request that is not as it must be."""


class Call(NamedTuple):
    """A tool that the model wants to be run, with its arguments."""

    name: str
    arguments: Json


class Reply(NamedTuple):
    """What the model answers: a text, or calls of tools."""

    text: str = ""
    calls: Sequence[Call] = ()


def check(request: Json) -> None:
    """Raise RefusedError for messages and tools that OpenAI would refuse, above all for half a pair of a tool."""
    waiting: set[str] = set()
    for place, message in enumerate(request.get("messages") or [{}]):
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                raise RefusedError(f"messages[{place}]: role 'tool' must answer a call of the message before")
            waiting.remove(message["tool_call_id"])
        elif waiting:
            raise RefusedError(f"messages[{place}]: the calls {sorted(waiting)} must be answered first")
        elif role not in {"system", "user", "assistant"}:
            raise RefusedError(f"messages[{place}]: there is no role {role!r}")
        calls = message.get("tool_calls") or []
        if not isinstance(content, str) and not (role == "assistant" and calls):
            raise RefusedError(f"messages[{place}]: content must be a string")
        waiting |= {call["id"] for call in calls}
    if waiting:
        raise RefusedError(f"the calls {sorted(waiting)} must be answered first")
    for place, tool in enumerate(request.get("tools") or []):
        function = tool.get("function") or {}
        if tool.get("type") != "function" or function.get("parameters", {}).get("type") != "object":
            raise RefusedError(f"tools[{place}] must be a function of an object")


def think(messages: Sequence[Json], *, with_tools: bool) -> Reply:
    """Answer what was said last: by a user, or by the tools that the model had run."""
    last = messages[-1]
    if last["role"] == "tool":
        return Reply(" ".join(_told_by_tools(messages)))
    if "<transcript>" in last["content"]:
        return Reply(_summary(last["content"]))
    calls = list(_calls(last["content"], _system(messages))) if with_tools else []
    if calls:
        return Reply(calls=calls)
    if "know about me" in last["content"]:
        facts = _facts(messages)
        return Reply("You told me: " + " ".join(facts) if facts else "You have not told me anything yet.")
    return Reply(f"I have no rule for that. I was sent {len(messages)} messages.")


def _calls(text: str, system: str) -> Iterator[Call]:
    if found := re.search(r"\bremember: ([^.]+\.)", text):
        yield Call("set_context", {"label": "memory", "content": found[1], "action": "append"})
    if found := re.search(r"\bnote of ([\w ]+): ([^.]+\.)", text):
        yield Call("set_context", {"label": "kb", "content": found[2], "metadata": {"title": found[1]}})
    if found := re.search(r"\blook up ([\w ]+)", text):
        yield Call("search_context", {"label": "kb", "query": found[1]})
    for key in re.findall(r"^- ([\w-]+): ", system, re.MULTILINE):
        if f"about {key}" in text:
            yield Call("load_context", {"label": "skills", "key": key})
    # As models do now and then: without what the tool needs, or a tool that nobody has.
    for name in re.findall(r"\bcall (\w+)", text):
        yield Call(name, {})


def _told_by_tools(messages: Sequence[Json]) -> Iterator[str]:
    answered = next(at for at in range(len(messages) - 1, -1, -1) if messages[at].get("tool_calls"))
    names = {call["id"]: call["function"]["name"] for call in messages[answered]["tool_calls"]}
    for message in messages[answered + 1 :]:
        written = names[message["tool_call_id"]] == "set_context" and not message["content"].startswith("Error")
        yield "I have written that down." if written else f"I found this: {' '.join(message['content'].split())}"


def _facts(messages: Sequence[Json]) -> list[str]:
    """Return what stands in the block `memory` of the system prompt, and what was written to it since."""
    block = re.search(r"^MEMORY\b.*\n═+\n((?:.+\n?)*)", _system(messages), re.MULTILINE)
    facts = block[1].splitlines() if block else []
    for message in messages:
        for call in message.get("tool_calls") or []:
            given = json.loads(call["function"]["arguments"])
            if given.get("label") == "memory":
                facts.append(given["content"])
    return list(dict.fromkeys(facts))


def _summary(prompt: str) -> str:
    earlier = re.search(r"<earlier-summary>\n(.*)\n</earlier-summary>", prompt, re.DOTALL)
    said = re.findall(r"^\[user\]\n(.+)$", prompt, re.MULTILINE)
    return " ".join([*([earlier[1]] if earlier else []), f"The user said: {' / '.join(said)}"])


def _system(messages: Sequence[Json]) -> str:
    return "\n".join(message["content"] for message in messages if message["role"] == "system")


def complete(request: Json) -> Json:
    """Answer a request whole, as a chat completion."""
    check(request)
    reply = think(request["messages"], with_tools=bool(request.get("tools")))
    digest = hashlib.sha256(json.dumps(request["messages"]).encode()).hexdigest()[:12]
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{digest}_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for number, call in enumerate(reply.calls)
        ]
    prompt, completion = (len(json.dumps(part)) // 4 for part in (request["messages"], message))
    return {
        "id": f"chatcmpl-{digest}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


def chunks(completion: Json, *, usage: bool) -> Iterator[Json]:
    """Yield a completion as the pieces that are streamed: arguments of calls are torn wherever it may be."""
    choice = completion["choices"][0]
    message = choice["message"]
    about = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        return {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(message["content"] or ""):
        yield chunk({"content": piece})
    for number, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        yield chunk({"tool_calls": [{**call, "index": number, "function": {**function, "arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    if usage:
        yield {**about, "choices": [], "usage": completion["usage"]}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


class Recorder:
    """Keeps what went over the wire: a line of JSON for each request, with its answer and the number of its pieces."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()

    def __call__(self, **exchange: Any) -> None:
        """Add a line."""
        if self._path is not None:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(exchange) + "\n")


class Handler(BaseHTTPRequestHandler):
    """Answers requests of one connection after the other."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *connection: Any, record: Recorder, pause: float) -> None:
        self._record = record
        self._pause = pause
        super().__init__(*connection)

    def do_POST(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != PATH:
            self._refuse(404, f"there is nothing at {self.path}")
            return
        request: Json = {}
        try:
            request = json.loads(body)
            completion = complete(request)
        except (RefusedError, ValueError) as error:
            self._record(request=request, refused=str(error))
            self._refuse(400, str(error))
            return
        streamed = list(_events(completion, request)) if request.get("stream") else []
        self._record(request=request, reply=completion, pieces=len(streamed))
        # Who asked may be gone by now.
        with contextlib.suppress(ConnectionError):
            if streamed:
                self._stream(streamed)
            else:
                self._answer(200, completion)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the base class's own signature
        """Say nothing of each request."""

    def _refuse(self, status: int, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})

    def _answer(self, status: int, value: Mapping[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Sequence[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for data in (*events, b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
            time.sleep(self._pause)


def _events(completion: Json, request: Json) -> Iterator[bytes]:
    usage = (request.get("stream_options") or {}).get("include_usage", False)
    for chunk in chunks(completion, usage=usage):
        yield b"data: %b\n\n" % json.dumps(chunk).encode()
    yield b"data: [DONE]\n\n"


def main() -> None:
    """Serve until Ctrl-C; the first line that is printed is the base URL for a client."""
    parser = argparse.ArgumentParser(description="A server of chat completions with a model that always answers alike.")
    parser.add_argument("--port", type=int, default=0, help="0, the default, is any that is free")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each piece of a streamed answer")
    parser.add_argument("--record", type=Path, help="a file that requests and answers are added to, as lines of JSON")
    options = parser.parse_args()
    handler = partial(Handler, record=Recorder(options.record), pause=options.pause)
    with ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
