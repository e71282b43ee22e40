"""What the user's functions can be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def accepts(function: Callable[..., Any], arguments: int) -> bool:
    """Whether a function can be called with so many arguments, and the seed where it takes one.

    True for a function that does not say what it takes.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    seed = {"seed": 0} if "seed" in signature.parameters else {}
    try:
        signature.bind(*[None] * arguments, **seed)
    except TypeError:
        return False
    return True


def takes_seed(function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter named `seed`; False for one that does not say."""
    try:
        return "seed" in inspect.signature(function).parameters
    except ValueError:
        return False
