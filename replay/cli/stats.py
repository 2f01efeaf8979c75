"""`stats`: how much there is, by day, type, session and model."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from replay.cli.options import Run

if TYPE_CHECKING:
    from eventstore.ports import Tx
    from replay.cli.output import Column


class By(enum.StrEnum):
    """What events can be counted by."""

    DAY = "day"
    TYPE = "type"
    SESSION = "session"
    MODEL = "model"


SHOWN: Final = 10
"""How many rows of each table a person is shown, when all four are and no number is given."""


async def stats(
    run: Run,
    *,
    by: Annotated[By | None, typer.Option(help="Only by this.  [default: by all, one after the other]")] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "-n", "--number", metavar="N", min=1, help="Show so many of each at most: the newest days, else the most."
        ),
    ] = None,
) -> None:
    """Count events, bytes, tokens and cost.

    Events and bytes are counted by day, type and session, tokens and cost by model.
    """
    from projections.overview import session_ids
    from replay.cli.opening import reading
    from replay.cli.progress import progress

    chosen = list(By) if by is None else [by]
    most = SHOWN if number is None and by is None and run.out.for_people else number
    async with reading(run) as store, progress(run.out, "counting"):
        found = {kind: await store.log.read(partial(_read, kind=kind, most=most)) for kind in chosen}
        ids = await store.log.read(session_ids) if By.SESSION in chosen and run.out.for_people else ()
    if not run.out.for_people:
        with run.out.records() as add:
            for records, _ in found.values():
                for record in records:
                    add(record)
        return
    for number_of, (kind, (records, left_out)) in enumerate(found.items()):
        if number_of:
            run.out.print()
        with run.out.listing(_columns(kind, ids)) as add:
            for record in records:
                add(record)
        if left_out:
            run.out.notice(f"{left_out:,} more by {kind.value}: `{run.hint('stats', '--by', kind.value)}`")
        if not records:
            run.out.notice(f"nothing to count by {kind.value}")


def _read(tx: Tx, kind: By, most: int | None) -> tuple[Sequence[object], int]:
    """The first records, and how many more there are."""
    from projections.statistics import by_day, by_model, by_session, by_type

    reads: dict[By, Callable[[Tx], Iterator[object]]] = {
        By.DAY: by_day,
        By.TYPE: by_type,
        By.SESSION: by_session,
        By.MODEL: by_model,
    }
    records = reads[kind](tx)
    return list(islice(records, most and min(most, sys.maxsize))), sum(1 for _ in records)


def _columns(kind: By, ids: Collection[str]) -> Sequence[Column]:
    from replay.cli.output import Column
    from replay.cli.text import ShortIds, compact, label, one_line, size

    def count(title: str, field: str) -> Column:
        return Column(title=title, cell=lambda one: compact(getattr(one, field)), right=True)

    def named(title: str, cell: Callable[[Any], str]) -> Column:
        return Column(title=title, cell=cell, style="yellow", free=True)

    amounts = [count("EVENTS", "events"), Column(title="BYTES", cell=lambda one: size(one.bytes), right=True)]
    if kind is By.DAY:
        return [named("DAY", lambda one: one.day.isoformat()), *amounts]
    if kind is By.TYPE:
        return [named("TYPE", lambda one: label(one.type)), *amounts]
    if kind is By.SESSION:
        name = Column(title="NAME", cell=lambda one: one_line(one.name or "-"), free=True)
        short = ShortIds(ids)
        return [Column(title="SESSION", cell=lambda one: short(one.session), style="yellow"), name, *amounts]
    return [
        named("MODEL", lambda one: one_line(one.model or "-")),
        count("TIMES", "events"),
        count("INPUT", "input_tokens"),
        count("OUTPUT", "output_tokens"),
        Column(title="COST", cell=lambda one: f"{one.cost:,.2f}" if one.cost >= 1 else f"{one.cost:.3g}", right=True),
    ]
