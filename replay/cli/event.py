"""`event`: one event whole, what it came from and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from replay.cli.options import Run

if TYPE_CHECKING:
    from eventstore import Envelope
    from eventstore.ports import Tx
    from replay.cli.output import Output
    from sessions.store import Store

SHOWN: Final = 20
"""How many related events are told to a person; programs get all."""
ENVELOPE: Final = (
    "position",
    "stream_id",
    "version",
    "type",
    "schema",
    "event_id",
    "recorded_at",
    "payload_digest",
    "hash",
    "unreadable",
    "correlation_id",
    "causation_id",
    "stale",
)
WIDTH: Final = len("payload_digest") + 2
STYLES: Final = {"position": "yellow", "type": "cyan", "unreadable": "red"}


async def event(
    run: Run,
    name: Annotated[
        str, typer.Argument(metavar="POSITION|ID", help="The event's position, its id, or the beginning of the id.")
    ],
) -> None:
    """Show one event whole.

    That is its envelope, payload and metadata, what it changed, its cause and its effects.
    """
    from replay.cli.naming import find_event
    from replay.cli.opening import reading
    from replay.cli.patches import Patches
    from replay.cli.related import CAUSATION, CORRELATION, cause_of, effects_of

    async with reading(run) as store:
        position = await find_event(run, store, name)
        envelope, payload = await store.log.read(partial(_read, position=position))
        record = {
            **_envelope(envelope),
            "payload": payload,
            "metadata": envelope.metadata,
            "patch": "\n".join(await Patches(store.log).lines(envelope)),
            "correlation_id": envelope.metadata.get(CORRELATION),
            "causation_id": envelope.metadata.get(CAUSATION),
            "cause": await cause_of(store.log, envelope),
            "effects": await effects_of(store.log, envelope),
            "stale": await _is_stale(store, envelope),
        }
    if run.out.for_people:
        _tell(run.out, record)
    else:
        run.out.value(record)


def _read(tx: Tx, position: int) -> tuple[Envelope, Any]:
    """The event at a position, and the fact as it is stored: as JSON, as text when it is none, None when erased."""
    from sqlalchemy import bindparam, select

    from eventstore.decoding import decode_json
    from eventstore.errors import IntegrityError
    from eventstore.rows import find_position
    from eventstore.statements import Statement
    from eventstore.tables import events

    envelope = find_position(tx, position)
    if envelope is None:
        raise IntegrityError(f"the event at position {position} belongs to no stream")
    stored = Statement(select(events.c.payload).where(events.c.position == bindparam("position")), "position")
    ((text,),) = tx.fetch(stored, (position,))
    if text is None:
        return envelope, None
    try:
        return envelope, decode_json(text)["event"]
    except (ValueError, LookupError, TypeError):
        return envelope, text


async def _is_stale(store: Store, envelope: Envelope) -> bool | None:
    """Whether a message that a compaction covers was updated since; None for what is no compaction, or not any more."""
    from eventstore.events import CompactionAdded
    from sessions.stored import StoredSession

    fact = envelope.event
    if not isinstance(fact, CompactionAdded):
        return None
    compactions = await StoredSession(store, envelope.stream_id).get_compactions()
    return next((compaction.stale for compaction in compactions if compaction.id == fact.id), None)


def _envelope(envelope: Envelope) -> dict[str, Any]:
    from eventstore.envelope import UnreadableEvent

    fact = envelope.event
    return {
        "position": envelope.position,
        "stream_id": envelope.stream_id,
        "version": envelope.version,
        "type": envelope.type,
        "schema": envelope.schema,
        "event_id": envelope.event_id,
        "recorded_at": envelope.recorded_at,
        "payload_digest": envelope.payload_digest.hex(),
        "hash": envelope.hash.hex(),
        "unreadable": fact.reason if isinstance(fact, UnreadableEvent) else None,
    }


def _tell(out: Output, record: dict[str, Any]) -> None:
    from rich.text import Text

    from replay.cli.text import label

    for name in ENVELOPE:
        value = record[name].isoformat() if name == "recorded_at" else record[name]
        if value is not None:
            out.print(Text(f"{name:{WIDTH}}", style="dim").append(label(str(value)), style=STYLES.get(name, "default")))
    _tell_json(out, "payload", record["payload"])
    _tell_json(out, "metadata", record["metadata"])
    _head(out, "what it changed")
    out.patch(record["patch"].split("\n"))
    _tell_related(out, "cause", record["cause"])
    _tell_related(out, "effects", record["effects"])


def _head(out: Output, title: str) -> None:
    from rich.text import Text

    out.print()
    out.print(Text(title, style="bold"))


def _tell_json(out: Output, title: str, value: object) -> None:
    import msgspec

    from replay.cli.text import visible

    if value in (None, {}):
        return
    _head(out, title)
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    out.print(visible(text))


def _tell_related(out: Output, title: str, related: Sequence[dict[str, Any]]) -> None:
    from replay.cli.output import Column
    from replay.cli.text import label

    if not related:
        return
    _head(out, title)
    columns = [
        Column(title="POS", cell=lambda one: str(one["position"]), right=True, style="yellow"),
        Column(title="RELATION", cell=lambda one: one["relation"]),
        Column(title="TYPE", cell=lambda one: label(one["type"]), style="cyan"),
        Column(title="SUMMARY", cell=lambda one: one["summary"], free=True),
    ]
    with out.listing(columns) as add:
        for one in related[:SHOWN]:
            add(one)
    if len(related) > SHOWN:
        out.print(f"… and {len(related) - SHOWN:,} more, which --json has")
