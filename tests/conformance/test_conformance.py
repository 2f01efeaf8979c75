from __future__ import annotations

import argparse
import asyncio
import collections
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from sessions import open_store
from tests.conformance import run

HERE = Path(__file__).parent
AREAS = {
    "tree": 13,
    "update": 4,
    "delete": 10,
    "clear": 2,
    "isolation": 5,
    "concurrency": 2,
    "parts": 6,
    "compaction_overlay": 15,
    "recent_history": 8,
    "search_messages": 18,
    "storage_internals": 1,
    "random_tree": 9,
    "random_rough": 6,
    "tokens": 7,
    "manager": 20,
    "fork_split": 9,
    "random_manager": 7,
    "context_blocks": 18,
    "system_prompt": 12,
    "tools": 11,
    "skills": 11,
    "search_blocks": 7,
    "entry_key": 3,
    "provider": 2,
    "random_context": 7,
    "compact": 8,
    "auto_compact": 16,
    "broadcast": 10,
    "random_auto": 7,
    "boundaries": 6,
    "compact_function": 9,
    "sanitize": 6,
    "summary_prompt": 5,
    "truncate": 7,
}
"""The areas, with the number of their scenarios that hold here as they were recorded."""

DECIDED_OTHERWISE = {"skills/deleted-load-message"}
"""Scenarios that do not hold, for a rule of our own: deleting the last copy of a skill's body unloads it at once."""

NEED_A_FILE = {
    "tree/reopen-finds-leaf-created-in-same-second",
    "compaction_overlay/same-second-overlays-keep-insert-order",
    "search_messages/after-reopen",
    *(f"random/tree-{number}" for number in ("04", "07", "08", "09", "11", "12", "14", "15")),
    *(f"random/rough-{number}" for number in ("01", "06")),
    *(f"random/auto-{number}" for number in ("01", "04", "06", "08", "09", "10", "12")),
    *(f"random/context-{number}" for number in ("01", "02", "04", "06", "07", "11", "12")),
    "manager/persists-across-reopen",
    "manager/contexts-per-session",
    "system_prompt/cached-prompt-survives-reopen",
    "system_prompt/without-cache-reopen-rerenders",
    "skills/block-added-later-restores",
    "skills/restore-honours-unload-results",
    "skills/restore-order-load-unload-load",
    "skills/static-tool-part-with-tool-name",
}
"""The scenarios that open their store again, which one in memory does not survive."""

OVERRIDES = json.loads((HERE / "overrides.json").read_text(encoding="utf-8"))


def operations(scenario: Any) -> set[str]:
    """Return the calls of a scenario, as far as it is run."""
    steps = scenario["steps"][: run.override_of(scenario, OVERRIDES).get("cut_at")]
    return {step["op"] for step in steps}


SCENARIOS = [
    scenario
    for scenario in run.read_scenarios(HERE / "vectors")
    if scenario["area"] in AREAS
    and scenario["name"] not in DECIDED_OTHERWISE
    and run.is_wanted(scenario, run.override_of(scenario, OVERRIDES), "sqlite")
]


def outcome(scenario: Any, store: str) -> str:
    """Run a scenario; why it failed is printed."""
    options = argparse.Namespace(store=store, verbose=False)
    return asyncio.run(run.run_one(scenario, run.override_of(scenario, OVERRIDES), options))[0]


@pytest.fixture(autouse=True)
def _quick_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no commit wait for the disk, which a scenario cannot tell."""
    monkeypatch.setattr("sessions.open_store", functools.partial(open_store, synchronous="normal"))


@pytest.mark.parametrize("store", ["sqlite", "memory"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_scenario(scenario: Any, store: str) -> None:
    """A recorded scenario gives what was recorded, on a file and in memory."""
    expected = {"skipped"} if store == "memory" and scenario["name"] in NEED_A_FILE else {"passed", "in part"}
    assert outcome(scenario, store) in expected


def test_only_reopening_needs_a_file() -> None:
    """The scenarios that are not run in memory are exactly those that open their store again."""
    assert {s["name"] for s in SCENARIOS if "reopen" in operations(s)} == NEED_A_FILE


def test_no_scenario_is_lost() -> None:
    """Every area has as many scenarios as were recorded and not decided otherwise."""
    assert collections.Counter(scenario["area"] for scenario in SCENARIOS) == AREAS
