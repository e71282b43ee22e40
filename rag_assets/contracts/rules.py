"""One rule of a policy: what may be written, and the value that the gate decides with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.text import shown
from rag_assets.contracts.validation import FileModel, NonEmpty, validate
from rag_assets.contracts.yaml_source import YamlSource

METHODS = (
    "clopper_pearson",
    "bounded_mean_mixture",
    "paired_mixture",
    "exact_paired",
    "bounded_mean_convex",
    "order_statistic_quantile",
)

_EVIDENCE = ("max_missing_fraction", "min_support")
# What a rule takes besides id, metric, kind, method and requires_manual_review. A rule without
# `kind` is a threshold rule.
_PARAMETERS: Mapping[str | None, tuple[str, ...]] = {
    None: ("min", "max", *_EVIDENCE),
    "observed_count": ("max_failures",),
    "non_inferiority": ("margin", "direction", *_EVIDENCE),
    "superiority": _EVIDENCE,
    "equivalence": ("margin", *_EVIDENCE),
}
_ALL_PARAMETERS = ("min", "max", "max_failures", "margin", "direction", *_EVIDENCE)
_REQUIRED = {
    "observed_count": "max_failures",
    "non_inferiority": "margin",
    "equivalence": "margin",
}


class Rule(FileModel):
    """One rule.

    Attributes:
        kind: "min" and "max" are the two sorts of threshold rules.
        threshold: of a min or max rule, in the metric's own unit (a rate in [0, 1]).
        max_failures: of an observed_count rule, ≥ 0.
        margin: > 0, in the metric's own unit (0.05 is five points of a rate).
        max_missing_fraction: share of missing among eligible cases, in [0, 1].
        min_support: least number of observed cases or pairs, ≥ 1.
        line: line of the rule in the policy file.
    """

    id: str
    metric: str
    kind: Literal["min", "max", "observed_count", "non_inferiority", "superiority", "equivalence"]
    threshold: float | None = None
    max_failures: int | None = None
    margin: float | None = None
    direction: Literal["min", "max"] = "min"
    method: str | None = None
    requires_manual_review: bool = False
    max_missing_fraction: float | None = None
    min_support: int | None = None
    line: int = 0

    @property
    def decides_on(self) -> Literal["run", "comparison"]:
        """Whether the rule decides on one run or on a comparison of two."""
        return "run" if self.kind in ("min", "max", "observed_count") else "comparison"


def _must_be_method(value: str) -> str:
    if value not in METHODS:
        hint = nearest(value, METHODS)
        raise ValueError(
            f"must be one of {', '.join(METHODS)}; {shown(value)} is not in this version"
            + (f" of rag-assets.{hint}" if hint else " of rag-assets")
        )
    return value


class RuleEntry(FileModel):
    """A rule as written: here `min` and `max` are parameters, and null stands for absent."""

    later_keys: ClassVar[frozenset[str]] = frozenset({"judge"})

    id: NonEmpty = Field(description="a name for the rule")
    metric: NonEmpty = Field(description="the criterion of an evaluator")
    kind: Literal["observed_count", "non_inferiority", "superiority", "equivalence"] | None = None
    min: float | None = None
    max: float | None = None
    max_failures: Annotated[int, Field(ge=0)] | None = None
    margin: Annotated[float, Field(gt=0)] | None = None
    direction: Literal["min", "max"] | None = None
    method: Annotated[str, AfterValidator(_must_be_method)] | None = None
    requires_manual_review: bool = False
    max_missing_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    min_support: Annotated[int, Field(ge=1)] | None = None

    def rule(self, line: int) -> Rule:
        """The rule as the gate takes it."""
        threshold = self.min if self.min is not None else self.max
        return Rule(
            id=self.id,
            metric=self.metric,
            kind=self.kind or ("max" if self.min is None else "min"),
            threshold=threshold,
            max_failures=self.max_failures,
            margin=self.margin,
            direction=self.direction or "min",
            method=self.method,
            requires_manual_review=self.requires_manual_review,
            max_missing_fraction=self.max_missing_fraction,
            min_support=self.min_support,
            line=line,
        )


def read_rules(entries: list[Any], source: YamlSource, problems: list[Problem]) -> tuple[Rule, ...]:
    """The valid rules of the list `rules`; what is wrong with the others becomes a problem."""
    if not entries:
        problems.append(source.problem("rules", "rules must hold at least one rule."))
    rules: list[Rule] = []
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        key = f"rules.{index}"
        if not isinstance(entry, dict):
            message = f"The entry must be a mapping with an id and a metric, got {shown(entry)}."
            problems.append(source.problem(key, message))
            continue
        _check_id(entry.get("id"), key, first, source, problems)
        misfits = _misfits(entry)
        problems += [source.problem(f"{key}{place}", text) for place, text in misfits]
        made = validate(RuleEntry, entry, source, problems, key=key)
        if made is not None and not misfits:
            rules.append(made.rule(source.line(key)))
    return tuple(rules)


def _check_id(
    name: Any, key: str, first: dict[str, int], source: YamlSource, problems: list[Problem]
) -> None:
    if not isinstance(name, str):
        return
    line = source.line(f"{key}.id")
    if name in first:
        message = (
            f"The id {shown(name)} is taken by the rule on line {first[name]}; ids are unique."
        )
        problems.append(source.problem(f"{key}.id", message))
    first.setdefault(name, line)


def _misfits(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Parameters that the kind lacks or does not take: (place in the rule, message)."""
    kind = entry.get("kind")
    if not isinstance(kind, (str, type(None))) or kind not in _PARAMETERS:
        return []  # Refused as a kind; what it would take is not known.
    if not entry.keys() <= RuleEntry.model_fields.keys() | RuleEntry.later_keys:
        return []  # A misspelt key may be the kind, or what seems to be lacking.
    given = [name for name in _ALL_PARAMETERS if entry.get(name) is not None]
    if kind is None and ("min" in given) == ("max" in given):
        both = "both stand here" if "min" in given else "neither stands here"
        kinds = ", ".join(str(known) for known in _PARAMETERS if known)
        message = (
            f"A rule without kind takes exactly one of min and max, and {both} ({kinds} are kinds)."
        )
        return [("", message)]
    words = f"of kind {kind}" if kind else "with a threshold"
    takes = ", ".join(_PARAMETERS[kind])
    found = [
        (f".{name}", f"{name} does not belong to a rule {words}, which takes {takes}.")
        for name in given
        if name not in _PARAMETERS[kind]
    ]
    required = _REQUIRED.get(str(kind))
    if required and required not in given:
        found.append(("", f"A rule of kind {kind} needs {required}."))
    return found
