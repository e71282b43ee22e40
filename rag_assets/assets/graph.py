"""The asset graph of a suite: one asset for each stage, in one definition.

Each stage has an op of its own; a system that is called as a whole has one op for the three stages
of an answer. An op yields `done`, which orders the stages, and never the outputs of its assets:
the events of an asset are written in bulk, one for each case that changed.
"""

# Dagster looks at the annotation of `context` itself, so annotations are not postponed here.
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg

from rag_assets.assets.execution import SuiteExecution, code_versions, execution_of, forget, steps
from rag_assets.assets.keys import CORPUS, INDEX, Suite, check_names, step_name
from rag_assets.assets.violation_checks import violation_check, violation_specs
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.deciding import rules_for
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.words import ANSWERING, CASE_STAGES, PARENTS, STAGES, Stage

_WHOLE_DESCRIPTIONS: Mapping[Stage, str] = {
    "retrieval": "What the system reported to have retrieved for each case, as it was recorded.",
    "assembled_context": "What the system reported to have given its model, as it was recorded.",
    "generation": "What the system answered: one call for each case.",
}
_IS = "its data version is"
_SEVERITY = {"FAIL": dg.AssetCheckSeverity.ERROR}
_DESCRIPTIONS: Mapping[Stage, str] = {
    "cases": "The labelled cases of the dataset.",
    "retrieval": "The candidates that the system retrieved for each case, in its own order.",
    "assembled_context": "The passages that reached the model: cut at top_k and token budget.",
    "generation": "What the system answered over exactly those passages.",
    "judgments": "What each evaluator says of each case.",
    "metrics": "Estimates with intervals and denominators, over all cases and every slice.",
    "gate": "The decision of every rule of the policy, and what it means for the release.",
}


def suite_assets(project: Project, suite: Suite) -> list[dg.AssetsDefinition | dg.SourceAsset]:
    """The assets of a suite: its stages, the index that a staged system searches, the manifest.

    Args:
        project: the loaded project.
        suite: its names in Dagster.
    """
    checks = _checks(project, suite)
    evaluate = _graph(project, suite, checks)
    stages = dg.AssetsDefinition.from_graph(
        evaluate,
        keys_by_output_name={stage: suite.key(stage) for stage in STAGES},
        keys_by_input_name={source: suite.key(source) for source in _sources(project)},
        internal_asset_deps={
            stage: {suite.key(parent) for parent in _parents(project, stage)} for stage in STAGES
        },
        can_subset=True,
        check_specs=[one.spec for one in checks.values()],
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    cases = dg.StaticPartitionsDefinition([case.id for case in project.dataset.cases])
    versions = code_versions(project)
    descriptions = {**_DESCRIPTIONS, **(_WHOLE_DESCRIPTIONS if project.is_whole else {})}
    # Answers of a service, or of a file, are made by no Python of the project.
    kind = project.config.system.kind
    answered_by = kind if kind in ("http", "recorded") else "python"

    def finished(spec: dg.AssetSpec) -> dg.AssetSpec:
        stage: Stage = next(stage for stage in STAGES if stage == spec.key.path[-1])
        spec = spec.replace_attributes(
            partitions_def=cases if stage in CASE_STAGES else None,
            code_version=versions[stage],
            group_name=suite.name,
            description=descriptions[stage],
            skippable=True,
            owners=project.config.dagster.owners,
            kinds={answered_by if stage in ANSWERING else "python", "duckdb"},
            tags={**spec.tags, "rag/suite": suite.name, "rag/stage": stage},
        )
        if stage == "metrics":
            everything = dg.AllPartitionMapping()
            dep = dg.AssetDep(suite.key("judgments"), partition_mapping=everything)
            spec = spec.replace_attributes(deps=[dep])
        return spec

    sources = []
    if not project.is_whole:
        version, what = str(project.system.index_version), "the config's index_version"
        sources.append(_source(suite, INDEX, version, f"What retrieval searches; {_IS} {what}."))
    if project.corpus is not None:
        what = f"the SHA-256 of {project.corpus.file}"
        text = f"Which documents there are, and who may see them; {_IS} {what}."
        sources.append(_source(suite, CORPUS, project.corpus.digest, text))
    return [*sources, stages.map_asset_specs(finished)]


def _sources(project: Project) -> dict[str, Stage]:
    """Source → the stage that reads it."""
    found: dict[str, Stage] = {} if project.is_whole else {INDEX: "retrieval"}
    return found | ({CORPUS: "judgments"} if project.reads_corpus else {})


def _parents(project: Project, stage: Stage) -> tuple[str, ...]:
    own = (source for source, reader in _sources(project).items() if reader == stage)
    return (*PARENTS[stage], *own)


def _source(suite: Suite, name: str, version: str, description: str) -> dg.SourceAsset:
    """Something that a stage reads and nobody here makes."""

    def observed() -> dg.DataVersion:
        return dg.DataVersion(version)

    with warnings.catch_warnings():
        # Users can do nothing about it: observable assets are in beta in Dagster itself.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.observable_source_asset(
            key=suite.key(name),
            group_name=suite.name,
            description=description,
        )(observed)


