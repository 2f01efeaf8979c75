"""What is stored against what the log promises: the hash chain, whole versions, projections equal to a fresh fold."""

from __future__ import annotations

import hashlib
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from sqlalchemy import LargeBinary, bindparam, cast, select

from eventstore import migrations, rows
from eventstore.database import Database
from eventstore.dialect import dialect_of, file_url
from eventstore.envelope import NO_HASH, Envelope, chain_hash, digest_of, header_of
from eventstore.errors import ProjectionError, SessionNotFoundError
from eventstore.group import apply
from eventstore.limits import check_id
from eventstore.ports import Deferred, Tx
from eventstore.statements import Row, Statement
from eventstore.tables import events, streams
from projections import Projection
from sessions.arguments import checked_store
from sessions.store import Store

Progress = Callable[[int, int], object]
PAGE = 2_000
SHOWN = 5
"""How many differing rows of a projection are reported one by one."""

_columns = (
    events.c.position,
    streams.c.stream_id,
    events.c.version,
    events.c.event_id,
    events.c.type,
    events.c.schema,
    events.c.recorded_at,
    events.c.salt,
    # As bytes, so that damage which leaves no valid text is found like any other.
    cast(events.c.payload, LargeBinary),
    events.c.payload_digest,
    events.c.hash,
)
_joined = select(*_columns).join_from(events, streams, events.c.stream_no == streams.c.stream_no)
_ALL = Statement(
    _joined.where(events.c.position > bindparam("after")).order_by(events.c.position).limit(bindparam("page")),
    "after",
    "page",
)
_OF_STREAM = Statement(
    _joined.where(events.c.stream_no == bindparam("stream_no"), events.c.version > bindparam("after"))
    .order_by(events.c.version)
    .limit(bindparam("page")),
    "stream_no",
    "after",
    "page",
)
_STREAMS = Statement(
    select(streams.c.stream_id, streams.c.version, streams.c.hash, streams.c.recorded_at).order_by(streams.c.stream_no)
)
_STRAY = Statement(
    select(events.c.position, events.c.version)
    .where(events.c.stream_no.not_in(select(streams.c.stream_no)))
    .order_by(events.c.position)
)


class Problem(msgspec.Struct, frozen=True):
    """A promise that does not hold: its kind, where, and what was found.

    Kinds: `payload` (text and digest differ), `chain` (a hash does not follow from the one before), `version` (a hole
    or a repeat), `stream` (a stream's head is not its last event), `guard` (a trigger that keeps the log append-only
    is missing), `projection` (a table is not what the log says).
    """

    kind: str
    stream_id: str | None
    version: int | None
    position: int | None
    detail: str


class Report(msgspec.Struct, frozen=True):
    """The outcome of a verification: `events` were looked at, `erased` of them hold no content any more."""

    ok: bool
    events: int
    erased: int
    problems: list[Problem]


async def verify(store: Store, session_id: str | None = None, *, progress: Progress | None = None) -> Report:
    """Check the chain and the versions of all streams, or of one session, and the projections against a fresh fold.

    Writers may go on meanwhile: what is checked is the state at one moment. Of one session those tables are compared
    that know streams, the text index is not. `progress` is called with a position and the last one. Raises
    SessionNotFoundError for a session without events.
    """
    checked_store(store)
    stream_no = None
    if session_id is not None:
        session_id = check_id(session_id, "session_id", store.limits)
        stream_no, version = await store.log.read(partial(rows.find_stream, stream_id=session_id))
        if version == 0:
            raise SessionNotFoundError(session_id)
    chain = _Chain(stream_no, session_id)
    end = await store.log.high_water()
    while page := await store.log.read(chain.next_page):
        chain.check(page)
        if progress:
            progress(chain.position, max(end, chain.position))
    # What was appended meanwhile is looked at in the same state as the heads it must agree with.
    chain.finish(*await store.log.read(chain.rest))
    problems = chain.problems + await store.log.read(_missing_guards)
    problems += await _check_projections(store, stream_no)
    return Report(ok=not problems, events=chain.events, erased=chain.erased, problems=problems)


