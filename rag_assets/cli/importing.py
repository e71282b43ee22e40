"""Loading what stays loaded, without Python's collector looking through it again and again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Load modules or data in the block that stay until the process ends.

    Importing dagster makes a million objects. Left alone, the collector goes through them dozens
    of times, at the cost of a quarter of a small run, and finds nothing. What exists at the end of
    the block is never looked at again. In a process that has dagster already, which is not ours,
    the collector is left as it is.
    """
    if "dagster" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
