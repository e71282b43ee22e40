"""What a right answer is, for questions that ask for one thing or for two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def states_all(output: Mapping[str, Any], expected: Mapping[str, Any]) -> bool | dict[str, str]:
    """Whether an answer states everything that was asked for, without regard to case."""
    if expected["behavior"] != "answer":
        return {"excluded": "no_answer_expected"}
    answer = output["answer"].casefold()
    return all(text.casefold() in answer for text in expected["answers"])
