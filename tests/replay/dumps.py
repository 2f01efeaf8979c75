"""All that the projections of a store hold."""

from __future__ import annotations

from eventstore.statements import Row
from projections import Projection
from sessions.store import Store


async def dumps(store: Store) -> dict[str, list[Row]]:
    """Return every row of every projection."""
    own = [projection for projection in store.log.projections if isinstance(projection, Projection)]
    return await store.log.read(lambda tx: {projection.name: list(projection.dump(tx)) for projection in own})
