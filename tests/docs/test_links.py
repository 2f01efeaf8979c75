from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import README, ROOT, anchors, blocks, codes, links, name, pages, prose

LINKING = [*pages(), ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md", ROOT / "examples" / "README.md"]
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
MAKE = re.compile(r"^make ([a-z]+)", re.MULTILINE)
TORN = re.compile(r"\[[^\]\[]*\n[^\]\[]*\]\(|\]\([^)\s]*\n")


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of one."""
    found: list[str] = []
    for link in links(page):
        if re.match("[a-z]+:", link.target):
            continue
        file, _, anchor = link.target.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{name(page)}:{link.line}: {link.target}")
    return found


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link leads to a file that is there and, if it names one, to a heading in it."""
    assert broken(page) == []


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_links_stand_in_one_line(page: Path) -> None:
    """No link goes over the end of a line, where the other tests would not see it."""
    assert [found[0] for found in TORN.finditer("\n".join(line for _, line in prose(page)))] == []


def test_broken_links_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to a file or to a heading that is not there is found, one in code is none."""
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` c\n[x](gone.md) [y](#a-b-c) [z](page.md#nowhere) `[w](gone.md)`\n## A b c\n[v](#a-b-c-1)\n"
    )
    assert broken(page) == ["page.md:2: gone.md", "page.md:2: page.md#nowhere"]


def test_every_page_can_be_reached() -> None:
    """Every page of docs is linked from the README, directly or by other pages."""
    reached: set[Path] = set()
    waiting = [README]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for link in links(page):
            target = (page.parent / link.target.partition("#")[0]).resolve()
            if target.suffix == ".md" and target in pages() and target not in reached:
                waiting.append(target)
    assert [name(page) for page in pages() if page not in reached] == []


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_targets_of_make_exist(page: Path) -> None:
    """Every `make` that a page speaks of is a target of the Makefile."""
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    code = [block.text for block in blocks(page)] + [code for _, line in prose(page) for code in codes(line)]
    assert {found for piece in code for found in MAKE.findall(piece)} <= targets


def test_readme_is_short() -> None:
    """The README is at most 120 lines long."""
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
