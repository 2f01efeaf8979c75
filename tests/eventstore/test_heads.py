"""What a writer remembers of streams, which is bounded, and what it does when it has forgotten."""

from __future__ import annotations

import pytest

from eventstore import heads
from eventstore.errors import VersionConflictError
from tests.eventstore.support import MEMORY, Tally, notes, opened, stream, texts_of


@pytest.mark.parametrize("kept", [0, 1, 3])
async def test_more_streams_than_are_remembered(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more streams than a writer remembers each goes on at its own version, and knows its repeats and conflicts."""
    monkeypatch.setattr(heads, "HEADS_KEPT", kept)
    names = [f"s{number}" for number in range(7)]
    async with opened(MEMORY, Tally()) as log:
        for version in range(3):
            for name in names:
                await log.append(name, notes(f"{name}.{version}"), expected=version, event_ids=[f"k{version}"])
        for name in names:
            assert len((await log.append(name, notes(f"{name}.1"), event_ids=["k1"])).envelopes) == 1
            with pytest.raises(VersionConflictError):
                await log.append(name, notes("x"), expected=2)
            assert texts_of(await stream(log, name)) == [f"{name}.{version}" for version in range(3)]
        assert await log.high_water() == 21