def _missing_guards(tx: Tx) -> list[Problem]:
    missing = tx.dialect.missing_guards(tx, events.name)
    return [Problem("guard", None, None, None, f"trigger {name} is gone: rows can be changed") for name in missing]


class _Chain:
    """Follows the hash chain of every stream at once, each event from the hash that is stored for the one before."""

    def __init__(self, stream_no: int | None, only: str | None) -> None:
        self.problems: list[Problem] = []
        self.events = 0
        self.erased = 0
        self.position = 0
        self._stream_no = stream_no
        self._only = only
        self._last_version = 0
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._times: dict[str, int] = {}

    # Reads change nothing of this: they may be run again.

    def next_page(self, tx: Tx) -> list[Row]:
        """The next events; none when there are no more."""
        return self._page(tx, self.position, self._last_version)

    def rest(self, tx: Tx) -> tuple[list[Row], list[Row], list[Row]]:
        """All the events that are left, the streams' heads, and the events that belong to no stream."""
        left: list[Row] = []
        while page := self._page(tx, *((left[-1][0], left[-1][2]) if left else (self.position, self._last_version))):
            left += page
        return left, tx.fetch(_STREAMS), tx.fetch(_STRAY) if self._only is None else []

    def check(self, page: Sequence[Row]) -> None:
        """Check the next events."""
        for row in page:
            self._check(row)

    def finish(self, left: Sequence[Row], heads: Sequence[Row], stray: Sequence[Row]) -> None:
        """Check what is left, then compare the streams' heads with what was found."""
        self.check(left)
        for stream_id, version, last_hash, recorded_at in heads:
            if self._only not in (None, stream_id):
                continue
            found = self._heads.get(stream_id, (0, NO_HASH))
            if found == (version, last_hash) and self._times.get(stream_id) != recorded_at:
                detail = "said to end at another time than its last event"
                self.problems.append(Problem("stream", stream_id, version, None, detail))
            if found != (version, last_hash):
                same = " with another hash" if found[0] == version else ""
                detail = f"said to end at version {version}, but the last event is version {found[0]}{same}"
                self.problems.append(Problem("stream", stream_id, version, None, detail))
        for position, version in stray:
            self.problems.append(Problem("stream", None, version, position, "the event belongs to no stream"))

    def _page(self, tx: Tx, position: int, version: int) -> list[Row]:
        if self._stream_no is None:
            return tx.fetch(_ALL, (position, PAGE))
        return tx.fetch(_OF_STREAM, (self._stream_no, version, PAGE))

    def _check(self, row: Row) -> None:
        position, stream_id, version, event_id, kind, schema, recorded_at, salt, payload, digest, stored = row
        last_version, previous = self._heads.get(stream_id, (0, NO_HASH))
        if version != last_version + 1:
            self._report("version", row, f"follows version {last_version}")
        if payload is None:
            self.erased += 1
        elif not _holds(lambda: digest_of(salt or b"", payload) == digest):
            self._report("payload", row, "the payload is not the one that was hashed")
        header = (stream_id, version, event_id, kind, schema, recorded_at)
        if not _holds(lambda: chain_hash(previous, header_of(*header), digest) == stored):
            self._report("chain", row, "the hash does not follow from this event and the one before")
        self._heads[stream_id] = (version if isinstance(version, int) else last_version + 1, stored)
        self._times[stream_id] = recorded_at
        self._last_version = version
        self.position = position
        self.events += 1

    def _report(self, kind: str, row: Row, detail: str) -> None:
        self.problems.append(Problem(kind, row[1], row[2], row[0], detail))


def _holds(equation: Callable[[], bool]) -> bool:
    """Whether an equation over stored columns holds; it does not when one of them holds another kind of value."""
    try:
        return equation()
    except (AttributeError, TypeError, ValueError, struct.error):
        return False


