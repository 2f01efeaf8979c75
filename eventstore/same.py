"""When two JSON values are the same: types count, key order does not."""

from __future__ import annotations

from typing import Any


def same_json(left: Any, right: Any) -> bool:
    """Whether two decoded JSON values are equal, telling 1 from 1.0 and from true."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_json(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
