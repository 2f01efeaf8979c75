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
AREAS = {"tree": 13, "isolation": 5, "concurrency": 2, "parts": 6, "search_messages": 18, "tokens": 7}
"""The areas whose calls are built, with the number of their scenarios that hold here as they were recorded."""

CHANGES = {"update_message", "delete_messages"}
FOR_LATER = {
    "parts/unknown-message-fields-survive": "update_message",
    "search_messages/after-update": "update_message",
    "search_messages/after-delete": "delete_messages",
}
"""The scenarios of these areas that change a stored message, and the call that they miss."""

NEED_A_FILE = {"tree/reopen-finds-leaf-created-in-same-second", "search_messages/after-reopen"}
"""The scenarios that open their store again, which one in memory does not survive."""

OVERRIDES = json.loads((HERE / "overrides.json").read_text(encoding="utf-8"))
SCENARIOS = [
    scenario
    for scenario in run.read_scenarios(HERE / "vectors")
    if scenario["area"] in AREAS and run.is_wanted(scenario, run.override_of(scenario, OVERRIDES), "sqlite")
]


def operations(scenario: Any) -> set[str]:
    """Return the calls of a scenario, as far as it is run."""
    steps = scenario["steps"][: run.override_of(scenario, OVERRIDES).get("cut_at")]
    return {step["op"] for step in steps}


def outcome(scenario: Any, store: str) -> str:
    """Run a scenario; why it failed is printed."""
    options = argparse.Namespace(store=store, verbose=False)
    return asyncio.run(run.run_one(scenario, run.override_of(scenario, OVERRIDES), options))[0]


@pytest.fixture(autouse=True)
def _quick_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no commit wait for the disk, which a scenario cannot tell."""
    monkeypatch.setattr("sessions.open_store", functools.partial(open_store, synchronous="normal"))


@pytest.mark.parametrize("store", ["sqlite", "memory"])
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s["name"] not in FOR_LATER], ids=lambda s: s["name"])
def test_scenario(scenario: Any, store: str) -> None:
    """A recorded scenario gives what was recorded, on a file and in memory."""
    expected = {"skipped"} if store == "memory" and scenario["name"] in NEED_A_FILE else {"passed", "in part"}
    assert outcome(scenario, store) in expected


@pytest.mark.parametrize("store", ["sqlite", "memory"])
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s["name"] in FOR_LATER], ids=lambda s: s["name"])
def test_scenario_for_later(scenario: Any, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded scenario that changes a stored message holds up to the call that is still missing."""
    assert outcome(scenario, store) == "failed"
    assert (
        f"AttributeError: 'Session' object has no attribute '{FOR_LATER[scenario['name']]}'" in capsys.readouterr().out
    )


def test_only_changes_are_for_later() -> None:
    """The scenarios left for later are exactly those that update or delete a message."""
    assert {s["name"] for s in SCENARIOS if operations(s) & CHANGES} == set(FOR_LATER)


def test_only_reopening_needs_a_file() -> None:
    """The scenarios that are not run in memory are exactly those that open their store again."""
    assert {s["name"] for s in SCENARIOS if "reopen" in operations(s)} == NEED_A_FILE


def test_no_scenario_is_lost() -> None:
    """Every area has as many scenarios as were recorded and not decided otherwise."""
    assert collections.Counter(scenario["area"] for scenario in SCENARIOS) == AREAS
