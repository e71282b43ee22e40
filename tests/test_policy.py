import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.policy import MetricKind, Policy, Rule, check_policy, read_policy

METRICS = {
    "answer_correct": MetricKind("verdict", (0.0, 1.0)),
    "ndcg_at_6": MetricKind("score", (0.0, 1.0)),
    "stars": MetricKind("score", (1.0, 5.0)),
}
CASES = ["refund_annual", "refund_review", "a[1]"]


def read(tmp_path: Path, text: str) -> tuple[Policy | None, list[Problem]]:
    path = tmp_path / "release.yaml"
    path.write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    return read_policy(path, problems, name="release.yaml"), problems


def valid(tmp_path: Path, text: str) -> Policy:
    policy, problems = read(tmp_path, text)
    assert problems == []
    assert policy is not None
    return policy


def with_rule(parameters: str, head: str = "") -> str:
    return f"{head}rules:\n  - {{id: r, metric: answer_correct, {parameters}}}\n"


def rule(tmp_path: Path, parameters: str) -> Rule:
    return valid(tmp_path, with_rule(parameters)).rules[0]


def found(tmp_path: Path, text: str) -> list[tuple[int, str, str]]:
    policy, problems = read(tmp_path, text)
    assert policy is None
    assert {problem.file for problem in problems} == {"release.yaml"}
    return [(problem.line, problem.key, problem.message) for problem in problems]


def checked(tmp_path: Path, metric: str, parameters: str) -> list[tuple[int, str, str]]:
    policy = valid(tmp_path, f"rules:\n- id: r\n  metric: {metric}\n  {parameters}\n")
    problems: list[Problem] = []
    check_policy(policy, METRICS, CASES, problems, name="release.yaml")
    return [(problem.line, problem.key, problem.message) for problem in problems]


def test_the_defaults(tmp_path: Path) -> None:
    policy = valid(tmp_path, with_rule("min: 0.7"))
    assert policy.version == 1
    assert policy.confidence_level == 0.95
    assert policy.block_on == ("FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW")
    assert policy.warn_on == ()
    assert policy.block_on_partial_run is True
    assert policy.required_cases == ()
    assert policy.path == tmp_path / "release.yaml"
    assert policy.rules == (
        Rule(id="r", metric="answer_correct", kind="min", threshold=0.7, line=2),
    )


def test_every_key_is_read(tmp_path: Path) -> None:
    policy = valid(
        tmp_path,
        "version: 1\n"
        "confidence_level: 0.9\n"
        "block_on: [FAIL]\n"
        "warn_on: [INSUFFICIENT_EVIDENCE, MANUAL_REVIEW]\n"
        "block_on_partial_run: false\n"
        'required_cases: ["refund_*"]\n'
        "rules:\n"
        "  - id: worst\n"
        "    metric: errors\n"
        "    max: 0.2\n"
        "    method: clopper_pearson\n"
        "    requires_manual_review: true\n"
        "    max_missing_fraction: 0\n"
        "    min_support: 20\n"
        "  - {id: none, metric: answer_correct, kind: observed_count, max_failures: 0}\n"
        "  - {id: no-slower, metric: errors, kind: non_inferiority, margin: 0.05, direction: max,\n"
        "     method: exact_paired}\n"
        "  - {id: better, metric: answer_correct, kind: superiority, method: bounded_mean_convex}\n"
        "  - {id: same, metric: answer_correct, kind: equivalence, margin: 1}\n",
    )
    assert policy.confidence_level == 0.9
    assert policy.block_on == ("FAIL",)
    assert policy.warn_on == ("INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW")
    assert policy.block_on_partial_run is False
    assert policy.required_cases == ("refund_*",)
    assert policy.rules == (
        Rule(
            id="worst",
            metric="errors",
            kind="max",
            threshold=0.2,
            method="clopper_pearson",
            requires_manual_review=True,
            max_missing_fraction=0.0,
            min_support=20,
            line=8,
        ),
        Rule(id="none", metric="answer_correct", kind="observed_count", max_failures=0, line=15),
        Rule(
            id="no-slower",
            metric="errors",
            kind="non_inferiority",
            margin=0.05,
            direction="max",
            method="exact_paired",
            line=16,
        ),
        Rule(
            id="better",
            metric="answer_correct",
            kind="superiority",
            method="bounded_mean_convex",
            line=18,
        ),
        Rule(id="same", metric="answer_correct", kind="equivalence", margin=1.0, line=19),
    )
    assert [rule.decides_on for rule in policy.rules] == [
        "run",
        "run",
        "comparison",
        "comparison",
        "comparison",
    ]
    assert policy.lines["rules.0.max"] == 10


