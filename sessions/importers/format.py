"""What a format is to the import: a name, a test for what it can read, and a parser of the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import msgspec

from sessions.importers.conversation import Conversation, Problem, RecordedConversation
from sessions.importers.document import Document
from sessions.importers.sources import Source

Found = Conversation | RecordedConversation | Problem


class Format(msgspec.Struct, frozen=True):
    """One format of whole documents: one is read with it when `recognises` is true of any of its values.

    `parse` gives the conversations of a document in file order, and a problem for each entry that it cannot read.
    """

    name: str
    recognises: Callable[[object], bool]
    parse: Callable[[Document], Iterator[Conversation | Problem]]


class RecordFormat(msgspec.Struct, frozen=True):
    """One format of files with a record a line, which may be larger than memory and several of which make one whole.

    A file is read with it when `recognises` is true of its stream; `parse` gets the files that belong together.
    """

    name: str
    recognises: Callable[[BinaryIO], bool]
    parse: Callable[[Sequence[Source]], Iterator[RecordedConversation | Problem]]


AnyFormat = Format | RecordFormat
