"""The numbers that a fixture's `expected.json` promises, counted from messages, wherever they were read from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures" / "shared"


def export_in(folder: Path) -> Path:
    """Return the one export in a fixture's folder, or the folder if there are several files to import together."""
    found = [file for file in folder.iterdir() if file.name not in {"expected.json", "SOURCE.json"}]
    return found[0] if len(found) == 1 else folder


def matched(numbers: list[dict[str, Any]], expected: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return numbers without the ids that were made up for what has none of its own in the source."""
    own = [promised["source_id"] for promised in expected["per_conversation"]]
    if len(own) != len(numbers):
        return numbers
    return [one if name else {**one, "source_id": None} for one, name in zip(numbers, own, strict=True)]


def expected_of(folder: Path) -> dict[str, Any]:
    """Return what an import of a fixture must give."""
    promised: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["import"]
    return promised


def count(
    messages: Sequence[tuple[Mapping[str, Any], str | None]], leaf: str | None, path: Sequence[str]
) -> dict[str, Any]:
    """Count messages, each given in its wire form with its parent's id, and the path to the current leaf."""
    parents = {message["id"]: parent for message, parent in messages}
    children = Counter(parent for parent in parents.values() if parent is not None)
    parts = [part for message, _ in messages for part in message["parts"]]
    tools = [part for part in parts if part["type"] == "dynamic-tool" or part["type"].startswith("tool-")]
    times = sorted(message["createdAt"] for message, _ in messages if "createdAt" in message)
    return {
        "messages": len(messages),
        "roles": dict(Counter(message["role"] for message, _ in messages)),
        "tool_parts": len(tools),
        "tool_outputs": sum(part["state"] in {"output-available", "output-error"} for part in tools),
        "reasoning_parts": sum(part["type"] == "reasoning" for part in parts),
        "file_parts": sum(part["type"] == "file" for part in parts),
        "roots": sum(parent is None for parent in parents.values()),
        "branch_points": sum(number > 1 for number in children.values()),
        "leaves": sum(message not in children for message in parents),
        "path_messages": len(path),
        "current_leaf_source_id": leaf,
        "first_timestamp": times[0] if times else None,
        "last_timestamp": times[-1] if times else None,
    }


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the root to a leaf, by parent links."""
    path = []
    while leaf is not None:
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]
