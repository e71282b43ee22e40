"""The words of reports: how counts, numbers, rules and cache lines are written everywhere."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rag_assets.statistics.display import RATE, Format, score_format

NO_POLICY = "No policy: nothing was decided."
NO_RUN_RULE = "The policy has no rule for a single run: nothing was decided."
TOO_FEW = "too few cases to mark anything"
NONE = "none"
SHOWN = 160
"""Characters of an output or an error that a list shows."""
_MS = Format(decimals=1, suffix=" ms")
OPERATIONAL: Mapping[str, Format] = {
    "latency_ms": _MS,
    "retrieval_ms": _MS,
    "generation_ms": _MS,
    "input_tokens": Format(decimals=0, suffix=" tokens"),
    "output_tokens": Format(decimals=0, suffix=" tokens"),
    "cost_usd": Format(decimals=5, suffix=" USD"),
}
"""Source of an operational metric → how its numbers are printed."""


def number_format(kind: str, value_range: Sequence[float]) -> Format:
    """How the numbers of a metric are printed.

    Args:
        kind: `verdict`, `score`, or the source of an operational metric.
        value_range: lowest and highest value of a score.
    """
    if kind in OPERATIONAL:
        return OPERATIONAL[kind]
    return RATE if kind == "verdict" else score_format(value_range[1] - value_range[0])


def estimate_text(form: Format, estimate: float | None) -> str:
    """An estimate like "69.2%"; "none" where nothing was observed."""
    return NONE if estimate is None else form.estimate(estimate)


def interval_text(form: Format, lower: float | None, upper: float | None) -> str:
    """Bounds like "[38.5%, 91.0%]"; "none" where there is no interval at all."""
    return NONE if lower is None and upper is None else form.interval(lower, upper)


def decided_interval_text(
    form: Format, lower: float | None, upper: float | None, rule: Mapping[str, Any]
) -> str:
    """Bounds beside the rule that they decide.

    A bound that misses the threshold, and would print like it, has one more decimal.
    """
    kind, threshold = rule["kind"], rule.get("threshold")
    if threshold is None or (lower is None and upper is None):
        return interval_text(form, lower, upper)

    def missed(bound: float | None) -> float | None:
        misses = bound is not None and (bound < threshold if kind == "min" else bound > threshold)
        return threshold if misses else None

    return f"[{form.lower(lower, missed(lower))}, {form.upper(upper, missed(upper))}]"


def samples_text(samples: int, flaky: int) -> str:
    """What a row adds where a case has several samples: how many, and how many cases disagree."""
    return f" · {samples} samples per case · {flaky} flaky"


def denominator_text(passes: int | None, observed: int, missing: int, excluded: int) -> str:
    """The three counts of a metric.

    Args:
        passes: of a verdict metric; None for a score.
        observed, missing, excluded: numbers of cases.
    """
    head = f"mean of {observed}" if passes is None else f"{passes} / {observed}"
    return f"{head} observed · {missing} missing · {excluded} excluded"


def pooled_text(part: int, whole: int, unit: str) -> str:
    """Ratios of all cases taken together, which have no interval: "3 / 4 claims (75.0%, …)"."""
    share = f" ({RATE.estimate(part / whole)} of all, no interval)" if whole else ""
    return f"{part} / {whole} {unit}{share}"


def rule_words(rule: Mapping[str, Any], kind: str) -> str:
    """What a rule asks for, in a few words.

    Args:
        rule: the fields of a policy rule that are set.
        kind: `verdict` or `score`, of its metric.
    """
    match rule["kind"]:
        case "min" | "max":
            return f"{rule['kind']} {_threshold(rule['threshold'], kind)}"
        case "observed_count":
            return f"at most {counted(rule['max_failures'], 'failure')}"
        case "non_inferiority" if rule.get("direction") == "max":
            return f"maximum increase {_margin(rule['margin'], kind)}"
        case "non_inferiority":
            return f"non-inferiority, margin {_margin(rule['margin'], kind)}"
        case "equivalence":
            return f"equivalence, margin ±{_margin(rule['margin'], kind)}"
    return "superiority"


def cache_line(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How much of a run came from the cache, as a whole and by judgment."""
    execution, judgment = (_hits(counts.get(what, {})) for what in ("execution", "judgment"))
    return f"Cache: execution {execution}; judgment {judgment}"


def stages_line(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How much of a run came from the cache, by stage."""
    retrieve, generate = (_hits(counts.get(what, {})) for what in ("retrieve", "generate"))
    return f"Stages: retrieve {retrieve}; generate {generate}"


def sources_text(sources: Sequence[str]) -> str:
    """Where the results of all samples came from: "hit" for one, "2 hit/1 miss" for several."""
    if len(sources) == 1:
        return sources[0]
    return "/".join(f"{number} {source}" for source, number in Counter(sources).items())


def redeployed_note(calls: int) -> str:
    """What to do when a service has changed behind answers that came from the cache."""
    return f"{counted(calls, 'call')} made; if the service was redeployed, change system.version"


def failure_line(cases: int, stage: str, error_type: str, message: str) -> str:
    """Failures that are alike: how many, where, and what was raised."""
    where = f"{stage} {error_type}".rstrip()
    return f"{counted(cases, 'case')}: {where}: {cut(message)}"


def reasons_text(reasons: Mapping[str, int]) -> str:
    """Reasons with their numbers of cases, like "timeout 2, execution_error 1"."""
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {cases}" for reason, cases in ordered)


def speaks_for(suite: str, cases: int) -> str:
    """What a run's numbers are about: only a sample lets them speak of a population."""
    these, were = ("this 1 case", "was") if cases == 1 else (f"these {cases} cases", "were")
    if suite == "sample":
        return f"Speaks for: the population that {these} {were} sampled from"
    return f"Speaks for: inputs like {these}"


def cases_text(run: int, dataset: int) -> str:
    """How many cases a run had, and how many of the dataset were outside its selection."""
    if run == dataset:
        return counted(run, "case")
    return f"{run} of {counted(dataset, 'case')}; {dataset - run} outside the selection"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it belongs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def time_text(iso: str) -> str:
    """A stored time, to the second, in UTC: "2026-09-16 10:20:30Z"."""
    return f"{iso[:10]} {iso[11:19]}Z"


def value_text(value: Any) -> str:
    """A JSON value: a string as it is, anything else as JSON on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut(text: str, limit: int = SHOWN) -> str:
    """The text, or its beginning with the length of the whole."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def plain_number(value: float) -> str:
    """A number as it was written, without needless zeros and never in powers of ten."""
    return f"{Decimal(repr(float(value))).normalize():f}"


def _threshold(value: float, kind: str) -> str:
    if kind in OPERATIONAL:
        return f"{plain_number(value)}{OPERATIONAL[kind].suffix}"
    return RATE.estimate(value) if kind == "verdict" else plain_number(value)


def _margin(value: float, kind: str) -> str:
    if kind == "verdict":
        return f"{RATE.estimate(value).removesuffix('%')} points"
    return plain_number(value)


def _hits(counts: Mapping[str, int]) -> str:
    text = f"{counts.get('hit', 0)} hit/{counts.get('miss', 0)} miss"
    shared = counts.get("shared", 0)
    return f"{text} · {shared} shared" if shared else text
