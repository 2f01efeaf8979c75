"""Parts that are calls of tools, whichever way they say it."""

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
    """The type of a part; all calls of tools are of one kind."""
    kind = str(part["type"])
    return "tool" if kind == "dynamic-tool" or kind.startswith("tool-") else kind


def to_call(part: Part) -> ToolCall:
    """The call that a part of the kind `tool` is."""
    inner = part.get("toolInvocation")
    if part["type"] == "tool-invocation" and isinstance(inner, dict):
        part = {"type": "tool-invocation"} | {_OLD_NAMES.get(str(key), str(key)): inner[key] for key in inner}
    call_id = part.get("toolCallId")
    return ToolCall(
        call_id if isinstance(call_id, str) and call_id else None,
        str(part.get("toolName") or str(part["type"]).removeprefix("tool-")),
        {name: part[name] for name in ("input", "output", "result", "errorText") if name in part},
    )
