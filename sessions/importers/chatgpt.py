"""ChatGPT exports: each conversation is a mapping of nodes, most of which hold a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from sessions.importers.chatgpt_parts import (
    Record,
    is_call,
    is_hidden,
    is_reasoning,
    metadata_of,
    node_record,
    record_role,
    render,
)
from sessions.importers.conversation import Conversation, Problem, SourceMessage, content_id
from sessions.importers.document import Document, Entry
from sessions.importers.format import Format
from sessions.importers.links import log_order, numbered, repair, root_of
from sessions.importers.times import EPOCH, read_time, wire_time

NAME: Final = "chatgpt"
Nodes = dict[str, dict[str, Any]]


class Turn(msgspec.Struct):
    """A node whose message is stored, and what folded into it.

    `reasoning` and `results` are (node id, record) in the order from root to leaf; a turn of reasoning holds itself.
    """

    id: str
    record: Record
    role: str
    parent: str | None
    children: list[str] = []
    reasoning: list[tuple[str, Record]] = []
    results: list[tuple[str, Record]] = []


def recognises(value: object) -> bool:
    """Whether a value is a conversation of this format."""
    return _payload(value) is not None


def parse(document: Document) -> Iterator[Conversation | Problem]:
    """The conversations of an export, or the one conversation that a browser tool saved."""
    for item in document.read():
        if isinstance(item, Problem):
            yield item
            continue
        entry, value = item
        payload = _payload(value)
        if payload is None:
            yield document.problem(entry, "no conversation: it has no `mapping` of nodes")
        else:
            yield _conversation(payload, value, document.file, entry)


FORMAT: Final = Format(NAME, recognises, parse)


def _payload(value: object) -> dict[str, Any] | None:
    """The object with the mapping: the value itself, or what a capture tool wrapped."""
    if not isinstance(value, dict):
        return None
    for payload in (value, value.get("raw_provider_payload")):
        if isinstance(payload, dict) and isinstance(payload.get("mapping"), dict):
            return payload
    return None


def _conversation(payload: dict[str, Any], value: Any, file: str, entry: Entry) -> Conversation:
    nodes: Nodes = {key: node if isinstance(node, dict) else {} for key, node in payload["mapping"].items()}
    parents, repaired = _links(nodes)
    turns, places = _turns(nodes, parents)
    _fold_reasoning(turns, places)
    current = payload.get("current_node")
    leaf = places.get(current) if isinstance(current, str) else None
    own_ids = [source.get(key) for source in (payload, value) for key in ("conversation_id", "id")]
    title = payload.get("title")
    return Conversation(
        format=NAME,
        source_id=next((str(own) for own in own_ids if own), None) or content_id(value),
        title=title if title and isinstance(title, str) else None,
        messages=tuple(_message(turn, nodes[turn.id], repaired) for turn in turns.values()),
        leaf_id=leaf or _latest_leaf(turns, nodes),
        repaired_links=len(repaired),
        created_at=read_time(payload.get("create_time")),
        model=_model(turns, payload),
        metadata=_rest(value, payload),
        file=file,
        line=entry.line,
        index=entry.index,
    )


def _links(nodes: Nodes) -> tuple[dict[str, str | None], set[str]]:
    """Parent links as stated, repaired, and where none is stated filled in from the lists of children."""
    stated = {key: _stated_parent(node) for key, node in nodes.items()}
    listed: dict[str, str] = {}
    for key, node in nodes.items():
        children = node.get("children")
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str):
                listed.setdefault(child, key)
    if not listed and not any(parent is not None for parent in stated.values()):
        keys = list(nodes)
        return dict(zip(keys, [None, *keys], strict=False)), set()
    parents, repaired = repair(stated)
    # A link that would close a cycle is one whose parent already leads to the child: both have the same root.
    roots, numbers = numbered(parents), {key: number for number, key in enumerate(parents)}
    for number, (key, parent) in enumerate(stated.items()):
        if parent is None and key in listed and root_of(roots, numbers[listed[key]]) != number:
            parents[key], roots[number] = listed[key], numbers[listed[key]]
    return parents, repaired


def _stated_parent(node: Mapping[str, Any]) -> str | None:
    parent = node.get("parent")
    # A parent that is no text names no node: as text it is as unknown as it was.
    return parent if parent is None or isinstance(parent, str) else repr(parent)


def _turns(nodes: Nodes, parents: Mapping[str, str | None]) -> tuple[dict[str, Turn], dict[str, str | None]]:
    """The stored messages in log order, tool results folded into their calls, and each node's place among them."""
    turns: dict[str, Turn] = {}
    places: dict[str, str | None] = {}
    for key in log_order(parents):
        parent = parents[key]
        above = None if parent is None else places[parent]
        record = node_record(nodes[key])
        if record is None:
            places[key] = above
            continue
        role = record_role(record)
        if role == "tool" and above is not None and is_call(turns[above].record):
            turns[above].results.append((key, record))
            places[key] = above
            continue
        turns[key] = Turn(key, record, role, above)
        places[key] = key
        if above is not None:
            turns[above].children.append(key)
    return turns, places


