"""The pages of the documentation as the tests read them: fenced blocks, headings, tables, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference"

_FENCE = re.compile(r"^```([a-z]*) *(.*)$")
_HEADING = re.compile(r"^(#+) (.+)$")
_LINK = re.compile(r"\[[^\]\[]*\]\(<?([^)\s>]+)>?\)")
_CODE = re.compile(r"`([^`]+)`")
_NO_ANCHOR = re.compile(r"[^\w\- ]")
_CELL_END = re.compile(r"(?<!\\)\|")


class Block(NamedTuple):
    """A fenced block: its language, the words behind it, its text, and the line that its text begins at."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int


class Link(NamedTuple):
    """A link: where it leads, and the line that it stands in."""

    target: str
    line: int


def pages() -> list[Path]:
    """Return every page: the README and what is in docs, in path order."""
    return [README, *sorted((ROOT / "docs").rglob("*.md"))]


def name(page: Path) -> str:
    """Return a page's path from the project's top."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [part for part in _parts(page) if isinstance(part, Block)]


def prose(page: Path) -> list[tuple[int, str]]:
    """Return the lines of a page that stand outside of fenced blocks, each with its number."""
    return [part for part in _parts(page) if not isinstance(part, Block)]


def links(page: Path) -> list[Link]:
    """Return the links of a page, in order; what stands in code is none."""
    return [Link(found[1], number) for number, line in prose(page) for found in _LINK.finditer(_CODE.sub("", line))]


def anchors(page: Path) -> set[str]:
    """Return what a link to a heading of a page may name."""
    found: dict[str, int] = {}
    for _, line in prose(page):
        if heading := _HEADING.match(line):
            anchor = _NO_ANCHOR.sub("", heading[2].strip().lower()).replace(" ", "-")
            # The second heading with the same words is told from the first by a number.
            found[anchor] = found.get(anchor, -1) + 1
    return {
        anchor if number == 0 else f"{anchor}-{number}" for anchor, most in found.items() for number in range(most + 1)
    }


def sections(page: Path, level: int) -> dict[str, list[str]]:
    """Return the lines below each heading of a level, by the heading; a section ends at one of its level or above."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for _, line in prose(page):
        heading = _HEADING.match(line)
        if heading is None:
            current.append(line)
        elif len(heading[1]) <= level:
            current = []
            if len(heading[1]) == level:
                found[heading[2].strip()] = current
    return found


def rows(lines: list[str]) -> list[list[str]]:
    """Return the cells of every table row among lines, heads left out."""
    found: list[list[str]] = []
    for at, line in enumerate(lines):
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        if at + 1 < len(lines) and lines[at + 1].startswith("|") and set(lines[at + 1]) <= set("|-: "):
            continue
        cells = _CELL_END.split(line.strip().strip("|"))
        found.append([cell.strip().replace("\\|", "|") for cell in cells])
    return found


def codes(text: str) -> list[str]:
    """Return what stands in backticks in a text."""
    return _CODE.findall(text)


def _parts(page: Path) -> Iterator[Block | tuple[int, str]]:
    inside: list[str] | None = None
    language, words, start = "", "", 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if inside is None:
            if fence:
                inside, language, words, start = [], fence[1], fence[2], number + 1
            else:
                yield number, line
        elif line == "```":
            yield Block(language, tuple(words.split()), "\n".join(inside) + "\n", start)
            inside = None
        else:
            inside.append(line)
    assert inside is None, f"{page.name}:{start - 1}: this block has no end"
