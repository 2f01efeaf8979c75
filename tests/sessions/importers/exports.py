"""Exports made by hand, and what is read from them."""

from __future__ import annotations

import json
from typing import Any

from sessions.importers import Conversation
from sessions.importers.chatgpt import parse
from sessions.importers.document import read_document

Node = dict[str, Any]


def said(role: str, *parts: object, time: object = 1_700_000_000, **more: object) -> Node:
    """Return a message of an export."""
    content = {"content_type": "text", "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "create_time": time, "recipient": "all", **more}


def mapping_of(*nodes: tuple[str, str | None, Node | None]) -> dict[str, Node]:
    """Return a mapping of nodes, each given by its id, its parent and its message, with the lists of children."""
    mapping: dict[str, Node] = {}
    for key, parent, message in nodes:
        mapping[key] = {"id": key, "message": message, "parent": parent, "children": []}
    for key, parent, _ in nodes:
        if parent in mapping:
            mapping[parent]["children"].append(key)
    return mapping


def read(mapping: object, **more: object) -> Conversation:
    """Return the conversation that an export with this mapping holds."""
    return read_value({"conversation_id": "c1", "mapping": mapping, **more})


def read_value(value: object) -> Conversation:
    """Return the one conversation of an export."""
    (found,) = parse(read_document("export.json", json.dumps([value]).encode()))
    assert isinstance(found, Conversation)
    return found


def tree(conversation: Conversation) -> dict[str, str | None]:
    """Return the parent of every message, in log order."""
    return {item.id: item.parent_id for item in conversation.messages}


def parts(conversation: Conversation, key: str) -> list[dict[str, Any]]:
    """Return the parts of one message."""
    (found,) = (item.message["parts"] for item in conversation.messages if item.id == key)
    assert isinstance(found, list)
    return found


HIDDEN = {"is_visually_hidden_from_conversation": True}
PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 2}


def thought() -> Node:
    """Return a message that is reasoning."""
    content = {"content_type": "thoughts", "thoughts": [{"summary": "S", "content": "C"}], "content": None}
    return said("assistant") | {"content": content}
