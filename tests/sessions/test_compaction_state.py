from __future__ import annotations

import gc
import weakref

from sessions.compaction_state import REMEMBERED, CompactionStates


def test_one_state_for_each_session() -> None:
    """A session has one state, whoever asks for it and however often, and no other session has it."""
    states = CompactionStates()
    assert states.of("a") is states.of("a")
    assert states.of("a") is not states.of("b")


def test_what_nobody_uses_is_forgotten_in_the_end() -> None:
    """Of the sessions that nobody uses only the newest are remembered, and one that is in use keeps its state."""
    states = CompactionStates()
    used, unused = states.of("used"), weakref.ref(states.of("unused"))
    for number in range(REMEMBERED - 1):
        states.of(f"s{number}")
    assert unused() is not None
    states.of("one more")
    gc.collect()
    assert unused() is None
    assert states.of("used") is used
