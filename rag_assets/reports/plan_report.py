"""What `rag-assets plan` prints: all that is known about deciding what was not decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_assets.evaluation.views import DecisionView
from rag_assets.evaluation.wording import counted
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, grid, line
from rag_assets.reports.measures import decision_rows
from rag_assets.reports.planning import (
    COMPARISON_RULES,
    assumption,
    size_text,
    sizes_text,
    three,
)

NOTHING_OPEN = "Every rule is decided: there is nothing to plan."
NOTHING_DECIDED = "Nothing was decided, so there is nothing to plan."
_SIZES = ("at_50", "at_80", "at_90")


def plan_report(subject: str, decisions: Sequence[DecisionView], width: int | None) -> list[Line]:
    """One block for each undecided rule.

    Args:
        subject: the id of the run or comparison.
        decisions: all of its decisions, with complete plans.
        width: columns of the terminal; None for no limit.
    """
    undecided = [one for one in decisions if one.state == "INSUFFICIENT_EVIDENCE"]
    if not undecided:
        return [line(NOTHING_OPEN if decisions else NOTHING_DECIDED)]
    return blocks(
        [line("Plan for ", Cell(subject, "bold"))],
        *([*decision_rows([one], width), *_details(one, width)] for one in undecided),
    )


def _details(decision: DecisionView, width: int | None) -> list[Line]:
    plan = decision.plan
    if plan is None:
        return [line("More cases alone would not decide this rule.", indent=INDENT)]
    texts = [*_outcomes(decision, plan), *_warnings(decision, plan)]
    return [*_table(plan, width), *(line(text, indent=INDENT) for text in texts)]


def _outcomes(decision: DecisionView, plan: Mapping[str, Any]) -> Iterator[str]:
    """What the line above did not say."""
    if not plan["methods"]:
        return
    sizes = plan["methods"][0]["sizes"]
    if plan["obstacle"] is not None:
        if sizes["at_50"] is None:
            yield f"no size up to 10,000 would make this FAIL, {assumption(decision, plan)}"
        else:
            yield f"FAIL at {sizes_text(sizes, plan)}, {assumption(decision, plan)}"
        return
    if plan["missing"]:
        yield f"PASS at {sizes_text(sizes, plan)}, {assumption(decision, plan)}"
    yield "no size would make this FAIL, because what was observed is on the right side"


def _table(plan: Mapping[str, Any], width: int | None) -> list[Line]:
    """The methods side by side."""
    if len(plan["methods"]) < 2:
        return []
    outcome = "PASS" if plan["obstacle"] is None else "FAIL"
    header = ["method", *(f"{outcome} in {share} %" for share in (50, 80, 90))]
    body = [
        [one["method"], *(size_text(one["sizes"][key]) for key in _SIZES)]
        for one in plan["methods"]
    ]
    return grid(header, body, width, INDENT)


def _warnings(decision: DecisionView, plan: Mapping[str, Any]) -> Iterator[str]:
    """That a small sample may be wrong about what future cases will be like."""
    assumed, chance = plan["assumed"], plan["chance"]
    if assumed is None or assumed["cases"] >= 100:
        return
    is_comparison = decision.rule["kind"] in COMPARISON_RULES
    few = f"Only {counted(assumed['cases'], 'pair' if is_comparison else 'case')}"
    if chance is None:
        yield f"{few}: the observed distribution may itself be off, and the sizes with it."
        return
    yield f"{few}: the rule is truly met with probability {100 * chance:.0f} % (Jeffreys' prior)."
    predicted = plan["predicted"]
    if predicted is not None and predicted["at_50"] is not None:
        yield f"Allowing for that, PASS at {three(predicted)} cases in 50 / 80 / 90 %."
