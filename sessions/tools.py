"""A tool as a model is given it: a name, a description, a schema, and what it does with an input."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from eventstore.decoding import decode_json
from eventstore.errors import LONGEST_TOLD
from eventstore.limits import clean_text
from sessions.characters import cut_text

NO_RESULTS = "No results found."

LONGEST_ERROR = 2_000
"""How many characters of an error a model is told; one of a provider may hold all that it was given."""

Input = Mapping[str, Any]


class ToolError(Exception):
    """What a tool tells the model about an input that it cannot use."""


class Tool(msgspec.Struct, frozen=True):
    """Something that a model may call; `run` gives the answer to an input."""

    name: str
    description: str
    input_schema: dict[str, Any]
    run: Callable[[Input], Awaitable[str]]

    async def execute(self, input: object) -> str:  # noqa: A002 - what it is called in the field
        """The answer for the model, a text, whatever the input is: an object, or its JSON as some APIs give it.

        What goes wrong is told in the text. Lone surrogates are replaced by U+FFFD, in the input and in the answer.
        """
        try:
            return clean_text(await self.run(_checked(input, self.input_schema)))
        except Exception as error:  # noqa: BLE001 - the model gets to know of it, and may do better
            return clean_text(f"Error: {shortened(str(error), LONGEST_ERROR)}")

    def to_openai(self) -> dict[str, Any]:
        """The tool for the `tools` of OpenAI's Chat Completions API."""
        about = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": about}

    def to_anthropic(self) -> dict[str, Any]:
        """The tool for the `tools` of Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}


def shortened(name: str, longest: int = LONGEST_TOLD) -> str:
    """A name as an answer tells it: the beginning of a long one."""
    return name if len(name) <= longest else f"{cut_text(name, longest)}…"


def schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON schema of an object with these properties."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def string(description: str, *choices: str) -> dict[str, Any]:
    """The JSON schema of a text, or of one of some texts."""
    about: dict[str, Any] = {"type": "string", "description": description}
    return {**about, "enum": list(choices)} if choices else about


def _checked(given: object, wanted: Mapping[str, Any]) -> Input:
    """The input with every required text in it; raises ToolError."""
    if isinstance(given, str | bytes):
        try:
            given = decode_json(given)
        except (ValueError, RecursionError):
            raise ToolError("the input is not JSON") from None
    if not isinstance(given, Mapping):
        raise ToolError("the input must be an object")
    for name in wanted["required"]:
        if not isinstance(given.get(name), str):
            raise ToolError(f"{name} must be a string")
    return {**given, **{name: clean_text(given[name]) for name in wanted["required"]}}
