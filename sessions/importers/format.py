"""What a format is to the import: a name, a test for one value of a document, and a parser of the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from sessions.importers.conversation import Conversation, Problem
from sessions.importers.document import Document


class Format(msgspec.Struct, frozen=True):
    """One format: a document is read with it when `recognises` is true of any of its values.

    `parse` gives the conversations of a document in file order, and a problem for each entry that it cannot read.
    """

    name: str
    recognises: Callable[[object], bool]
    parse: Callable[[Document], Iterator[Conversation | Problem]]
