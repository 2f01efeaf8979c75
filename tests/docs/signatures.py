"""Signatures as the reference writes them: names, kinds and defaults, without types."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any


def brief(name: str, function: Callable[..., Any]) -> str:
    """Return a call as the reference writes it."""
    shown: list[str] = []
    keyword = False
    for parameter in inspect.signature(_called(function)).parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            shown.append("*")
            keyword = True
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        shown.append(f"{stars}{parameter.name}{_default(parameter)}")
    return f"{name}({', '.join(shown)})"


def members(kind: type, told: Collection[type] = ()) -> Iterator[str]:
    """Yield the public methods of a class as the reference writes them, and its properties by their names.

    With them come those of its bases in the same package, but for bases that are told of by themselves.
    """
    package = kind.__module__.partition(".")[0]
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == package and base not in told]
    found = {name: value for base in reversed([kind, *bases]) for name, value in vars(base).items()}
    fields = getattr(kind, "__struct_fields__", ())
    for name, value in found.items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
            yield brief(name, getattr(kind, name))
        elif inspect.isdatadescriptor(value) or hasattr(value, "func"):
            yield name


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called when a class is, if its own kind says so."""
    made_by = type(function).__call__ if inspect.isclass(function) else function
    return made_by if inspect.isfunction(made_by) else function


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is ...:
        return "=..."
    return f"={_name(value)}"


def _name(value: Any) -> str:
    if inspect.isfunction(value):
        return value.__name__
    return value.name if isinstance(value, enum.Enum) else repr(value)
