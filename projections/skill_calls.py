"""Calls of the skill tools as messages hold them: who asked for a body, which part gave one out, and the marker.

A call and its answer are one part, or the answer is a part of its own, in this message or a later one, and names the
call by its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from eventstore.decoding import decode_json
from eventstore.limits import clean_text

LOAD: Final = "load_context"
UNLOAD: Final = "unload_context"
"""The names of the tools. Each holds that of the loading one, so that a message without it has no such call."""

NAME_IN_JSON: Final = LOAD.encode()
CALL_ID_IN_JSON: Final = b'"toolCallId"'
"""What a message holds that has the call of a tool, or an answer to one."""

# Parts whose type says that they are a call or an answer, and not of which tool.
_BARE = frozenset({"dynamic-tool", "tool-call", "tool-result"})


class SkillCall(msgspec.Struct, frozen=True):
    """A call of a tool: at which place among the parts, and for which skill; None if it is not for one."""

    place: int
    call_id: str | None
    skill: tuple[str, str] | None
    """The label of a block and a key in it."""
    unloads: bool


class SkillAnswer(msgspec.Struct, frozen=True):
    """A part without a call that may be the answer to one; `unloads` is None when it does not say of which tool."""

    place: int
    call_id: str
    unloads: bool | None


def not_found(key: str) -> str:
    """What the tool answers when there is no such skill."""
    return f"Not found: {key}"


def unloaded_marker(key: str) -> str:
    """What is shown in place of the body of a skill that was unloaded."""
    return f"[skill unloaded: {key}]"


def skill_calls(message: Mapping[str, Any]) -> Iterator[SkillCall | SkillAnswer]:
    """The calls of a message, those of other tools too if they have an id, and the answers without a call; in order."""
    for place, part in enumerate(message["parts"]):
        kind = part["type"]
        if kind != "dynamic-tool" and not kind.startswith("tool-"):
            continue
        name = part.get("toolName") if kind in _BARE else kind.removeprefix("tool-")
        given, said_id = part.get("input"), part.get("toolCallId")
        call_id = said_id if isinstance(said_id, str) else None
        is_ours = name in (LOAD, UNLOAD)
        if given is None and (is_ours or name is None) and part.get(_body_name(part)) is not None:
            if call_id is not None:
                yield SkillAnswer(place, call_id, name == UNLOAD if is_ours else None)
        elif is_ours and (skill := _skill(given)) is not None:
            yield SkillCall(place, call_id, skill, name == UNLOAD)
        elif call_id is not None and message["role"] == "assistant":
            yield SkillCall(place, call_id, None, unloads=False)


def holds_answer(part: Mapping[str, Any], key: str) -> bool:
    """Whether a part holds the answer to a call that went well, and not a marker in its place."""
    answer = part.get(_body_name(part))
    if answer is None or part.get("state", "output-available") != "output-available":
        return False
    if not isinstance(answer, str):
        return True
    return answer not in (not_found(key), unloaded_marker(key)) and not answer.startswith("Error: ")


def with_marker(part: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part with the marker in place of the body that it holds."""
    return {**part, _body_name(part): unloaded_marker(key)}


def _body_name(part: Mapping[str, Any]) -> str:
    return "result" if part.get("output") is None and part.get("result") is not None else "output"


def _skill(given: object) -> tuple[str, str] | None:
    """The label and the key in an input, which some APIs give as JSON text."""
    if isinstance(given, str):
        try:
            given = decode_json(given)
        except (ValueError, RecursionError):
            return None
    if not isinstance(given, dict):
        return None
    label, key = given.get("label"), given.get("key")
    # No block and no skill has NUL in its name.
    if not isinstance(label, str) or not isinstance(key, str) or "\0" in label + key:
        return None
    return clean_text(label), clean_text(key)