def test_a_threshold_of_zero_is_a_threshold(tmp_path: Path) -> None:
    assert rule(tmp_path, "min: 0").kind == "min"
    assert rule(tmp_path, "max: 0").threshold == 0.0
    assert rule(tmp_path, "max: 0").kind == "max"


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    policy = valid(tmp_path, f"# a comment\n{with_rule('min: 0.7')}")
    content = {"rules": [{"id": "r", "metric": "answer_correct", "min": 0.7}]}
    assert policy.digest == digest(content)


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("version: 2", "version", "version must be 1, got 2; this is the only version there is."),
        (
            "confidence_level: 95",
            "confidence_level",
            "confidence_level must be less than 1, got 95.",
        ),
        (
            "confidence_level: 0",
            "confidence_level",
            "confidence_level must be greater than 0, got 0.",
        ),
        (
            "block_on: [FAIL, PASS]",
            "block_on.1",
            "PASS in block_on would block every release that is good; remove it.",
        ),
        (
            "block_on: [FAILED]",
            "block_on.0",
            (
                "The entry must be one of PASS, FAIL, INSUFFICIENT_EVIDENCE, MANUAL_REVIEW, got "
                '"FAILED". Did you mean "FAIL"?'
            ),
        ),
        (
            "warn_on: [MANUAL_REVIEW]",
            "warn_on.0",
            (
                "MANUAL_REVIEW is in block_on as well, which has it by default; a state is in one "
                "of the two."
            ),
        ),
        (
            "{block_on: [FAIL], warn_on: [FAIL]}",
            "warn_on.0",
            "FAIL is in block_on as well; a state is in one of the two.",
        ),
        (
            "blok_on: [FAIL]",
            "blok_on",
            'The key "blok_on" is not known. Did you mean "block_on"?',
        ),
        (
            "required_cases: refund",
            "required_cases",
            'required_cases must be a list, got "refund"; write required_cases: ["refund"].',
        ),
        ("judge: {}", "judge", "judge is not in this version of rag-assets; remove it."),
        (
            "path: x",
            "path",
            (
                'The key "path" is not known. The keys here are version, confidence_level, '
                "block_on, warn_on, block_on_partial_run, required_cases, rules."
            ),
        ),
    ],
)
def test_wrong_values_of_the_policy(tmp_path: Path, line: str, key: str, message: str) -> None:
    head = line.strip("{}").replace("], ", "]\n") + "\n" if line.startswith("{") else line + "\n"
    at = 2 if line.startswith("{") else 1
    assert found(tmp_path, with_rule("min: 0.7", head)) == [(at, key, message)]


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("", (1, "rules", "rules is required: a list of at least one rule.")),
        ("rules: []", (2, "rules", "rules must hold at least one rule.")),
        ("rules: {id: r}", (2, "rules", 'rules must be a list, got {"id": "r"}.')),
        (
            "rules: [7]",
            (2, "rules.0", "The entry must be a mapping with an id and a metric, got 7."),
        ),
    ],
)
def test_there_is_at_least_one_rule(
    tmp_path: Path, rules: str, problem: tuple[int, str, str]
) -> None:
    assert found(tmp_path, f"version: 1\n{rules}\n") == [problem]


KINDS = "observed_count, non_inferiority, superiority, equivalence"


