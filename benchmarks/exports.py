"""A made-up ChatGPT export, for when no real one is at hand."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus, text_of

CONVERSATIONS = 250
TURNS = (10, 50)
BRANCH_SHARE = 0.1
START = 1_700_000_000.0

Node = dict[str, Any]


def write_export(path: Path, *, seed: int) -> None:
    """Write conversations in which some answers were asked for again, each answer a branch."""
    corpus = Corpus(seed)
    chance = random.Random(seed)
    conversations = [_conversation(number, corpus, chance) for number in range(CONVERSATIONS)]
    path.write_text(json.dumps(conversations), encoding="utf-8")


def _conversation(number: int, corpus: Corpus, chance: random.Random) -> dict[str, Any]:
    started = START + number * 86_400
    mapping: dict[str, Node] = {}

    def add(parent: str | None, message: dict[str, Any] | None) -> str:
        node_id = f"node-{number}-{len(mapping)}"
        mapping[node_id] = {"id": node_id, "message": message, "parent": parent, "children": []}
        if message is not None:
            message |= {"id": node_id, "create_time": started + len(mapping) * 20}
        if parent is not None:
            mapping[parent]["children"].append(node_id)
        return node_id

    leaf = add(None, None)
    leaf = add(leaf, _message("system", "", {"is_visually_hidden_from_conversation": True}))
    for turn in range(chance.randint(*TURNS)):
        role = "assistant" if turn % 2 else "user"
        answers = 2 if role == "assistant" and chance.random() < BRANCH_SHARE else 1
        parent = leaf
        for message in corpus.messages(answers):
            leaf = add(parent, _message(role, text_of(message), {"model_slug": "gpt-4o"} if turn % 2 else {}))
    return {
        "title": corpus.text()[:40],
        "create_time": started,
        "update_time": started + len(mapping) * 20,
        "mapping": mapping,
        "current_node": leaf,
        "conversation_id": f"conversation-{number}",
    }


def _message(role: str, text: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": metadata,
        "recipient": "all",
    }
