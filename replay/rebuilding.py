"""Projections again from the log, offline: in one transaction, so that a reader sees the old or the new."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import NoneType

from eventstore.errors import InvalidArgumentError
from eventstore.log import fold
from eventstore.ports import Projection, Tx
from sessions.arguments import checked_store
from sessions.store import Store

Progress = Callable[[int, int], object]


async def rebuild(store: Store, names: Collection[str] | None = None, *, progress: Progress | None = None) -> int:
    """Empty the named projections (None: all) and fill them from the log; returns the number of events.

    `progress` is called, on the writer's thread, with a position and the last one. Appends of every process wait until
    it is done. Raises InvalidArgumentError for an unknown name.
    """
    checked_store(store)
    if isinstance(names, str) or not isinstance(names, (Collection, NoneType)):
        raise InvalidArgumentError("names", "must be a collection of projections' names")
    known = {projection.name: projection for projection in store.log.projections}
    for name in names or ():
        if name not in known:
            raise InvalidArgumentError("names", f"there is no projection {name!r}, only {', '.join(known)}")
    chosen: list[Projection] = [known[name] for name in (known if names is None else names)]
    end = await store.log.high_water()

    def again(tx: Tx) -> int:
        for projection in chosen:
            projection.reset(tx)
        return fold(tx, chosen, progress and (lambda position: progress(position, end)))

    return await store.log.database.write(again)