@pytest.mark.parametrize(
    ("parameters", "key", "message"),
    [
        (
            "min: 0.7, max: 0.9",
            "",
            (
                "A rule without kind takes exactly one of min and max, and both stand here "
                f"({KINDS} are kinds)."
            ),
        ),
        (
            "margin: 0.1",
            "",
            (
                "A rule without kind takes exactly one of min and max, and neither stands here "
                f"({KINDS} are kinds)."
            ),
        ),
        (
            "min: 0.7, margin: 0.1",
            ".margin",
            (
                "margin does not belong to a rule with a threshold, which takes min, max, "
                "max_missing_fraction, min_support."
            ),
        ),
        (
            "kind: observed_count, max_failures: 0, min_support: 3",
            ".min_support",
            (
                "min_support does not belong to a rule of kind observed_count, which takes "
                "max_failures."
            ),
        ),
        (
            "kind: superiority, margin: 0.1",
            ".margin",
            (
                "margin does not belong to a rule of kind superiority, which takes "
                "max_missing_fraction, min_support."
            ),
        ),
        (
            "kind: equivalence, margin: 0.1, direction: max",
            ".direction",
            (
                "direction does not belong to a rule of kind equivalence, which takes margin, "
                "max_missing_fraction, min_support."
            ),
        ),
        ("kind: observed_count", "", "A rule of kind observed_count needs max_failures."),
        ("kind: non_inferiority", "", "A rule of kind non_inferiority needs margin."),
        ("kind: equivalence", "", "A rule of kind equivalence needs margin."),
        (
            "kind: noninferiority, margin: 0.1",
            ".kind",
            f'kind must be one of {KINDS}, got "noninferiority". Did you mean "non_inferiority"?',
        ),
        ("kind: [superiority]", ".kind", f'kind must be one of {KINDS}, got ["superiority"].'),
        (
            "kind: non_inferiority, margin: 0",
            ".margin",
            "margin must be greater than 0, got 0.",
        ),
        (
            "kind: observed_count, max_failures: -1",
            ".max_failures",
            "max_failures must be at least 0, got -1.",
        ),
        (
            "kind: observed_count, max_failures: 1.0",
            ".max_failures",
            "max_failures must be an integer, got 1.0; write max_failures: 1.",
        ),
        (
            'min: "0.7"',
            ".min",
            'min must be a finite number, got "0.7"; write min: 0.7 without quotes.',
        ),
        (
            "min: 0.7, max_missing_fraction: 20",
            ".max_missing_fraction",
            "max_missing_fraction must be at most 1, got 20.",
        ),
        ("min: 0.7, min_support: 0", ".min_support", "min_support must be at least 1, got 0."),
        (
            "min: 0.7, method: judge_stratified_exact",
            ".method",
            (
                "method must be one of clopper_pearson, bounded_mean_mixture, paired_mixture, "
                "exact_paired, bounded_mean_convex, order_statistic_quantile; "
                '"judge_stratified_exact" is not in this version of rag-assets.'
            ),
        ),
        (
            "min: 0.7, method: cloper_pearson",
            ".method",
            (
                "method must be one of clopper_pearson, bounded_mean_mixture, paired_mixture, "
                "exact_paired, bounded_mean_convex, order_statistic_quantile; "
                '"cloper_pearson" is not in this version of rag-assets. '
                'Did you mean "clopper_pearson"?'
            ),
        ),
        (
            "min: 0.7, judge: {min_agreement: 0.8}",
            ".judge",
            "judge is not in this version of rag-assets; remove it.",
        ),
        (
            "min: 0.7, max_missing_fracton: 0.1",
            ".max_missing_fracton",
            'The key "max_missing_fracton" is not known. Did you mean "max_missing_fraction"?',
        ),
        (
            "min: 0.7, requires_manual_review: on",
            ".requires_manual_review",
            (
                'requires_manual_review must be true or false, got "on"; write '
                "requires_manual_review: true without quotes."
            ),
        ),
    ],
)
def test_rules_that_are_refused(tmp_path: Path, parameters: str, key: str, message: str) -> None:
    assert found(tmp_path, with_rule(parameters)) == [(2, f"rules.0{key}", message)]


@pytest.mark.parametrize(
    ("parameters", "key", "wanted"),
    [
        ("mni: 0.7", "mni", "min"),
        ("knd: equivalence, margin: 0.1", "knd", "kind"),
        ("kind: observed_count, max_failure: 0", "max_failure", "max_failures"),
    ],
)
def test_a_misspelt_parameter_is_one_problem(
    tmp_path: Path, parameters: str, key: str, wanted: str
) -> None:
    assert found(tmp_path, with_rule(parameters)) == [
        (2, f"rules.0.{key}", f'The key "{key}" is not known. Did you mean "{wanted}"?')
    ]


def test_a_rule_needs_id_and_metric(tmp_path: Path) -> None:
    assert found(tmp_path, "rules:\n- min: 0.5\n") == [
        (2, "rules.0.id", "id is required: a name for the rule."),
        (2, "rules.0.metric", "metric is required: the criterion of an evaluator."),
    ]


