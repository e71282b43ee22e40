"""The policy file: the rules that decide on intervals, and what their states mean for the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.rules import Rule, read_rules
from rag_assets.contracts.text import names, shown
from rag_assets.contracts.validation import FileModel, FormatVersion, Texts, validate
from rag_assets.contracts.yaml_source import YamlSource, read_yaml

__all__ = ["MetricKind", "Policy", "Rule", "check_policy", "read_policy"]

State = Literal["PASS", "FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"]
States = Annotated[tuple[State, ...], Field(strict=False)]

_BLOCK_ON: tuple[State, ...] = ("FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW")

# (what a rule decides on, kind of its metric) → the methods that fit.
_FITTING: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("run", "verdict"): ("clopper_pearson",),
    ("run", "score"): ("bounded_mean_mixture", "bounded_mean_convex"),
    ("run", "quantile"): ("order_statistic_quantile",),
    ("comparison", "verdict"): ("paired_mixture", "exact_paired"),
    ("comparison", "score"): ("paired_mixture",),
}


@dataclass(frozen=True, slots=True)
class MetricKind:
    """What a metric is: of verdicts, of scores in a range (lowest, highest), or a quantile.

    `is_grouped` says that cases belong together, so that it is a mean over groups; the value of a
    case is the mean over `samples`.
    """

    kind: Literal["verdict", "score", "quantile"]
    value_range: tuple[float, float]
    is_grouped: bool = False
    samples: int = 1


class Policy(FileModel):
    """The policy file.

    Attributes:
        confidence_level: of every interval, strictly between 0 and 1.
        required_cases: ids or globs of cases that must be observed.
        path: the policy file, absolute.
        digest: SHA-256 of the canonical JSON of the file's content.
        lines: dotted key → line.
    """

    later_keys: ClassVar[frozenset[str]] = frozenset({"judge"})

    version: FormatVersion = 1
    confidence_level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    block_on: States = _BLOCK_ON
    warn_on: States = ()
    block_on_partial_run: bool = True
    required_cases: Texts = ()
    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = Field(
        description="a list of at least one rule"
    )
    path: Path
    digest: str
    lines: Mapping[str, int]


def read_policy(path: Path, problems: list[Problem], *, name: str | None = None) -> Policy | None:
    """Read the policy file. What depends on the metrics is checked by `check_policy`.

    Args:
        path: the file.
        problems: every problem of the file is appended here, in the order of the lines.
        name: the file as messages shall name it (default: the path as given).

    Returns:
        The policy, or None when anything is wrong with it.
    """
    found: list[Problem] = []
    source = read_yaml(path, found, name=name)
    policy = None if source is None else _policy(source, path.resolve(), found)
    problems += sorted(found)
    return None if found else policy


def check_policy(
    policy: Policy,
    metrics: Mapping[str, MetricKind | None],
    case_ids: Sequence[str] | None,
    problems: list[Problem],
    *,
    name: str | None = None,
    are_all: bool = True,
) -> None:
    """Check a policy against the metrics and cases that it speaks of.

    Args:
        policy: the policy.
        metrics: criterion → kind and range of the metrics of the config; None where no more than
            the name is known.
        case_ids: the ids of the dataset; None where they are not known.
        problems: every problem is appended here, in the order of the lines.
        name: the policy file as messages shall name it (default: its path).
        are_all: whether there are no other metrics.
    """
    found = [] if case_ids is None else list(_unmatched_cases(policy, case_ids))
    for index, rule in enumerate(policy.rules):
        metric = metrics.get(rule.metric)
        if rule.metric not in metrics:
            if not are_all:
                continue
            known = tuple(metrics)
            hint = nearest(rule.metric, known) or f" The metrics are {', '.join(known)}."
            message = f"No evaluator yields the metric {shown(rule.metric)}.{hint}"
            found.append((f"rules.{index}.metric", message))
        elif metric is not None:
            found += [(f"rules.{index}.{key}", text) for key, text in _rule_problems(rule, metric)]
    file = name or str(policy.path)
    problems += sorted(
        Problem(file, policy.lines.get(key, 0), key, message) for key, message in found
    )


def _policy(source: YamlSource, path: Path, problems: list[Problem]) -> Policy | None:
    content = dict(source.content)
    _check_states(source, problems)
    if isinstance(content.get("rules"), list):
        content["rules"] = read_rules(content["rules"], source, problems)
    computed = {"path": path, "digest": digest(source.content), "lines": source.lines}
    return validate(Policy, content, source, problems, computed=computed)


def _check_states(source: YamlSource, problems: list[Problem]) -> None:
    block_on = source.content.get("block_on", _BLOCK_ON)
    warn_on = source.content.get("warn_on", ())
    if not isinstance(block_on, (list, tuple)) or not isinstance(warn_on, (list, tuple)):
        return
    for index, state in enumerate(block_on):
        if state == "PASS":
            message = "PASS in block_on would block every release that is good; remove it."
            problems.append(source.problem(f"block_on.{index}", message))
    by_default = "" if "block_on" in source.content else ", which has it by default"
    for index, state in enumerate(warn_on):
        if state in block_on:
            message = f"{state} is in block_on as well{by_default}; a state is in one of the two."
            problems.append(source.problem(f"warn_on.{index}", message))


def _unmatched_cases(policy: Policy, case_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index, pattern in enumerate(policy.required_cases):
        if not any(names(pattern, case) for case in case_ids):
            message = (
                f"{shown(pattern)} matches no case of the dataset.{nearest(pattern, case_ids)}"
            )
            yield f"required_cases.{index}", message


def _rule_problems(rule: Rule, metric: MetricKind) -> Iterator[tuple[str, str]]:
    """What is wrong with a rule on this metric: (key in the rule, message)."""
    low, high = metric.value_range
    if rule.threshold is not None and not low <= rule.threshold <= high:
        yield rule.kind, _outside(rule, metric)
    if rule.kind == "observed_count" and metric.kind != "verdict":
        what = f"{rule.metric} is a {metric.kind}"
        yield "kind", f"observed_count counts failures, and {what}; use min or max."
    if rule.decides_on == "comparison" and metric.kind == "quantile":
        yield "kind", f"{rule.metric} is a quantile, which has no difference; use min or max."
        return
    if rule.margin is not None and rule.margin > high - low:
        message = (
            f"margin {_text(rule.margin)} is wider than the range of {rule.metric}, which is "
            f"{_text(high - low)}; such a rule would always PASS."
        )
        yield "margin", message
    # An observed_count rule on a score has its problem; no method fits it.
    if rule.method is not None and not (rule.kind == "observed_count" and metric.kind != "verdict"):
        yield from _method_problem(rule, rule.method, metric)


def _outside(rule: Rule, metric: MetricKind) -> str:
    value = Decimal(str(rule.threshold))
    low, high = metric.value_range
    if metric.kind == "verdict" and 1 < value <= 100:
        share = (value / 100).normalize()
        return (
            f"{rule.kind} of a rate is between 0 and 1, got {_text(value)}; did you mean {share:f}?"
        )
    return (
        f"{rule.kind} is outside the range of {rule.metric}, which is "
        f"[{_text(low)}, {_text(high)}], got {_text(value)}."
    )


def _method_problem(rule: Rule, method: str, metric: MetricKind) -> Iterator[tuple[str, str]]:
    is_mean = metric.kind == "verdict" and (metric.is_grouped or metric.samples > 1)
    fitting = _FITTING[rule.decides_on, "score" if is_mean else metric.kind]
    if method in fitting:
        return
    if is_mean and method in _FITTING[rule.decides_on, metric.kind]:
        needs = f"{method} needs independent cases, and cases of the dataset share a group"
        if not metric.is_grouped:
            needs = f"{method} needs one verdict a case, and a case has {metric.samples} samples"
        yield "method", f"{needs}; use {' or '.join(fitting)}."
        return
    subject = "one run" if rule.decides_on == "run" else "a comparison"
    what = f"{method} does not fit a rule on {subject} of {rule.metric}, a {metric.kind}"
    yield "method", f"{what}; use {' or '.join(fitting)}."


def _text(number: float | Decimal) -> str:
    """A number without a needless `.0`, and never in powers of ten below a million."""
    return f"{Decimal(str(number)).normalize():f}"
