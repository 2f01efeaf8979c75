"""The JSON of whole sessions that this project exports: the same messages, branches, leaf and compactions again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from eventstore.errors import told
from sessions.exporters.json_tree import FORMAT as MARK
from sessions.exporters.json_tree import VERSION
from sessions.importers.conversation import Conversation, Problem, SourceMessage
from sessions.importers.document import Document, Entry
from sessions.importers.format import Format
from sessions.importers.links import log_order, repair

NAME: Final = "json"


class _Session(msgspec.Struct, frozen=True):
    id: str
    name: str
    parent_session_id: str | None = None
    model: str | None = None
    created_at: dt.datetime | None = None


class _Identified(msgspec.Struct, frozen=True):
    id: str


class _Node(msgspec.Struct, frozen=True):
    message: dict[str, Any]
    parent_id: str | None = None


class _Compaction(msgspec.Struct, frozen=True):
    id: str
    summary: str
    from_message_id: str
    to_message_id: str
    created_at: str | None = None
    stale: bool = False


class _Tree(msgspec.Struct, frozen=True):
    version: int
    session: _Session
    messages: list[_Node]
    current_leaf: str | None = None
    compactions: list[_Compaction] = []


def recognises(value: object) -> bool:
    """Whether a value is a session of this format, of whichever version."""
    return isinstance(value, dict) and value.get("format") == MARK


def parse(document: Document) -> Iterator[Conversation | Problem]:
    """The sessions of a file, each as it was exported; one that is not whole is left out as a whole."""
    for item in document.read():
        if isinstance(item, Problem):
            yield item
            continue
        entry, value = item
        if not isinstance(value, dict) or not recognises(value):
            yield document.problem(entry, f"no session: its format is not {MARK}")
        elif value.get("version") != VERSION:
            yield document.problem(entry, f"not version {VERSION} of {MARK}, the one that can be read here")
        else:
            yield from _session(document, entry, value)


FORMAT: Final = Format(NAME, recognises, parse)


def _session(document: Document, entry: Entry, value: dict[str, Any]) -> Iterator[Conversation | Problem]:
    try:
        tree = msgspec.convert(value, _Tree)
        nodes: dict[str, _Node] = {}
        for node in tree.messages:
            nodes.setdefault(msgspec.convert(node.message, _Identified).id, node)
    except msgspec.ValidationError as error:
        yield document.problem(entry, f"not as it was exported: {error}")
        return
    parents, repaired = repair({key: node.parent_id for key, node in nodes.items()})
    overlays: list[dict[str, Any]] = []
    for compaction in tree.compactions:
        if _on_one_path(parents, compaction):
            overlays.append(msgspec.structs.asdict(compaction))
        else:
            yield document.problem(
                entry, f"compaction {told(compaction.id)} has no ends on one path, and is left out", skipped=False
            )
    session = tree.session
    yield Conversation(
        format=NAME,
        source_id=session.id,
        title=session.name,
        parent_source_id=session.parent_session_id,
        messages=tuple(SourceMessage(nodes[key].message, parents[key]) for key in log_order(parents)),
        leaf_id=tree.current_leaf if tree.current_leaf in nodes else next(reversed(nodes), None),
        overlays=tuple(overlays),
        repaired_links=len(repaired),
        created_at=_aware(session.created_at),
        model=session.model,
        metadata={NAME: value["session"]},
        file=document.file,
        line=entry.line,
        index=entry.index,
    )


def _on_one_path(parents: Mapping[str, str | None], compaction: _Compaction) -> bool:
    at: str | None = compaction.to_message_id if compaction.to_message_id in parents else None
    while at is not None and at != compaction.from_message_id:
        at = parents[at]
    return at is not None


def _aware(time: dt.datetime | None) -> dt.datetime | None:
    return time.replace(tzinfo=dt.UTC) if time is not None and time.tzinfo is None else time
