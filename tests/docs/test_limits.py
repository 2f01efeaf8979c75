from __future__ import annotations

import msgspec

from eventstore import Limits, dialect, hints, publisher, redis_publisher, rows, writer
from projections import analysis
from tests.docs.pages import REFERENCE, codes, sections
from tests.docs.pages import rows as table_rows

PAGE = REFERENCE / "limits.md"
FIXED = [
    writer.MAX_GROUP,
    dialect.READERS,
    dialect.BUSY_SECONDS,
    round(hints.POLL_SECONDS * 1000),
    rows.PAGE_EVENTS,
    publisher.QUEUE,
    redis_publisher.OUTBOX,
    redis_publisher.OUTBOX_BYTES,
    analysis.TOKEN_CHARACTERS,
]


def test_limits_are_described() -> None:
    """The table has every limit with its default."""
    lines = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    table = {codes(cells[0])[0]: int(cells[1].replace(",", "")) for cells in table_rows(lines)}
    assert table == {field.name: field.default for field in msgspec.structs.fields(Limits)}


def test_fixed_numbers_are_described() -> None:
    """The numbers that nobody can set are those in the code, in the order of the table."""
    table = table_rows(sections(PAGE, 2)["Fixed numbers"])
    assert [int(cells[1].replace(",", "")) for cells in table] == FIXED
