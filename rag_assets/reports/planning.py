"""What it would take to decide an undecided rule, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assets.evaluation.views import DecisionView
from rag_assets.evaluation.wording import counted, number_format, plain_number
from rag_assets.statistics.display import (
    RATE,
    RATE_DIFFERENCE,
    Format,
    score_difference_format,
)

COMPARISON_RULES = ("non_inferiority", "superiority", "equivalence")
NONE_UP_TO = "none up to 10,000"
_EXACT = "exact_paired"
_ASSURANCES = "50 / 80 / 90 % of such samples"


def planning_line(decision: DecisionView) -> str | None:
    """The one line below an undecided rule; None where there is nothing to plan."""
    plan = decision.plan
    if plan is None:
        return None
    if plan["missing"]:
        return _resolve(decision, plan)
    if plan["obstacle"] is not None:
        return f"no size would make this PASS, because {_obstacle(decision, plan)}"
    if not plan["methods"]:
        return None
    own = plan["methods"][0]
    if own["sizes"] is None:
        return "the sizes take longer to compute: rag-assets plan"
    return f"PASS at {sizes_text(own['sizes'], plan)}, {assumption(decision, plan)}{_other(plan)}"


def sizes_text(sizes: Mapping[str, int | None], plan: Mapping[str, Any]) -> str:
    """Three sizes with what they promise."""
    about = "about " if plan["approximate"] else ""
    unit = "groups" if plan["grouped"] else "cases"
    return f"{about}{three(sizes)} {unit} in {_ASSURANCES}"


def three(sizes: Mapping[str, int | None]) -> str:
    """The sizes for 50, 80 and 90 %."""
    return " / ".join(size_text(sizes[key]) for key in ("at_50", "at_80", "at_90"))


def size_text(size: int | None) -> str:
    """A size, or the words where there is none."""
    return NONE_UP_TO if size is None else f"{size:,}"


def assumption(decision: DecisionView, plan: Mapping[str, Any]) -> str:
    """What sizes assume of future cases."""
    assumed, words = plan["assumed"], "if future cases follow the observed distribution"
    if assumed["passes"] is not None:
        return f"{words} ({assumed['passes']} of {assumed['cases']})"
    if assumed["gained"] is not None:
        shares = [100 * assumed[key] / assumed["cases"] for key in ("gained", "lost")]
        return f"{words} (gained {shares[0]:.1f} %, lost {shares[1]:.1f} % of pairs)"
    mean = format_of(decision).estimate(assumed["estimate"])
    return f"{words} (mean {mean} of {assumed['cases']})"


def format_of(decision: DecisionView) -> Format:
    """How the numbers are printed that a rule decides on: a metric's, or a difference's."""
    measure = decision.measure
    if decision.rule["kind"] in COMPARISON_RULES:
        return difference_format(measure.kind, measure.range)
    return number_format(measure.kind, measure.range)


def difference_format(kind: str, value_range: Sequence[float]) -> Format:
    """How differences of a metric are printed, without their unit."""
    if kind == "verdict":
        return RATE_DIFFERENCE
    return score_difference_format(value_range[1] - value_range[0])


def difference_text(kind: str, value_range: Sequence[float], value: float) -> str:
    """A difference with its unit: points of a rate, or the score's own."""
    text = difference_format(kind, value_range).estimate(value)
    return f"{text} points" if kind == "verdict" else text


def _resolve(decision: DecisionView, plan: Mapping[str, Any]) -> str:
    text = f"resolve the {counted(plan['missing'], 'missing case')} first"
    if plan["bound"] is None:
        return text
    rule, form = decision.rule, format_of(decision)
    is_upper = rule["kind"] == "max" or rule.get("direction") == "max"
    bound = (form.upper if is_upper else form.lower)(plan["bound"])
    unit = " points" if form is RATE_DIFFERENCE else ""
    return f"{text}: counted favourably, the bound would be {bound}{unit}"


def _obstacle(decision: DecisionView, plan: Mapping[str, Any]) -> str:
    measure, rule = decision.measure, decision.rule
    if plan["obstacle"] == "gain":
        return "nothing was gained"
    estimate = plan["assumed"]["estimate"]
    if plan["obstacle"] == "quantile":
        within = "within" if rule["kind"] == "max" else "at or above"
        cases = counted(plan["assumed"]["cases"], "case")
        passes = plan["assumed"]["passes"]
        are = "is" if passes == 1 else "are"
        return f"only {passes} of {cases} {are} {within} {plain_number(rule['threshold'])}"
    if plan["obstacle"] == "estimate":
        side = "above" if rule["kind"] == "min" else "below"
        shown = number_format(measure.kind, measure.range).estimate(estimate)
        return f"the estimate {shown} is not {side} {_threshold(decision)}"
    shown = difference_text(measure.kind, measure.range, estimate)
    if plan["obstacle"] == "zero":
        return f"the difference {shown} is not above 0"
    return f"the difference {shown} is not inside the margin"


def _threshold(decision: DecisionView) -> str:
    value = decision.rule["threshold"]
    return RATE.estimate(value) if decision.measure.kind == "verdict" else plain_number(value)


def _other(plan: Mapping[str, Any]) -> str:
    """What the exact method would need instead of the default one."""
    own, *others = plan["methods"]
    for other in others:
        if other["method"] != _EXACT:
            continue
        if other["sizes"] is None:
            return f"; with method: {_EXACT}: takes longer to compute: rag-assets plan"
        sizes = (size_text(one["sizes"]["at_50"]) for one in (other, own))
        return f"; with method: {_EXACT}: {' instead of '.join(sizes)}"
    return ""