@dataclass(frozen=True, slots=True)
class _Check:
    """A check of the asset of a stage: of a rule of the policy, or of a hard constraint."""

    stage: Stage
    spec: dg.AssetCheckSpec
    result: Callable[[SuiteExecution], dg.AssetCheckResult]


def _checks(project: Project, suite: Suite) -> dict[str, _Check]:
    """Output of an op → the check that it is of."""
    gate, metrics = suite.key("gate"), suite.key("metrics")
    found = [
        _Check("metrics", spec, partial(violation_check, spec, criterion))
        for spec, criterion in violation_specs(project, metrics)
    ]
    for name, rule in check_names(rules_for(project.policy, "run")).items():
        text = f"Rule {rule.id} on {rule.metric}."
        spec = dg.AssetCheckSpec(name, asset=gate, description=text)
        found.append(_Check("gate", spec, partial(_rule_check, spec, rule)))
    return {one.spec.get_python_identifier(): one for one in found}


def _graph(project: Project, suite: Suite, checks: Mapping[str, _Check]) -> dg.GraphDefinition:
    ops = {step: _op(project, suite, step, checks) for step in steps(project)}

    sources = _sources(project)

    @dg.graph(
        name=f"{suite.name}__evaluate",
        ins={source: dg.GraphIn() for source in sources},
        out={name: dg.GraphOut() for name in (*STAGES, *checks)},
    )
    def evaluate(**external: Any) -> dict[str, Any]:
        results: dict[str, Any] = {}
        previous: Any = None
        for step, op in ops.items():
            inputs = {} if previous is None else {"after": previous}
            inputs |= {source: external[source] for source in sources if source in op.ins}
            # A short name: it stands twice in every event.
            made = op.alias(step_name(step))(**inputs)
            previous = made.done
            results |= {stage: getattr(made, _output(step, stage)) for stage in step}
            own = (name for name, check in checks.items() if check.stage in step)
            results |= {name: getattr(made, name) for name in own}
        return results

    return evaluate


def _output(step: tuple[Stage, ...], stage: Stage) -> str:
    """The output of a step that is the asset of a stage."""
    return "asset" if len(step) == 1 else stage


def _op(
    project: Project,
    suite: Suite,
    step: tuple[Stage, ...],
    checks: Mapping[str, _Check],
) -> dg.OpDefinition:
    ins = {} if "cases" in step else {"after": dg.In(dg.Nothing)}
    read = (source for source, reader in _sources(project).items() if reader in step)
    ins |= {source: dg.In(dg.Nothing) for source in read}
    assets = {_output(step, stage): stage for stage in step}
    own_checks = {name: check for name, check in checks.items() if check.stage in step}
    outs = {"done": dg.Out(dg.Nothing)}
    outs |= {name: dg.Out(dg.Nothing, is_required=False) for name in (*assets, *own_checks)}

    @dg.op(
        name=f"{suite.name}__{step_name(step)}",
        ins=ins,
        out=outs,
        required_resource_keys={suite.resource},
        pool=suite.pool,
    )
    def run(context: dg.OpExecutionContext) -> Iterator[Any]:
        selected = context.selected_output_names
        wanted = [stage for name, stage in assets.items() if name in selected]
        if any(name in selected for name in own_checks):
            wanted = [step[-1]]
        if wanted:
            settings = getattr(context.resources, suite.resource)
            execution = execution_of(context, project, suite, settings, wanted[0])
            try:
                execution.run_stages(context, wanted)
                for name, check in own_checks.items():
                    if name in selected:
                        yield check.result(execution)
                if execution.last in wanted:
                    execution.raise_for_failed_cases()
            except BaseException:
                forget(context, suite)
                raise
            if execution.last in wanted:
                forget(context, suite)
        if "done" in selected:
            yield dg.Output(None, "done")

    return run


def _rule_check(
    spec: dg.AssetCheckSpec, rule: Rule, execution: SuiteExecution
) -> dg.AssetCheckResult:
    conclusion = execution.conclusion
    decisions = {one.rule.id: one for one in conclusion.decisions} if conclusion else {}
    decision = decisions[rule.id]
    interval = decision.metric.interval
    numbers = {
        "value": decision.metric.estimate,
        "lower": interval.lower if interval else None,
        "upper": interval.upper if interval else None,
        "threshold": rule.threshold,
        "max_failures": rule.max_failures,
    }
    return dg.AssetCheckResult(
        asset_key=spec.asset_key,
        check_name=spec.name,
        passed=decision.state == "PASS",
        severity=_SEVERITY.get(decision.state, dg.AssetCheckSeverity.WARN),
        description=f"{decision.state}: {', '.join(decision.reasons)}",
        metadata={key: value for key, value in numbers.items() if value is not None},
    )
