"""The asset graph of a suite: one asset for each stage, in one definition.

Each stage has an op of its own; a system that is called as a whole has one op for the three stages
of an answer. An op yields `done`, which orders the stages, and never the outputs of its assets:
the events of an asset are written in bulk, one for each case that changed.
"""

# Dagster looks at the annotation of `context` itself, so annotations are not postponed here.
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from rag_assets.assets.execution import SuiteExecution, code_versions, execution_of, forget, steps
from rag_assets.assets.keys import INDEX, Suite, check_names, step_name
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.deciding import rules_for
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.words import ANSWERING, CASE_STAGES, PARENTS, STAGES, Stage

_WHOLE_DESCRIPTIONS: Mapping[Stage, str] = {
    "retrieval": "What the system reported to have retrieved for each case, as it was recorded.",
    "assembled_context": "What the system reported to have given its model, as it was recorded.",
    "generation": "What the system answered: one call for each case.",
}
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
    """The assets of a suite: its stages, and the index that a staged system searches.

    Args:
        project: the loaded project.
        suite: its names in Dagster.
    """
    gate = suite.key("gate")
    checks = [
        (dg.AssetCheckSpec(name, asset=gate, description=f"Rule {rule.id} on {rule.metric}."), rule)
        for name, rule in check_names(rules_for(project.policy, "run")).items()
    ]
    evaluate = _graph(project, suite, {one[0].get_python_identifier(): one for one in checks})
    stages = dg.AssetsDefinition.from_graph(
        evaluate,
        keys_by_output_name={stage: suite.key(stage) for stage in STAGES},
        keys_by_input_name={} if project.is_whole else {INDEX: suite.key(INDEX)},
        internal_asset_deps={
            stage: {suite.key(parent) for parent in _parents(project, stage)} for stage in STAGES
        },
        can_subset=True,
        check_specs=[spec for spec, _ in checks],
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

    index = [] if project.is_whole else [_index(project, suite)]
    return [*index, stages.map_asset_specs(finished)]


def _parents(project: Project, stage: Stage) -> tuple[str, ...]:
    searches = stage == "retrieval" and not project.is_whole
    return (*PARENTS[stage], INDEX) if searches else PARENTS[stage]


def _index(project: Project, suite: Suite) -> dg.SourceAsset:
    version = project.system.index_version

    def index() -> dg.DataVersion:
        return dg.DataVersion(str(version))

    with warnings.catch_warnings():
        # Users can do nothing about it: observable assets are in beta in Dagster itself.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.observable_source_asset(
            key=suite.key(INDEX),
            group_name=suite.name,
            description="What retrieval searches; its data version is the config's index_version.",
        )(index)


def _graph(
    project: Project, suite: Suite, checks: Mapping[str, tuple[dg.AssetCheckSpec, Rule]]
) -> dg.GraphDefinition:
    ops = {step: _op(project, suite, step, checks) for step in steps(project)}

    def wired(index: Any) -> dict[str, Any]:
        results: dict[str, Any] = {}
        previous: Any = None
        for step, op in ops.items():
            inputs = {} if previous is None else {"after": previous}
            if INDEX in op.ins:
                inputs[INDEX] = index
            # A short name: it stands twice in every event.
            made = op.alias(step_name(step))(**inputs)
            previous = made.done
            results |= {stage: getattr(made, _output(step, stage)) for stage in step}
            if "gate" in step:
                results |= {name: getattr(made, name) for name in checks}
        return results

    out = {name: dg.GraphOut() for name in (*STAGES, *checks)}
    name = f"{suite.name}__evaluate"
    if project.is_whole:

        @dg.graph(name=name, out=out)
        def evaluate_whole() -> dict[str, Any]:
            return wired(None)

        return evaluate_whole

    @dg.graph(name=name, ins={INDEX: dg.GraphIn()}, out=out)
    def evaluate(index: Any) -> dict[str, Any]:
        return wired(index)

    return evaluate


def _output(step: tuple[Stage, ...], stage: Stage) -> str:
    """The output of a step that is the asset of a stage."""
    return "asset" if len(step) == 1 else stage


def _op(
    project: Project,
    suite: Suite,
    step: tuple[Stage, ...],
    checks: Mapping[str, tuple[dg.AssetCheckSpec, Rule]],
) -> dg.OpDefinition:
    ins = {} if "cases" in step else {"after": dg.In(dg.Nothing)}
    if "retrieval" in step and not project.is_whole:
        ins[INDEX] = dg.In(dg.Nothing)
    assets = {_output(step, stage): stage for stage in step}
    own_checks = checks if "gate" in step else {}
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
            wanted = ["gate"]
        if wanted:
            settings = getattr(context.resources, suite.resource)
            execution = execution_of(context, project, suite, settings, wanted[0])
            try:
                execution.run_stages(context, wanted)
                if "gate" in wanted:
                    yield from _check_results(execution, checks, selected)
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


def _check_results(
    execution: SuiteExecution,
    checks: Mapping[str, tuple[dg.AssetCheckSpec, Rule]],
    selected: Any,
) -> Iterator[dg.AssetCheckResult]:
    conclusion = execution.conclusion
    decisions = {one.rule.id: one for one in conclusion.decisions} if conclusion else {}
    for name, (spec, rule) in checks.items():
        if name not in selected:
            continue
        decision = decisions[rule.id]
        interval = decision.metric.interval
        numbers = {
            "value": decision.metric.estimate,
            "lower": interval.lower if interval else None,
            "upper": interval.upper if interval else None,
            "threshold": rule.threshold,
            "max_failures": rule.max_failures,
        }
        yield dg.AssetCheckResult(
            asset_key=spec.asset_key,
            check_name=spec.name,
            passed=decision.state == "PASS",
            severity=_SEVERITY.get(decision.state, dg.AssetCheckSeverity.WARN),
            description=f"{decision.state}: {', '.join(decision.reasons)}",
            metadata={key: value for key, value in numbers.items() if value is not None},
        )