def _fold_reasoning(turns: dict[str, Turn], places: dict[str, str | None]) -> None:
    """Fold reasoning into the assistant message that is its only child, from the leaves up."""
    taken_by: dict[str, str] = {}
    for key in reversed(list(turns)):
        turn = turns[key]
        if not is_reasoning(turn.record):
            continue
        turn.role = "assistant"
        only = turn.children[0] if len(turn.children) == 1 else key
        heir = turns[taken_by.get(only, only)]
        if heir is not turn and heir.role == "assistant":
            heir.parent = turn.parent
            taken_by[key] = heir.id
        else:
            heir = turn
        heir.reasoning.insert(0, (key, turn.record))
    for key, place in places.items():
        if place in taken_by:
            places[key] = taken_by[place]
    for key in taken_by:
        del turns[key]


def _latest_leaf(turns: Mapping[str, Turn], nodes: Nodes) -> str | None:
    """The leaf with the latest time of its own, of equals the last in the file."""
    inner = {turn.parent for turn in turns.values()}
    latest, newest = None, EPOCH
    for key in nodes:
        if key in turns and key not in inner:
            time = read_time(turns[key].record.get("create_time")) or EPOCH
            if time >= newest:
                latest, newest = key, time
    return latest


def _message(turn: Turn, node: Mapping[str, Any], repaired: set[str]) -> SourceMessage:
    parts, kept = render(turn.id, turn.record, turn.reasoning, turn.results)
    about = {key: value for key, value in node.items() if key not in {"id", "message", "parent", "children"}}
    if about:
        kept["node"] = about
    if turn.id in repaired:
        kept["parent"] = node.get("parent")
    message: dict[str, Any] = {"id": turn.id, "role": turn.role, "parts": parts}
    time = read_time(turn.record.get("create_time"))
    if time is not None:
        message["createdAt"] = wire_time(time)
    message["metadata"] = {NAME: kept}
    if is_hidden(turn.record):
        message["metadata"]["hidden"] = True
    return SourceMessage(message, turn.parent)


def _model(turns: Mapping[str, Turn], payload: Mapping[str, Any]) -> str | None:
    """The model that answered last; the conversation's own default may be no more than `auto`."""
    named = (metadata_of(turn.record).get("model_slug") for turn in reversed(list(turns.values())))
    models = (model for model in (*named, payload.get("default_model_slug")) if model and isinstance(model, str))
    return next(models, None)


def _rest(value: Mapping[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """What is said about the conversation beside its nodes; for a wrapped one also what the wrapper says."""
    kept = {key: item for key, item in payload.items() if key != "mapping"}
    if payload is not value:
        kept["wrapper"] = {key: item for key, item in value.items() if key != "raw_provider_payload"}
    return {NAME: kept}
