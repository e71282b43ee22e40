"""What every key of the two YAML files means; types and defaults come from the models."""

from __future__ import annotations

CONFIG = {
    "version": "the version of this format",
    "project": "a label for the project; also the name of its asset group in Dagster",
    "dataset": "the cases: a JSON Lines file",
    "suite": "`sample`: the cases were drawn from a population, of which reports then speak",
    "system": "what is evaluated, see below",
    "evaluators": "at least one entry, see below",
    "slices": (
        "every metric again for a part of the cases: `metadata.<key>`, `relevant_position` or "
        "`context_truncated`"
    ),
    "min_slice_support": "fewer cases than this in a slice: no interval",
    "concurrency": "see below",
    "seed": "recorded, and passed to every stage that has a parameter named `seed`",
    "metrics": "operational metrics, see below",
    "run": "see below",
    "dagster": "see below",
    "store": "see below",
    "system.name": "part of every identity that the cache goes by",
    "system.version": "a version that you declare; part of every identity",
    "system.rag": "a staged system, see below",
    "system.config": (
        "free settings of the system, such as the name of a model; part of every identity, "
        "readable in the stages as `current_case().config`"
    ),
    "system.code_paths": (
        "globs inside the project: these files count as code of both stages, in addition to "
        "the code that is found from the class"
    ),
    "system.timeout_s": "seconds for one attempt of a stage",
    "system.retries": "see below",
    "system.on_malformed": (
        "a malformed artifact ends the run (`stop`), or makes only its case missing (`missing`)"
    ),
    "system.rag.object": "the system, as `module:attribute`; a class is made without arguments",
    "system.rag.depth": "how many candidates `retrieve` is asked for",
    "system.rag.top_k": "how many candidates may reach the context; at most `depth`",
    "system.rag.token_budget": (
        "the most tokens that the context may hold, as `count_tokens` counts them; no limit "
        "without it"
    ),
    "system.rag.index_version": (
        "the version of what is searched: a text, `{file: path}` (its trimmed content) or "
        "`{callable: module:function}` (what it returns)"
    ),
    "system.retries.attempts": "attempts of a stage in all",
    "system.retries.wait_s": "the longest first wait, in seconds; it doubles with every attempt",
    "system.retries.max_wait_s": "the longest of all waits, in seconds",
    "system.retries.retry_on": "the exceptions after which to try again, as `module:Class`",
    "evaluators.type": "what it computes, see [evaluators](evaluators.md)",
    "evaluators.criterion": "the name of the metric; some types have a default",
    "concurrency.system": "cases in flight",
    "concurrency.judge": "judge calls in flight (there are no judges in this version)",
    "metrics.id": "a unique name, for rules and reports",
    "metrics.source": "what is measured for each case; tokens and cost are what stages report",
    "metrics.quantile": "0.95: the value that 95 % of the cases stay within",
    "run.fail_on_case_errors": "whether failed cases turn the stage red in Dagster",
    "dagster.rich_metadata_cases": (
        "up to this many cases in a run, each has its tables in the Dagster UI; beyond it, a short "
        "line"
    ),
    "dagster.cron": "when the nightly schedule runs",
    "dagster.owners": "who the assets belong to: e-mail addresses, and teams as `team:NAME`",
    "dagster.log_level": "the least severe messages of Dagster that are kept",
    "store.lock_timeout_s": "seconds to wait while another process holds the store",
}

POLICY = {
    "version": "the version of this format",
    "confidence_level": "of every interval that a rule decides on",
    "block_on": "the states of a rule that block",
    "warn_on": "the states of a rule that only warn",
    "block_on_partial_run": "whether a run over a part of the cases, or an unfinished one, blocks",
    "required_cases": "ids or globs of cases that must be observed",
    "rules": "at least one rule, see below",
    "rules.id": "a unique name",
    "rules.metric": "the criterion of an evaluator",
    "rules.kind": (
        "without it, a threshold rule: exactly one of `min` and `max`. `run` decides threshold and "
        "`observed_count` rules; the other kinds speak of two runs"
    ),
    "rules.min": "PASS when the whole interval is at or above it, FAIL when it is all below",
    "rules.max": "PASS when the whole interval is at or below it, FAIL when it is all above",
    "rules.max_failures": "of `observed_count`: how many observed cases may fail",
    "rules.margin": "of `non_inferiority` and `equivalence`, in the metric's unit (0.05: 5 points)",
    "rules.direction": "of `non_inferiority`: `max` for a metric where less is better",
    "rules.method": "how the interval is computed; the default fits the metric",
    "rules.requires_manual_review": "true: the rule is MANUAL_REVIEW, whatever the interval",
    "rules.max_missing_fraction": "a larger share of missing cases: INSUFFICIENT_EVIDENCE",
    "rules.min_support": "fewer observed cases: INSUFFICIENT_EVIDENCE",
}