def test_ids_are_unique_and_both_lines_are_named(tmp_path: Path) -> None:
    text = "rules:\n- {id: r, metric: m, min: 0.5}\n- {metric: m, max: 0.5,\n   id: r}\n"
    assert found(tmp_path, text) == [
        (4, "rules.1.id", 'The id "r" is taken by the rule on line 2; ids are unique.')
    ]


def test_all_problems_come_together(tmp_path: Path) -> None:
    text = (
        "block_on: [PASS]\n"
        "rules:\n"
        "- {id: r, metric: m}\n"
        "- {id: s, metric: m, kind: superiority, margin: 1, min_support: '3'}\n"
        "confidence_level: 2\n"
    )
    assert [(line, key) for line, key, _ in found(tmp_path, text)] == [
        (1, "block_on.0"),
        (3, "rules.0"),
        (4, "rules.1.margin"),
        (4, "rules.1.min_support"),
        (5, "confidence_level"),
    ]


@pytest.mark.parametrize(
    ("metric", "parameters"),
    [
        ("answer_correct", "min: 1"),
        ("answer_correct", "max: 0"),
        ("stars", "min: 4.5"),
        ("stars", "{kind: equivalence, margin: 4}"),
        ("answer_correct", "{kind: non_inferiority, margin: 1}"),
        ("answer_correct", "{min: 0.5, method: clopper_pearson}"),
        ("ndcg_at_6", "{min: 0.5, method: bounded_mean_mixture}"),
        ("answer_correct", "{kind: superiority, method: exact_paired}"),
        ("answer_correct", "{kind: superiority, method: paired_mixture}"),
        ("ndcg_at_6", "{kind: superiority, method: paired_mixture}"),
    ],
)
def test_rules_that_fit_their_metric(tmp_path: Path, metric: str, parameters: str) -> None:
    lines = parameters.strip("{}").replace(", ", "\n  ")
    assert checked(tmp_path, metric, lines) == []


@pytest.mark.parametrize(
    ("metric", "parameters", "key", "message"),
    [
        (
            "answer_correct",
            "min: 70",
            "min",
            "min of a rate is between 0 and 1, got 70; did you mean 0.7?",
        ),
        (
            "answer_correct",
            "max: 58.3",
            "max",
            "max of a rate is between 0 and 1, got 58.3; did you mean 0.583?",
        ),
        (
            "answer_correct",
            "min: 100",
            "min",
            "min of a rate is between 0 and 1, got 100; did you mean 1?",
        ),
        (
            "answer_correct",
            "min: 100.5",
            "min",
            "min is outside the range of answer_correct, which is [0, 1], got 100.5.",
        ),
        (
            "answer_correct",
            "max: -0.1",
            "max",
            "max is outside the range of answer_correct, which is [0, 1], got -0.1.",
        ),
        (
            "ndcg_at_6",
            "min: 70",
            "min",
            "min is outside the range of ndcg_at_6, which is [0, 1], got 70.",
        ),
        (
            "stars",
            "max: 0.5",
            "max",
            "max is outside the range of stars, which is [1, 5], got 0.5.",
        ),
        (
            "answer_corect",
            "min: 0.7",
            "metric",
            'No evaluator yields the metric "answer_corect". Did you mean "answer_correct"?',
        ),
        (
            "zzz",
            "min: 70",
            "metric",
            (
                'No evaluator yields the metric "zzz". '
                "The metrics are answer_correct, ndcg_at_6, stars."
            ),
        ),
        (
            "stars",
            "kind: observed_count\n  max_failures: 0\n  method: clopper_pearson",
            "kind",
            "observed_count counts failures, and stars is a score; use min or max.",
        ),
        (
            "answer_correct",
            "kind: non_inferiority\n  margin: 5",
            "margin",
            (
                "margin 5 is wider than the range of answer_correct, which is 1; such a rule would "
                "always PASS."
            ),
        ),
        (
            "stars",
            "kind: equivalence\n  margin: 4.5",
            "margin",
            (
                "margin 4.5 is wider than the range of stars, which is 4; such a rule would always "
                "PASS."
            ),
        ),
        (
            "answer_correct",
            "min: 0.7\n  method: bounded_mean_mixture",
            "method",
            (
                "bounded_mean_mixture does not fit a rule on one run of answer_correct, a verdict; "
                "use clopper_pearson."
            ),
        ),
        (
            "ndcg_at_6",
            "min: 0.7\n  method: clopper_pearson",
            "method",
            (
                "clopper_pearson does not fit a rule on one run of ndcg_at_6, a score; use "
                "bounded_mean_mixture or bounded_mean_convex."
            ),
        ),
        (
            "ndcg_at_6",
            "kind: superiority\n  method: bounded_mean_convex",
            "method",
            (
                "bounded_mean_convex does not fit a rule on a comparison of ndcg_at_6, a score; "
                "use paired_mixture."
            ),
        ),
        (
            "answer_correct",
            "min: 0.7\n  method: exact_paired",
            "method",
            (
                "exact_paired does not fit a rule on one run of answer_correct, a verdict; use "
                "clopper_pearson."
            ),
        ),
        (
            "ndcg_at_6",
            "kind: superiority\n  method: exact_paired",
            "method",
            (
                "exact_paired does not fit a rule on a comparison of ndcg_at_6, a score; use "
                "paired_mixture."
            ),
        ),
        (
            "answer_correct",
            "kind: superiority\n  method: clopper_pearson",
            "method",
            (
                "clopper_pearson does not fit a rule on a comparison of answer_correct, a verdict; "
                "use paired_mixture or exact_paired."
            ),
        ),
    ],
)
def test_rules_that_do_not_fit_their_metric(
    tmp_path: Path, metric: str, parameters: str, key: str, message: str
) -> None:
    problems = checked(tmp_path, metric, parameters)
    assert [(place, words) for _, place, words in problems] == [(f"rules.0.{key}", message)]


