from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessions.importers import Problem
from sessions.importers.chatgpt import parse
from sessions.importers.document import read_document
from tests.sessions.importers.exports import (
    tree,
)

KEYS = st.sampled_from([f"k{number}" for number in range(6)])
SCALARS: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JUNK = SCALARS | st.lists(SCALARS | st.dictionaries(KEYS, SCALARS, max_size=2), max_size=2)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return objects in which any field may be missing or be something else."""
    return st.fixed_dictionaries({}, optional={name: values | JUNK for name, values in fields.items()}) | JUNK


CONTENT = maybe(
    content_type=st.sampled_from(
        ["text", "thoughts", "reasoning_recap", "code", "image_asset_pointer", "system_error"]
    ),
    parts=st.lists(JUNK | maybe(content_type=st.just("image_asset_pointer"), asset_pointer=JUNK), max_size=3),
    thoughts=st.lists(maybe(summary=JUNK, content=JUNK), max_size=2),
    content=JUNK,
    text=JUNK,
)
MESSAGES = maybe(
    author=maybe(role=st.sampled_from(["user", "assistant", "tool", "system"])),
    content=CONTENT,
    recipient=st.sampled_from(["all", "web"]),
    metadata=maybe(
        attachments=st.lists(maybe(id=JUNK, name=JUNK), max_size=2),
        citations=st.lists(maybe(metadata=maybe(url=JUNK, title=JUNK)), max_size=2),
        content_references=JUNK,
    ),
    create_time=JUNK,
    weight=JUNK,
)
MAPPINGS = st.dictionaries(
    KEYS, maybe(message=st.none() | MESSAGES, parent=st.none() | KEYS, children=st.lists(KEYS, max_size=3)), max_size=6
)


def is_log_order(links: Iterable[tuple[str, str | None]]) -> bool:
    """Tell whether every parent stands before its children."""
    seen: set[str | None] = {None}
    return all(parent in seen and not seen.add(key) for key, parent in links)  # type: ignore[func-returns-value]


@given(mapping=MAPPINGS, current=KEYS | JUNK)
def test_any_mapping_makes_a_tree(mapping: dict[str, Any], current: object) -> None:
    """Any mapping is read to a tree whose tip is one of its messages, and every message has parts."""
    data = json.dumps({"mapping": mapping, "current_node": current}, allow_nan=True).encode()
    for found in parse(read_document("export.json", data)):
        if isinstance(found, Problem):
            assert b"NaN" in data or b"Infinity" in data
            continue
        links = tree(found)
        assert is_log_order(links.items())
        assert (found.leaf_id in links) == bool(links)
        assert all(item.message["parts"] for item in found.messages)