async def _check_projections(store: Store, stream_no: int | None) -> list[Problem]:
    """Fold the log into tables of a scratch database and compare; one state of the store against one of the scratch."""
    known = [projection for projection in store.log.projections if isinstance(projection, Projection)]
    with tempfile.TemporaryDirectory() as folder:
        scratch = await Database.open(dialect_of(file_url(Path(folder) / "fold.db"), synchronous="normal"))
        try:
            await scratch.write(lambda tx: migrations.migrate(tx, known))
            comparison = _Comparison(store, scratch, known, stream_no)
            for projection in known:
                await comparison.compare(projection)
        finally:
            await scratch.close()
    return comparison.problems


class _Comparison:
    """The store's projections beside those that the scratch database gets from the log, which is read once."""

    def __init__(self, store: Store, scratch: Database, known: Sequence[Projection], stream_no: int | None) -> None:
        self.problems: list[Problem] = []
        self._store = store
        self._scratch = scratch
        self._folded = list(known)
        self._stream_no = stream_no
        self._position = 0

    async def compare(self, projection: Projection) -> None:
        """Compare one projection, and report what differs or why that cannot be told."""
        try:
            if not await self._is_equal(projection, partial(_fingerprint, projection, self._stream_no)):
                listing = partial(_listing, projection, self._stream_no)
                end, found = await self._store.log.read(listing)
                await self._fold(end)
                self.problems += _differences(projection, found, (await self._scratch.read(listing))[1])
        except Exception as error:  # noqa: BLE001 - damage can break its readers in any way
            self._report(projection.name, f"cannot be compared: {type(error).__name__}")

    async def _is_equal(self, projection: Projection, dump: Callable[[Tx], tuple[int, bytes]]) -> bool:
        end, stored = await self._store.log.read(dump)
        await self._fold(end)
        return projection not in self._folded or stored == (await self._scratch.read(dump))[1]

    async def _fold(self, end: int) -> None:
        while self._position < end:
            page, last = await self._store.log.read(partial(rows.page_of_all, after=self._position, types=None))
            wanted = [e for e in page if e.position <= end and self._stream_no in (None, e.stream_no)]
            while not await self._apply(wanted):
                pass
            # Events that belong to no stream are not read: the last ones may be such.
            self._position = end if last == self._position else min(last, end)

    async def _apply(self, page: Sequence[Envelope]) -> bool:
        """Fold a page; a projection that cannot is reported and left out, and then the others have yet to do it."""
        try:
            await self._scratch.write(partial(_apply_all, self._folded, page))
        except ProjectionError as error:
            self._folded = [projection for projection in self._folded if projection.name != error.name]
            self._report(error.name, f"cannot be filled from the log: {error.reason.partition(':')[0]}")
            return False
        return True

    def _report(self, name: str, detail: str) -> None:
        self.problems.append(Problem("projection", None, None, None, f"{name}: {detail}"))


def _apply_all(known: Sequence[Projection], page: Sequence[Envelope], tx: Tx) -> None:
    for projection in known:
        apply(tx, projection, page)
    for projection in known:
        if isinstance(projection, Deferred):
            projection.catch_up(tx)


def _fingerprint(projection: Projection, stream_no: int | None, tx: Tx) -> tuple[int, bytes]:
    digest = hashlib.sha256()
    for row in projection.dump(tx, stream_no):
        digest.update(msgspec.json.encode(row))
    return rows.high_water(tx), digest.digest()


def _listing(projection: Projection, stream_no: int | None, tx: Tx) -> tuple[int, list[Row]]:
    return rows.high_water(tx), list(projection.dump(tx, stream_no))


def _differences(projection: Projection, found: list[Row], fresh: list[Row]) -> Iterator[Problem]:
    """A problem per table: how many rows differ, and where the first ones stand; never what they hold."""
    lost, extra = set(fresh) - set(found), set(found) - set(fresh)
    for table in sorted({row[0] for row in lost | extra}):
        missing = [row[1] for row in lost if row[0] == table]
        wrong = [row[1] for row in extra if row[0] == table]
        first = ", ".join(map(str, sorted({*missing, *wrong})[:SHOWN]))
        detail = (
            f"{projection.name}: {table} lacks {len(missing)} rows and has {len(wrong)} wrong ones, by key: {first}"
        )
        yield Problem("projection", None, None, None, detail)
