"""What the first bytes of a file tell about it, before it is read as JSON."""

from __future__ import annotations

import codecs
import json
import re
from typing import Final

from eventstore.dialect import FILE_HEAD

HEAD_BYTES: Final = 4096
"""How many bytes are enough to tell what a file is."""
# Objects, or arrays of them. A stricter look than JSON asks for, since `[section]` begins many other files.
_LOOKS_LIKE_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\s\0]*(?:\[\s*)*(?:\{\s*[\"}]|\])")
_MARKED: Final = frozenset({"utf-16", "utf-32"})
"""The encodings that begin with a byte order mark which UTF-8 cannot begin with."""


def looks_like_json(head: bytes) -> bool:
    """Whether a file begins like a document of JSON, in UTF-8 or in UTF-16 or UTF-32."""
    return bool(_LOOKS_LIKE_JSON.match(head)) or _is_wide_json(head, json.detect_encoding(head))


def looks_like_lines(head: bytes) -> bool:
    """Whether one of the first lines of a file begins like an object, though the file itself may not."""
    return not head.startswith(FILE_HEAD) and b'\n{"' in head


def looks_like_zip(head: bytes) -> bool:
    """Whether a file begins like a zip, whole or not."""
    return head.startswith(b"PK\x03\x04")


def why_not_json(data: bytes) -> str | None:
    """What a file of another kind is, as the reason why it cannot be read; None for what may be JSON."""
    encoding = json.detect_encoding(data[:HEAD_BYTES])
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        return "empty"
    if data.startswith(FILE_HEAD):
        return "a database, not an export"
    if looks_like_zip(data):
        return "not a whole zip file"
    if encoding in _MARKED or _is_wide_json(data[:HEAD_BYTES], encoding):
        return f"{encoding[:6].upper()}, not UTF-8"
    return None


def _is_wide_json(head: bytes, encoding: str) -> bool:
    if encoding.startswith("utf-8"):
        return False
    return bool(_LOOKS_LIKE_JSON.match(head.decode(encoding, "ignore").encode(errors="ignore")))
