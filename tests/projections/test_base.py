from __future__ import annotations

import pytest

from eventstore.errors import ProjectionError
from eventstore.events import LeafSelected
from projections import Projection
from tests.eventstore.support import MEMORY, created, notes, opened, stream


class Unfinished(Projection):
    """A projection that says which events it wants, and not what it does with them."""

    name = "unfinished"
    handles = (LeafSelected,)
    tables = ()


async def test_projection_without_apply_refuses_its_events() -> None:
    """A projection that was not finished fails the appends of its events by its name, and of no others."""
    async with opened(MEMORY, Unfinished()) as log:
        await log.append("s", [created("First")])
        with pytest.raises(ProjectionError) as refused:
            await log.append("s", notes("a"))
        assert refused.value.name == "unfinished"
        assert [envelope.type for envelope in await stream(log)] == ["session_created"]
