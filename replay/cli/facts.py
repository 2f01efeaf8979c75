"""One record for people: a line for each of its facts, the names in one column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replay.cli.output import Output


def print_facts(out: Output, facts: Mapping[str, str]) -> None:
    """Print facts by their names."""
    from rich.text import Text

    from replay.cli.text import label

    width = max(map(len, facts), default=0) + 2
    for name, fact in facts.items():
        out.print(Text(f"{name:{width}}", style="dim").append(label(fact), style="default"))
