"""Two copies of one turn, such as a client's and the stored one: whether they are that, and what they come to together.

A copy is outdated when a part of it is at an earlier state than in the other, when it lacks a call that has an outcome
there, or when it is the beginning of an answer that went on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from eventstore.same import same_json
from sessions.pairs import is_tool_part

Content = dict[str, Any]
"""A message as a dict."""

_Key = tuple[str, str | None, int]
_Parts = dict[_Key, dict[str, Any]]

_OUTCOMES = ("output", "result", "errorText")
_STATES: Final[Mapping[str, int]] = {
    "input-streaming": 0,
    "approval-requested": 2,
    "approval-responded": 3,
    "output-available": 4,
    "output-error": 4,
    "output-denied": 4,
}
_CALLED = 1
_ENDED = 4
_FILLED = 5


def is_same_call(one: Content, other: Content) -> bool:
    """Whether two messages hold one call, and in nothing that both of them hold contradict each other."""
    mine, theirs = _parts_of(one), _parts_of(other)
    common = mine.keys() & theirs.keys()
    calls = {key for key in common if _is_call(key)}
    if one["role"] != other["role"] or not calls:
        return False
    return all((_agree if key in calls else _overlap)(mine[key], theirs[key]) for key in common)


def is_same_turn(one: Content, other: Content) -> bool:
    """Whether two messages of different ids are one: by a call that both hold, else by their role and parts."""
    mine, theirs = _parts_of(one), _parts_of(other)
    if any(map(_is_call, (*mine, *theirs))):
        return is_same_call(one, other)
    said, again = _told(mine.values()), _told(theirs.values())
    return one["role"] == other["role"] and len(said) == len(again) and all(map(_agree, said, again))


def merged(stored: Content, given: Content) -> Content:
    """The stored message with what a client's copy of it changes; keys that the copy lacks stay, and so does its time.

    An outdated copy changes nothing: it can only complete the message.
    """
    have, news = _parts_of(stored), _parts_of(given)
    if _is_outdated(news, have, goes_on=stored["role"] == "assistant"):
        return completed(stored, given)
    return {**stored, **_without_identity(given)}


def completed(message: Content, copy: Content) -> Content:
    """The message with what a copy of it adds: parts at a later state, and the parts and keys that it has not."""
    have, news = _parts_of(message), _parts_of(copy)
    parts = [news[key] if key in news and _is_ahead(news[key], part) else part for key, part in have.items()]
    added = [part for key, part in news.items() if key not in have]
    # Where a step begins only some clients note down; by itself it is no news.
    return {**_without_identity(copy), **message, "parts": parts + (added if _told(added) else [])}


def restored(given: Content, stored: Content, shown: Content) -> Content:
    """A client's copy in which whatever comes back as it was shown is as it is stored, numbers to the last digit."""
    have, seen = _parts_of(stored), _parts_of(shown)
    parts = [have[key] if key in seen and _is_echo(part, seen[key]) else part for key, part in _parts_of(given).items()]
    others = {name: stored[name] for name, value in given.items() if name in stored and _is_echo(value, stored[name])}
    return {**given, **others, "parts": parts}


def _without_identity(message: Content) -> Content:
    return {name: value for name, value in message.items() if name not in ("id", "createdAt")}


def _parts_of(message: Content) -> _Parts:
    """The parts of a message by their type, a call's id, and how many of the same stand before them."""
    before: Counter[tuple[str, str | None]] = Counter()
    parts: _Parts = {}
    for part in message["parts"]:
        call_id = part.get("toolCallId")
        name = part["type"], call_id if is_tool_part(part) and isinstance(call_id, str) else None
        parts[*name, before[name]] = part
        before[name] += 1
    return parts


def _is_call(key: _Key) -> bool:
    return key[1] is not None


def _is_outdated(news: _Parts, have: _Parts, *, goes_on: bool) -> bool:
    for key, part in have.items():
        if _is_ahead(part, news[key]) if key in news else is_tool_part(part) and _stage(part) >= _ENDED:
            return True
    begun, whole = _told(news.values()), _told(have.values())
    # The shorter one ends the comparison.
    return goes_on and len(begun) < len(whole) and all(map(_agree, begun, whole))


def _told(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The parts without those that say where a step begins."""
    return [part for part in parts if part["type"] != "step-start"]


def _is_ahead(part: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a part is a later state of what the other is."""
    if is_tool_part(part):
        return _stage(part) > _stage(other)
    text, begun = part.get("text"), other.get("text")
    if other.get("state") != "streaming" or not isinstance(text, str) or not isinstance(begun, str):
        return False
    return text.startswith(begun) and (len(text) > len(begun) or part.get("state") != "streaming")


def _stage(part: Mapping[str, Any]) -> int:
    """How far a call has come; one with an outcome that is not preliminary has come to its end."""
    if any(part.get(name) is not None for name in _OUTCOMES):
        return _ENDED if part.get("preliminary") is True else _FILLED
    state = part.get("state")
    return _STATES.get(state, _CALLED) if isinstance(state, str) else _CALLED


def _agree(part: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether parts are the same, or one of them is a later state of the other."""
    if part["type"] != other["type"]:
        return False
    if is_tool_part(part):
        return part.get("toolCallId") == other.get("toolCallId") and _is_one_call(part, other)
    if isinstance(part.get("text"), str):
        return part["text"] == other.get("text") or _is_ahead(part, other) or _is_ahead(other, part)
    return _is_echo(part, other)


def _is_one_call(call: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether calls with one id are one: providers give an id again for another one."""
    compared = ["input"] if "input" in call and "input" in other else []
    if "input-streaming" in (call.get("state"), other.get("state")):
        compared = []
    if _stage(call) == _stage(other) == _FILLED:
        compared += _OUTCOMES
    return all(_is_echo(call.get(name), other.get(name)) for name in compared)


def _overlap(part: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether of two texts one goes on from the other; what is no text contradicts nothing."""
    text, begun = part.get("text"), other.get("text")
    if not isinstance(text, str) or not isinstance(begun, str):
        return True
    return text.startswith(begun) or begun.startswith(text)


def _is_echo(value: Any, other: Any) -> bool:
    """Whether values are equal to a client for which every number is a float, as it is in JavaScript."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_is_echo(item, other[name]) for name, item in value.items())
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_is_echo, value, other))
    if _is_number(value) and _is_number(other):
        try:
            return float(value) == float(other)
        except OverflowError:
            return bool(value == other)
    return same_json(value, other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
