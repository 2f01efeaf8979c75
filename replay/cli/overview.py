"""`ls`: the sessions of a store in a list."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replay.cli.options import Run

if TYPE_CHECKING:
    from projections.overview import Overview
    from replay.cli.output import Output
    from sessions.store import Store


class Sort(enum.StrEnum):
    """What sessions can be sorted by."""

    UPDATED = "updated"
    CREATED = "created"
    NAME = "name"
    MESSAGES = "messages"
    BRANCHES = "branches"
    EVENTS = "events"
    TOKENS = "tokens"


async def ls(
    run: Run,
    *,
    number: Annotated[
        int | None, typer.Option("-n", "--number", metavar="N", min=1, help="Show so many at most.")
    ] = None,
    sort: Annotated[
        Sort, typer.Option(help="Sort by this, the newest or most first; names from A to Z.")
    ] = Sort.UPDATED,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only sessions from this source, as an import's format.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("-q", "--query", metavar="TEXT", help="Only names or ids with this in them.")
    ] = None,
) -> None:
    """List the sessions."""
    from replay.cli.opening import reading

    async with reading(run) as store:
        ids, found = await _list(store, source, text)
    chosen = in_order(found, sort)[:number]
    print_overviews(run.out, chosen, ids, sort=sort)
    if not chosen and run.out.for_people:
        run.out.notice("no session is like that" if ids else "the store holds no session yet")


async def list_sessions(store: Store, out: Output) -> None:
    """Print all sessions, the newest first."""
    ids, found = await _list(store, None, None)
    print_overviews(out, found, ids)


async def overview_of(store: Store, session_id: str) -> Overview:
    """What `ls` shows of one session."""
    from eventstore.errors import SessionNotFoundError
    from projections.overview import find_overview

    found = await store.log.read(lambda tx: find_overview(tx, session_id))
    if found is None:
        raise SessionNotFoundError(session_id)
    return found


async def _list(store: Store, source: str | None, text: str | None) -> tuple[list[str], list[Overview]]:
    from projections.overview import list_overviews

    every = await store.log.read(lambda tx: list(list_overviews(tx)))
    found = [one for one in every if source in (None, one.source) and _holds(one, text)]
    return [one.id for one in every], found


def _holds(one: Overview, text: str | None) -> bool:
    return text is None or any(text.casefold() in said.casefold() for said in (one.name, one.id))


def in_order(sessions: Sequence[Overview], sort: Sort) -> list[Overview]:
    """The sessions sorted; what is equal stays in its order, the newest first."""
    if sort is Sort.UPDATED:
        return list(sessions)
    if sort is Sort.NAME:
        return sorted(sessions, key=lambda one: one.name.casefold())
    field = "created_at" if sort is Sort.CREATED else sort.value
    key: Callable[[Overview], Any] = lambda one: getattr(one, field)  # noqa: E731
    return sorted(sessions, key=key, reverse=True)


def print_overviews(
    out: Output, sessions: Sequence[Overview], ids: Collection[str], *, sort: Sort = Sort.UPDATED
) -> None:
    """Print a list of sessions; `ids` are those that a short one must be told apart from.

    Where a terminal has no room for both times, the one that the list is sorted by stays.
    """
    from replay.cli.output import Column
    from replay.cli.text import ShortIds, age, compact, one_line

    short = ShortIds(ids)
    now = dt.datetime.now(dt.UTC)
    columns = [
        Column(title="ID", cell=lambda one: short(one.id), style="yellow"),
        Column(title="NAME", cell=lambda one: one_line(one.name), free=True),
        Column(title="UPDATED", cell=lambda one: age(one.updated_at, now), spare=sort is Sort.CREATED),
        Column(title="CREATED", cell=lambda one: age(one.created_at, now), spare=sort is not Sort.CREATED),
        Column(title="MSGS", cell=lambda one: compact(one.messages), right=True),
        Column(title="BRANCHES", cell=lambda one: compact(one.branches), right=True),
        Column(title="EVENTS", cell=lambda one: compact(one.events), right=True),
        Column(title="TOKENS", cell=lambda one: compact(one.tokens), right=True),
        Column(title="SOURCE", cell=lambda one: one_line(one.source or "-")),
    ]
    with out.listing(columns) as add:
        for one in sessions:
            add(one)