def test_a_problem_of_a_rule_has_its_line(tmp_path: Path) -> None:
    assert checked(tmp_path, "answer_correct", "min: 70")[0][0] == 4


@pytest.mark.parametrize("pattern", ["refund_annual", "refund_*", "*_review", "a[1]", "a[[]1]"])
def test_required_cases_are_ids_or_globs(tmp_path: Path, pattern: str) -> None:
    policy = valid(tmp_path, with_rule("min: 0.7", f'required_cases: ["{pattern}"]\n'))
    problems: list[Problem] = []
    check_policy(policy, METRICS, CASES, problems)
    assert problems == []


def test_a_required_case_that_does_not_exist(tmp_path: Path) -> None:
    head = 'required_cases:\n  - "refund_*"\n  - refund_anual\n  - "REFUND_*"\n'
    policy = valid(tmp_path, with_rule("min: 0.7", head))
    problems: list[Problem] = []
    check_policy(policy, METRICS, CASES, problems, name="release.yaml")
    assert problems == [
        Problem(
            "release.yaml",
            3,
            "required_cases.1",
            '"refund_anual" matches no case of the dataset. Did you mean "refund_annual"?',
        ),
        Problem(
            "release.yaml",
            4,
            "required_cases.2",
            '"REFUND_*" matches no case of the dataset.',
        ),
    ]


NAMES = [*Policy.model_fields, "judge", "id", "metric", "kind", "min", "max", "margin", "method"]
deterministic = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(0, 100)
    | st.sampled_from(["", "FAIL", "PASS", "superiority", "exact_paired", "a[1]", "0.7"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@deterministic
@given(st.dictionaries(st.sampled_from(NAMES), values, max_size=6))
def test_any_mapping_is_a_policy_or_has_problems_with_lines(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    policy, problems = read(tmp_path, json.dumps(content))
    assert (policy is None) == bool(problems)
    assert {problem.line for problem in problems} <= {1}
    places = [(problem.key, problem.message) for problem in problems]
    assert len(places) == len(set(places))


@deterministic
@given(
    threshold=st.floats(-10, 200),
    metric=st.sampled_from(sorted(METRICS)),
    bound=st.sampled_from(["min", "max"]),
)
def test_exactly_the_thresholds_outside_the_range_are_refused(
    tmp_path: Path, threshold: float, metric: str, bound: str
) -> None:
    low, high = METRICS[metric].value_range
    problems = checked(tmp_path, metric, f"{bound}: {threshold!r}")
    assert len(problems) == (0 if low <= threshold <= high else 1)
    suggests = any("did you mean" in message for _, _, message in problems)
    assert suggests == (metric == "answer_correct" and 1 < threshold <= 100)
