"""Old payloads are lifted to the current schema when they are read, one step at a time; stored bytes never change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eventstore.errors import UpcasterError
from eventstore.events import EVENT_TYPES

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


class Upcasters:
    """The steps from each older schema of an event type to the next one."""

    def __init__(self, current: Mapping[str, int]) -> None:
        self._current = current
        self._steps: dict[tuple[str, int], Upcaster] = {}

    def register(self, type: str, from_schema: int, step: Upcaster) -> None:
        """Add the step from `from_schema` to the next; a second one for the same step is an UpcasterError."""
        if (type, from_schema) in self._steps:
            raise UpcasterError(type, from_schema, "a step from this schema is registered already")
        self._steps[type, from_schema] = step

    def check(self) -> None:
        """Raise UpcasterError where a step is missing, or one leads to a schema that does not exist."""
        for kind, schema in self._steps:
            if kind not in self._current:
                raise UpcasterError(kind, schema, "there is no such event type")
            if not 1 <= schema < self._current[kind]:
                raise UpcasterError(
                    kind, schema, f"a step from here leads past the current schema {self._current[kind]}"
                )
        for kind, current in self._current.items():
            for schema in range(1, current):
                if (kind, schema) not in self._steps:
                    raise UpcasterError(kind, schema, "no step leads on from this schema")

    def lift(self, type: str, schema: int, data: dict[str, Any]) -> dict[str, Any]:
        """The event's data in the current schema.

        Raises UpcasterError for a schema that this code does not know, and when a step fails.
        """
        current = self._current[type]
        if schema > current:
            raise UpcasterError(type, schema, f"newer than the current schema {current}")
        if schema < 1:
            raise UpcasterError(type, schema, "schemas count from 1")
        for step in range(schema, current):
            try:
                data = self._steps[type, step](data)
            except Exception as error:
                raise UpcasterError(type, step, f"the step from this schema failed: {error!r}") from error
        return data


UPCASTERS = Upcasters({name: kind.schema for name, kind in EVENT_TYPES.items()})


def register_upcaster(type: str, from_schema: int, fn: Upcaster) -> None:
    """Register how an event's data of `from_schema` becomes that of the next; checked when a store is opened.

    Raises UpcasterError when that step is registered already.
    """
    UPCASTERS.register(type, from_schema, fn)
