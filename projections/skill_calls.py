"""Calls of the skill tools as messages hold them: which part gave out a body, which gave one back, and the marker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

LOAD: Final = "load_context"
UNLOAD: Final = "unload_context"
"""The names of the tools. Each holds that of the loading one, so that a message without it has no such call."""

NAME_IN_JSON: Final = LOAD.encode()


class SkillCall(msgspec.Struct, frozen=True):
    """A call that went well: at which place among the parts, of which skill; `call_id` tells it from others."""

    place: int
    label: str
    key: str
    call_id: str
    unloads: bool


def not_found(key: str) -> str:
    """What the tool answers when there is no such skill."""
    return f"Not found: {key}"


def unloaded_marker(key: str) -> str:
    """What is shown in place of the body of a skill that was unloaded."""
    return f"[skill unloaded: {key}]"


def skill_calls(message: Mapping[str, Any]) -> Iterator[SkillCall]:
    """The calls of the skill tools in a message that gave a body out, or back; in order."""
    for place, part in enumerate(message["parts"]):
        kind = part["type"]
        name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
        given = part.get("input")
        if name not in (LOAD, UNLOAD) or not isinstance(given, dict):
            continue
        label, key, call_id = given.get("label"), given.get("key"), part.get("toolCallId")
        if not isinstance(label, str) or not isinstance(key, str) or not _went_well(part, key):
            continue
        yield SkillCall(place, label, key, call_id if isinstance(call_id, str) else f"#{place}", name == UNLOAD)


def with_marker(part: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part with the marker in place of the body that it holds."""
    return {**part, _body_name(part): unloaded_marker(key)}


def _body_name(part: Mapping[str, Any]) -> str:
    return "result" if part.get("output") is None and part.get("result") is not None else "output"


def _went_well(part: Mapping[str, Any], key: str) -> bool:
    answer = part.get(_body_name(part))
    if answer is None or part.get("state", "output-available") != "output-available":
        return False
    if not isinstance(answer, str):
        return True
    return answer not in (not_found(key), unloaded_marker(key)) and not answer.startswith("Error: ")
