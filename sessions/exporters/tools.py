"""Parts that are calls of tools or their results, whichever way they say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

Part = dict[str, Any]

_OLD_NAMES: Final = {"args": "input", "result": "output"}
"""What `input` and `output` were called when a call stood in an object of its own within the part."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call as its part has it: `given` holds those of input, output, result and errorText that there are."""

    id: str | None
    name: str
    given: dict[str, Any]

    @property
    def answer(self) -> Any:
        """What came of the call, msgspec.UNSET when nothing is known of it."""
        found = (self.given[name] for name in ("output", "result", "errorText") if name in self.given)
        return next(found, msgspec.UNSET)

    def results(self) -> Iterator[tuple[str, Any]]:
        """What came of the call, each under the word for it."""
        for name in ("output", "result", "errorText"):
            if name in self.given:
                yield "error" if name == "errorText" else "output", self.given[name]


def kind_of(part: Part) -> str:
    """The type of a part; all calls of tools and all results are of one kind."""
    kind = str(part["type"])
    return "tool" if kind == "dynamic-tool" or kind.startswith("tool-") else kind


def is_bare_result(part: Part) -> bool:
    """Whether a part is a result without its call; one with an input or a state is a call of a tool named "result"."""
    return part["type"] == "tool-result" and "input" not in part and "state" not in part


def is_call(part: Part, role: str) -> bool:
    """Whether a part of the kind `tool` in a message of a role is a call, else it is what came of one.

    Who is no assistant calls only with an input, as somebody does who has a tool run themselves.
    """
    if role == "assistant":
        return not is_bare_result(part)
    return part["type"] != "tool-result" and "input" in to_call(part).given


def to_call(part: Part) -> ToolCall:
    """The call that a part of the kind `tool` is, or that it is the result of; a bare result may have no name."""
    inner = part.get("toolInvocation")
    if part["type"] == "tool-invocation" and isinstance(inner, dict):
        part = {"type": "tool-invocation"} | {_OLD_NAMES.get(str(key), str(key)): inner[key] for key in inner}
    elif part["type"] == "tool-call" and "args" in part:
        part = {"input": part["args"]} | part
    call_id, name = part.get("toolCallId"), part.get("toolName")
    if not name and not is_bare_result(part):
        name = str(part["type"]).removeprefix("tool-")
    return ToolCall(
        call_id if isinstance(call_id, str) and call_id else None,
        str(name or ""),
        {name: part[name] for name in ("input", "output", "result", "errorText") if name in part},
    )


def answered(call: Part, result: Part) -> Part:
    """The part of a call without a result, with what came of it in another part."""
    given = to_call(result)
    inner = call.get("toolInvocation")
    if call["type"] == "tool-invocation" and isinstance(inner, dict):
        return call | {"toolInvocation": inner | {"state": "result", "result": given.answer}}
    word = next(word for word, _ in given.results())
    if word == "error" or result.get("isError") is True:
        return call | {"state": "output-error", "errorText": text_of(given.answer)}
    return call | {"state": "output-available", "output": given.answer}


def text_of(value: object) -> str:
    """A value as a text: what is none is JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
