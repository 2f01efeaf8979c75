"""The catalogue of events in docs/reference/events.md, made from the events themselves.

`python -m tests.docs.catalogue` writes it into the page again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import msgspec

from eventstore.events import EVENT_TYPES, Event
from projections import ContextBlocks, ContextEntries, Directory, Imports, MessageTree, SearchIndex, Skills
from tests.docs.pages import REFERENCE

PAGE = REFERENCE / "events.md"
BEGIN = "<!-- made from eventstore/events.py by `python -m tests.docs.catalogue` -->"
END = "<!-- end of what is made -->"
PROJECTIONS = (MessageTree, SearchIndex, Skills, ContextBlocks, ContextEntries, Directory, Imports)

_KINDS: dict[type[msgspec.inspect.Type], str] = {
    msgspec.inspect.StrType: "string",
    msgspec.inspect.NoneType: "null",
    msgspec.inspect.IntType: "whole number",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.DateTimeType: "ISO-8601 time",
    msgspec.inspect.DictType: "object",
    msgspec.inspect.RawType: "JSON, as it came in",
}


def catalogue() -> str:
    """Return the entries of all events, as they stand in the page."""
    return "\n".join(line for kind in EVENT_TYPES.values() for line in _entry(kind))


def written() -> str:
    """Return the entries that the page has."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN + "\n\n")[2].partition("\n" + END)[0]


def _entry(kind: type[Event]) -> Iterator[str]:
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    yield f"### `{info.tag}`"
    yield ""
    yield f"Class `{kind.__name__}`, schema {kind.schema}. {inspect.cleandoc(kind.__doc__ or '')}"
    yield ""
    yield "| key | value | |"
    yield "| --- | --- | --- |"
    yield f"| `type` | `{info.tag}` | always there |"
    for field in info.fields:
        yield f"| `{field.encode_name}` | {_kind(field.type)} | {_presence(field)} |"
    handlers = [known.name for known in PROJECTIONS if info.tag in known.handles]
    yield ""
    yield f"Folded by: {', '.join(f'`{handler}`' for handler in handlers)}."
    yield ""


def _kind(info: msgspec.inspect.Type) -> str:
    if isinstance(info, msgspec.inspect.UnionType):
        return " or ".join(_kind(one) for one in info.types)
    if isinstance(info, msgspec.inspect.ListType):
        return f"list of {_kind(info.item_type)}s"
    return _KINDS[type(info)]


def _presence(field: msgspec.inspect.Field) -> str:
    return "always there" if field.required else f"left out when {msgspec.json.encode(field.default).decode()}"


def main() -> None:
    """Write the catalogue into the page."""
    text = PAGE.read_text(encoding="utf-8")
    made = f"{BEGIN}\n\n{catalogue()}\n{END}"
    PAGE.write_text(re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: made, text, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    main()
