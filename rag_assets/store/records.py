"""The rows of the store, as immutable values. Field order is column order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["hit", "miss", "shared", "error", "blocked", "absent", "none"]
"""Where a result came from: the cache, an execution, another case of the run with the same
identity; or why there is none: it failed, an earlier stage failed, the system did not record it,
nobody executed it."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. `record` is the JSON of what it froze at its start, `summary` of what it came to."""

    id: str
    created_at: str
    finished_at: str | None
    project: str
    origin: str
    parent: str | None
    dagster_run_id: str | None
    state: str
    completeness: str | None
    gate: str | None
    exit_code: int | None
    owner: str
    heartbeat: str
    error: str | None
    record: str
    summary: str | None


@dataclass(frozen=True, slots=True)
class StageResult:
    """The memoized result of a stage identity: the digest of its artifact, and what it cost."""

    identity: str
    stage: str
    digest: str
    run_id: str
    latency_ms: float
    usage: str | None


@dataclass(frozen=True, slots=True)
class CaseStage:
    """What one stage of one case came to in one run. `failure`, `attempts` and `usage` are
    JSON."""

    run_id: str
    case_id: str
    stage: str
    identity: str | None
    digest: str | None
    source: Source
    latency_ms: float
    failure: str | None
    attempts: str | None
    usage: str | None


@dataclass(frozen=True, slots=True)
class SampleStage(CaseStage):
    """The same of a further sample of a case, numbered from 1."""

    sample: int


@dataclass(frozen=True, slots=True)
class StageCost:
    """What one stage of one sample of a case of a run took: of the attempt that made its result.

    `digest` is None where there is no result; `failure` and `usage` are JSON.
    """

    case_id: str
    stage: str
    digest: str | None
    failure: str | None
    latency_ms: float
    usage: str | None
    sample: int


@dataclass(frozen=True, slots=True)
class Judgment:
    """A memoized judgment. `status` is observed or excluded; `detail` is JSON."""

    key: str
    status: str
    value: float | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class RunJudgment:
    """The outcome of one (case, criterion) in one run; `key` is None where nothing was judged."""

    run_id: str
    case_id: str
    criterion: str
    key: str | None
    source: Source
    status: str
    value: float | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class SettledCase:
    """A case that came through all case stages of a run: the run's records of it stand for every
    later run with the same key.

    `labelled`, `position` and `ambiguous` say where its relevant evidence stood, `truncated`
    whether the token budget cut its context, `stale` whether that held a stale document; None
    where that is not known.
    """

    key: str
    run_id: str
    case_id: str
    labelled: bool | None
    position: int | None
    ambiguous: bool | None
    truncated: bool | None
    stale: bool | None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one run, over all cases (scope `global`) or one slice value."""

    run_id: str
    scope: str
    criterion: str
    kind: str
    estimate: float | None
    lower: float | None
    upper: float | None
    observed: int
    missing: int
    excluded: int
    payload: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One rule's decision in one run; `payload` is the JSON of all its inputs."""

    run_id: str
    rule: str
    metric: str
    state: str
    payload: str


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One comparison of two runs; `payload` is its content as JSON, of which `id` is the digest."""

    id: str
    created_at: str
    candidate: str
    baseline: str
    gate: str | None
    exit_code: int
    payload: str


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """One diagnosis of a run under one intervention; `payload` is its content as JSON."""

    id: str
    created_at: str
    run_id: str
    criterion: str
    intervention: str
    dagster_run_id: str | None
    payload: str


@dataclass(frozen=True, slots=True)
class Head:
    """What the last event of (asset, case) on a Dagster instance said."""

    instance: str
    asset: str
    case_id: str
    fingerprint: str
    data_version: str
