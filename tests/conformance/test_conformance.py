from __future__ import annotations

import argparse
import asyncio
import collections
import functools
import json
import re
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
    "manager": 18,
    "fork_split": 9,
    "random_manager": 7,
    "context_blocks": 18,
    "system_prompt": 12,
    "tools": 11,
    "skills": 11,
    "search_blocks": 7,
    "entry_key": 3,
    "provider": 2,
}
"""The areas whose calls are built, with the number of their scenarios that hold here as they were recorded."""

NOT_BUILT = {"on_compaction", "compact_after", "on_compaction_error", "token_counter", "broadcaster"}
"""The settings of sessions and managers that a scenario of these areas may ask for too early."""

FOR_LATER = {"manager": 2, "random_context": 7}
"""How many scenarios of these areas do."""

DECIDED_OTHERWISE = {"skills/deleted-load-message"}
"""Scenarios that do not hold, for a rule of our own: deleting the last copy of a skill's body unloads it at once."""

NEED_A_FILE = {
    "tree/reopen-finds-leaf-created-in-same-second",
    "compaction_overlay/same-second-overlays-keep-insert-order",
    "search_messages/after-reopen",
    *(f"random/tree-{number}" for number in ("04", "07", "08", "09", "11", "12", "14", "15")),
    *(f"random/rough-{number}" for number in ("01", "06")),
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


def settings(scenario: Any) -> set[str]:
    """Return what the sessions and managers of a scenario are opened with."""
    opening = [step["args"] for step in scenario["steps"] if step["op"].startswith("open_")]
    # Over a session provider a scenario's sessions have no publisher, whatever it says.
    given = [(args, name) for args in opening for name, value in args.items() if value]
    return {name for args, name in given if name != "broadcaster" or args.get("storage") != "provider"}


def is_built(scenario: Any) -> bool:
    """Return whether everything that a scenario asks for is there."""
    return not NOT_BUILT & settings(scenario)


WANTED = [
    scenario
    for scenario in run.read_scenarios(HERE / "vectors")
    if scenario["area"] in AREAS | FOR_LATER
    and scenario["name"] not in DECIDED_OTHERWISE
    and run.is_wanted(scenario, run.override_of(scenario, OVERRIDES), "sqlite")
]
SCENARIOS = [scenario for scenario in WANTED if is_built(scenario)]
LATER = [scenario for scenario in WANTED if not is_built(scenario)]


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


@pytest.mark.parametrize("scenario", LATER, ids=lambda s: s["name"])
def test_scenario_for_later(scenario: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded scenario that is left out holds up to a call that is still missing."""
    assert outcome(scenario, "sqlite") == "failed"
    assert re.search(r"  AttributeError: 'Session(Manager)?' object has no attribute", capsys.readouterr().out)


def test_only_reopening_needs_a_file() -> None:
    """The scenarios that are not run in memory are exactly those that open their store again."""
    assert {s["name"] for s in SCENARIOS if "reopen" in operations(s)} == NEED_A_FILE


def test_no_scenario_is_lost() -> None:
    """Every area has as many scenarios as were recorded and not decided otherwise."""
    assert collections.Counter(scenario["area"] for scenario in SCENARIOS) == AREAS
    assert collections.Counter(scenario["area"] for scenario in LATER) == FOR_LATER
