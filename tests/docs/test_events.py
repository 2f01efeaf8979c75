from __future__ import annotations

import inspect

import msgspec
import pytest

from eventstore import Envelope, Event
from eventstore.codec import decode, encode
from tests.docs.catalogue import PAGE, catalogue, written
from tests.docs.pages import Block, blocks, codes, rows, sections

EXAMPLES = [block for block in blocks(PAGE) if block.language == "json"]


def test_catalogue_is_up_to_date() -> None:
    """The catalogue in the page is the one that the events make; `python -m tests.docs.catalogue` writes it anew."""
    assert written() == catalogue()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: f"line {block.line}")
def test_payloads_are_real(example: Block) -> None:
    """Every payload in the page is read as an event, and is what that event is written as."""
    kind = msgspec.json.decode(example.text)["event"]["type"]
    event, metadata = decode(kind, 1, example.text)
    assert isinstance(event, Event)
    assert encode(event, metadata).decode() == example.text.strip()


def test_envelope_is_described() -> None:
    """The table of the envelope has all of its fields."""
    table = [code for cells in rows(sections(PAGE, 2)["The envelope"]) for code in codes(cells[0])]
    assert sorted(table) == sorted(inspect.signature(Envelope).parameters)
