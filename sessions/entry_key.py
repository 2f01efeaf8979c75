"""The key of an entry that a model writes: from its title, or from its content."""

from __future__ import annotations

import re

LONGEST = 60
"""How many UTF-16 code units of a title or a content are looked at."""
NO_WORDS = "entry"

_NOT_IN_KEYS = re.compile("[^a-z0-9]+")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

# What is white space in JavaScript.
_JS_WHITESPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def entry_key(content: str, title: str | None = None) -> str:
    """The key under which an entry is kept: the same for the same title, and without one for the same content."""
    if title is not None and title.strip(_JS_WHITESPACE):
        return _slug(title) or f"{NO_WORDS}-{_hash(title)}"
    return f"{_slug(content) or NO_WORDS}-{_hash(content)}"


def _slug(text: str) -> str:
    beginning = text.encode("utf-16-le", "surrogatepass")[: 2 * LONGEST].decode("utf-16-le", "replace")
    return _NOT_IN_KEYS.sub("-", beginning.lower()).strip("-")


def _hash(text: str) -> str:
    """FNV-1a of 32 bits over UTF-16 code units, in base 36."""
    value = 0x811C9DC5
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = ((value ^ (low | high << 8)) * 0x01000193) & 0xFFFFFFFF
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
