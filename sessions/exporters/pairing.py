"""Results of tools put into the calls that they answer, in whichever message they stand."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any

import msgspec

from eventstore.decoding import decode_json
from sessions.exporters.source import Source
from sessions.exporters.tools import Part, answered, is_call, kind_of, to_call

Data = dict[str, Any]
Place = tuple[str, int]
"""The id of a message, and the index of a part of it."""
Result = tuple[int, Place | None]
"""The index of a part, and the call that it answers."""


async def paired(source: Source, lone: Callable[[Part], Part | None] = lambda _: None) -> AsyncGenerator[Data, None]:
    """The messages of the path with each result in its call; a message that held nothing but those is left out.

    A result that no call waits for becomes what `lone` makes of it, None for nothing. In memory are a page of messages
    and what stands between a call and its result. Where calls wait the path is read twice, to know which do so in vain.
    """
    calls = _Calls()
    pairing = _Pairing(lone)
    in_vain: frozenset[Place] | None = None
    async for node in source.path():
        data = decode_json(node.json)
        opened, results = calls.fold(data)
        if opened and in_vain is None:
            in_vain = await _waiting_in_vain(source)
        waiting = [call for call in opened if call not in in_vain] if in_vain else opened
        for whole in pairing.take(data, waiting, results):
            yield whole
    for whole in pairing.rest():
        yield whole


async def _waiting_in_vain(source: Source) -> frozenset[Place]:
    calls = _Calls()
    async for node in source.path():
        # Most messages need not be decoded for this.
        if '"tool-' in node.json or '"dynamic-tool"' in node.json:
            calls.fold(decode_json(node.json))
    return calls.waiting()


class _Calls:
    """The calls that have no result so far, by their ids."""

    def __init__(self) -> None:
        # Those of one message together: the newest message that waits is answered first, its calls in their order.
        self._waiting: dict[str, list[deque[Place]]] = {}

    def waiting(self) -> frozenset[Place]:
        """The places of all calls without a result."""
        return frozenset(place for places in self._waiting.values() for some in places for place in some)

    def fold(self, data: Data) -> tuple[list[Place], list[Result]]:
        """The calls of the next message that wait for a result, and its results, each with the call it answers."""
        opened: list[Place] = []
        results: list[Result] = []
        for index, part in enumerate(data["parts"]):
            if kind_of(part) != "tool":
                continue
            call = to_call(part)
            has_answer = call.answer is not msgspec.UNSET
            # Whoever but an assistant says something of a call that waits says what came of it.
            by_other = data["role"] != "assistant" and call.id in self._waiting
            if not by_other and is_call(part, data["role"]):
                if call.id and not has_answer:
                    self._open(call.id, (data["id"], index))
                    opened.append((data["id"], index))
            else:
                results.append((index, self._answered(call.id) if has_answer else None))
        return opened, results

    def _open(self, call_id: str, place: Place) -> None:
        places = self._waiting.setdefault(call_id, [])
        if places and places[-1][0][0] == place[0]:
            places[-1].append(place)
        else:
            places.append(deque([place]))

    def _answered(self, call_id: str | None) -> Place | None:
        if call_id is None or call_id not in self._waiting:
            return None
        places = self._waiting[call_id]
        place = places[-1].popleft()
        if not places[-1]:
            places.pop()
        if not places:
            del self._waiting[call_id]
        return place


class _Held(msgspec.Struct, eq=False):
    """A message that is not given out before its calls have their results."""

    data: Data
    waits: int = 0
    has_results: bool = False


class _Pairing:
    """Holds messages until nothing in them waits."""

    def __init__(self, lone: Callable[[Part], Part | None]) -> None:
        self._lone = lone
        self._callers: dict[Place, _Held] = {}
        self._held: deque[_Held] = deque()

    def take(self, data: Data, waiting: Sequence[Place], results: Sequence[Result]) -> Iterator[Data]:
        """The messages that can go when the next one has come, with its calls that wait and the results in it."""
        message = _Held(data, len(waiting))
        self._held.append(message)
        self._callers |= dict.fromkeys(waiting, message)
        for index, answers in results:
            self._move(message, index, answers)
        while self._held and not self._held[0].waits:
            yield from _given_out(self._held.popleft())

    def rest(self) -> Iterator[Data]:
        """The messages with calls whose results were there at first and have been deleted since, and those behind."""
        for message in self._held:
            yield from _given_out(message)

    def _move(self, message: _Held, index: int, call: Place | None) -> None:
        parts = message.data["parts"]
        result = parts[index]
        caller = None if call is None else self._callers.pop(call, None)
        if call is None or caller is None:
            parts[index] = self._lone(result)
        else:
            # Taken out later: until then the index of each part is its place.
            parts[index] = None
            caller.data["parts"][call[1]] = answered(caller.data["parts"][call[1]], result)
            caller.waits -= 1
        message.has_results = True


def _given_out(message: _Held) -> Iterator[Data]:
    if message.has_results:
        message.data["parts"] = [part for part in message.data["parts"] if part is not None]
    if message.data["parts"] or not message.has_results:
        yield message.data
