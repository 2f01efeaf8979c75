"""The figures of a run: what was measured, beside what, how far it must get, and whether it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

HEADINGS = ("figure", "size", "ours", "beside", "ratio", "low .. high", "must", "")


@dataclass(frozen=True)
class Goal:
    """A limit, and on which side of it the good values lie."""

    limit: float
    at_least: bool
    unit: str = ""

    def met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{self.unit}"


def at_least(limit: float) -> Goal:
    """A ratio of rates: more is better."""
    return Goal(limit, at_least=True)


def at_most(limit: float, unit: str = "") -> Goal:
    """A ratio of times, or a time: less is better."""
    return Goal(limit, at_least=False, unit=unit)


@dataclass(frozen=True)
class Figure:
    """One line of the table; `value` is what the goal judges, a median over the rounds."""

    name: str
    size: str
    ours: str
    beside: str
    value: float
    shown: str
    spread: str
    goal: Goal | None

    @property
    def verdict(self) -> str:
        """PASS or FAIL, nothing where there is no goal."""
        if self.goal is None:
            return ""
        return "PASS" if self.goal.met(self.value) else "FAIL"

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of the table, in the order of its headings."""
        must = str(self.goal) if self.goal else ""
        return (self.name, self.size, self.ours, self.beside, self.shown, self.spread, must, self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """What is written to a file: the fields, with the goal and the verdict as words."""
        return asdict(self) | {"goal": str(self.goal) if self.goal else None, "verdict": self.verdict or None}


def ratio(
    name: str,
    *,
    size: str,
    ours: Sequence[float],
    beside: Sequence[float],
    unit: str,
    label: str,
    goal: Goal | None = None,
) -> Figure:
    """Our values over the others' (`label` names them), round by round; the median of the ratios is judged."""
    ratios = [one / other for one, other in zip(ours, beside, strict=True)]
    value = median(ratios)
    return Figure(
        name,
        size,
        _amount(median(ours), unit),
        f"{label} {_amount(median(beside), unit)}",
        value,
        f"{value:.2f}",
        f"{min(ratios):.2f} .. {max(ratios):.2f}" if len(ratios) > 1 else "",
        goal,
    )


def amount(name: str, *, size: str, ours: Sequence[float], unit: str, goal: Goal | None = None) -> Figure:
    """A value that is judged by itself; the median over the rounds."""
    value = median(ours)
    return Figure(name, size, _amount(value, unit), "", value, "", f"{min(ours):.2f} .. {max(ours):.2f}", goal)


def missing(name: str, package: str) -> Figure:
    """A line for what could not be measured, since the package beside which it stands is not installed."""
    return Figure(name, "", "", f"{package} is not installed", 0, "", "", None)


def table(figures: Sequence[Figure]) -> list[str]:
    """The figures as lines of aligned columns."""
    rows = [HEADINGS, *(figure.cells for figure in figures)]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _amount(value: float, unit: str) -> str:
    return f"{value:,.0f}{unit}" if value >= 100 else f"{value:,.3g}{unit}"
