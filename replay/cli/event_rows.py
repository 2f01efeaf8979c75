"""An event as a row of a list, and as a record for programs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from eventstore.envelope import Envelope
from replay.cli.output import Column, Output
from replay.cli.summaries import summary_of
from replay.cli.text import ShortIds, clock, label
from sessions.store import Store

LONGEST_USUAL_TYPE: Final = len("message_appended")


async def columns_of(store: Store, out: Output, stream_id: str | None) -> list[Column]:
    """The columns of a list of events: of one stream, or of all, which says the stream too."""
    from projections.overview import session_ids

    now = dt.datetime.now(dt.UTC)
    columns = [
        Column(title="POS", cell=lambda event: str(event["position"]), right=True, style="yellow"),
        Column(title="VER", cell=lambda event: str(event["version"]), right=True, spare=True),
        Column(title="TIME", cell=lambda event: clock(event["recorded_at"], now), spare=True),
        Column(title="TYPE", cell=lambda event: label(event["type"]), style="cyan", least=LONGEST_USUAL_TYPE),
        Column(title="SUMMARY", cell=lambda event: event["summary"], free=True),
    ]
    if stream_id is None and out.for_people:
        short = ShortIds(await store.log.read(session_ids))
        columns.insert(3, Column(title="SESSION", cell=lambda event: short(event["stream_id"])))
    return columns


def record_of(envelope: Envelope, patch: Sequence[str] | None = None) -> dict[str, Any]:
    """An event as a record, with the lines of its patch if there are any to be told."""
    record = {
        "position": envelope.position,
        "version": envelope.version,
        "recorded_at": envelope.recorded_at,
        "stream_id": envelope.stream_id,
        "type": envelope.type,
        "event_id": envelope.event_id,
        "summary": summary_of(envelope.event),
    }
    return record if patch is None else {**record, "patch": "\n".join(patch)}
