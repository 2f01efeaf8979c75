from __future__ import annotations

import pytest

from sessions.importers.times import read_time, wire_time


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (1_700_000_000, "2023-11-14T22:13:20.000Z"),
        (1_700_000_000.5, "2023-11-14T22:13:20.500Z"),
        (1_691_411_523.970743, "2023-08-07T12:32:03.971Z"),
        (1_694_548_699.139, "2023-09-12T19:58:19.139Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123_456, "2023-11-14T22:13:20.123Z"),
        ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20.000Z"),
        ("2023-11-14T23:13:20.123999+01:00", "2023-11-14T22:13:20.123Z"),
        ("2023-11-14T22:13:20", "2023-11-14T22:13:20.000Z"),
    ],
)
def test_times_are_read(value: object, time: str) -> None:
    """Seconds, milliseconds, microseconds and ISO-8601 text all become the same kind of time."""
    read = read_time(value)
    assert read is not None
    assert wire_time(read) == time


@pytest.mark.parametrize(
    "value",
    [None, 0, -1, True, "", "1700000000", "soon", [], float("nan"), float("inf"), 10**40, "9999-12-31T23:59:59-01:00"],
)
def test_what_is_no_time_is_none(value: object) -> None:
    """Zero, numbers as text, and what no calendar holds are no times."""
    assert read_time(value) is None
