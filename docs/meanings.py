"""What every key of the two YAML files means; types and defaults come from the models."""

from __future__ import annotations

CONFIG = {
    "version": "the version of this format",
    "project": "a label for the project; also the name of its asset group in Dagster",
    "dataset": "the cases: a JSON Lines file",
    "corpus": (
        "the manifest: which documents there are, who may see them and when they hold; a `.jsonl`, "
        "`.csv` or `.tsv` file, see [sources](../sources.md)"
    ),
    "labels": (
        "a glob or a list of globs: files with what reviewers said of answers, `.csv`, `.tsv` or "
        "`.jsonl`, see [labels](../labels.md)"
    ),
    "label_disagreement": (
        "what a case comes to where reviewers disagree: it is excluded, or the `majority` or the "
        "`strictest` label counts"
    ),
    "suite": "`sample`: the cases were drawn from a population, of which reports then speak",
    "system": "what is evaluated, see below",
    "evaluators": "at least one entry, see below",
    "slices": (
        "every metric again for a part of the cases: `metadata.<key>`, `relevant_position`, "
        "`context_truncated`, and with a corpus `admissible_source` and `stale_source`"
    ),
    "min_slice_support": "fewer cases than this in a slice: no interval",
    "concurrency": "see below",
    "seed": "recorded, and passed to every stage that has a parameter named `seed`",
    "replicates": (
        "samples of generation per case; a case then counts with the mean over them, and a stage "
        "that takes the `seed` is given another one for each sample"
    ),
    "replicate_retrieval": "retrieval is executed for every sample as well",
    "metrics": "metrics that no evaluator yields, see below",
    "run": "see below",
    "dagster": "see below",
    "store": "see below",
    "system.name": "part of every identity that the cache goes by",
    "system.version": (
        "a version that you declare; part of every identity. Required for `http`, and for a "
        "`callable` that is no plain function"
    ),
    "system.rag": "a staged system, see below; exactly one of the four kinds stands here",
    "system.callable": (
        "a function that is called as a whole, as `module:function`; sync or async"
    ),
    "system.http": "a service that is called over HTTP, see below",
    "system.recorded": "results that another system gave, see below",
    "system.config": (
        "free settings of the system, such as the name of a model; part of every identity, "
        "readable in the stages as `current_case().config`"
    ),
    "system.code_paths": (
        "globs inside the project: these files count as code of the system, in addition to "
        "the code that is found from the class or function"
    ),
    "system.timeout_s": "seconds for one attempt of a stage, or of a whole call",
    "system.retries": "see below",
    "system.records": (
        "the kinds of artifacts that every call of a `callable` records: `retrieval/v1`, "
        "`context/v1`, `citations/v1`, and any name of your own"
    ),
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
    "system.http.url": (
        "where the service answers; a user, a password, a parameter that carries a credential and "
        "`${NAME}` are refused here: they belong in `headers`"
    ),
    "system.http.method": "the request is JSON with every method",
    "system.http.headers": (
        "name to value; `${NAME}` is an environment variable, whose value is masked in everything "
        "that comes back and stored nowhere. A value of fewer than 4 characters is not masked. A "
        "credential is never written out here"
    ),
    "system.http.body": (
        "a template; the input of the case without it. `{{ input }}`, `{{ case.id }}`, "
        "`{{ case.user }}`, `{{ case.as_of }}` and `{{ seed }}` stand for values, and dotted paths "
        "lead further (`{{ input.question }}`); one that no case has is refused. A text that is "
        "one placeholder becomes the JSON value, one inside a longer text becomes text"
    ),
    "system.http.output_path": (
        "dotted path of the output in the response, such as `data.0.text`; the whole response "
        "without it"
    ),
    "system.http.artifacts": "kind of an artifact to its dotted path in the response",
    "system.http.timeout_s": "replaces `system.timeout_s`",
    "system.http.retries": "replaces `system.retries`, see below",
    "system.http.retries.attempts": "attempts in all; 4 where nothing is written",
    "system.http.retries.wait_s": "as in `system.retries`; `Retry-After` is the least wait",
    "system.http.retries.max_wait_s": (
        "as in `system.retries`. A service that asks for a longer wait than this, and than 120 "
        "seconds, is not asked again"
    ),
    "system.http.retries.retry_on": "not for HTTP",
    "system.recorded.path": "a `.jsonl`, `.csv` or `.tsv` file with one row for each case",
    "system.recorded.map": "which column or dotted path holds what, see below",
    "system.recorded.map.case_id": "the case that a row answers",
    "system.recorded.map.state": (
        "`valid`, `empty`, `denied`, `error` or `timeout`; without it, the ids and the error tell"
    ),
    "system.recorded.map.doc_ids": (
        "the retrieved documents, best first: a list of ids, or text like `kb-01|kb-07`. In a "
        "list, an object with `doc_id`, and if you like `chunk_id`, `score`, `text` and "
        "`metadata`, may stand for an id"
    ),
    "system.recorded.map.answer": "the answer; evaluators find it as the field `answer`",
    "system.recorded.map.citations": "the cited ids: a list, or text like `kb-01|kb-07`",
    "system.recorded.map.context_ids": (
        "what the model was given, written like `doc_ids`; an object has `doc_id`, and if you like "
        "`chunk_id`, `text`, `tokens` and `position`"
    ),
    "system.recorded.map.abstained": "true or false; evaluators find it as the field `abstained`",
    "system.recorded.map.error": "why there is no result",
    "system.retries.attempts": "attempts of a stage or call in all; 4 for `http` without this key",
    "system.retries.wait_s": "the longest first wait, in seconds; it doubles with every attempt",
    "system.retries.max_wait_s": "the longest of all waits, in seconds",
    "system.retries.retry_on": "the exceptions after which to try again, as `module:Class`",
    "evaluators.type": "what it computes, see [evaluators](evaluators.md)",
    "evaluators.criterion": "the name of the metric; some types have a default",
    "concurrency.system": "cases in flight",
    "concurrency.judge": "judge calls in flight (there are no judges in this version)",
    "metrics.id": "a unique name, for rules and reports",
    "metrics.source": "what is measured for each case; tokens and cost are what stages report, and "
    "only a staged system has `retrieval_ms` and `generation_ms`",
    "metrics.quantile": "0.95: the value that 95 % of the cases stay within",
    "metrics.every_replicate": (
        "instead of the other two: a criterion of verdicts, of which every sample of a case has "
        "to pass"
    ),
    "run.fail_on_case_errors": "whether failed cases turn the stage red in Dagster",
    "dagster.rich_metadata_cases": (
        "up to this many cases in a run, each has its tables in the Dagster UI; beyond it, a short "
        "line"
    ),
    "dagster.cron": "when the nightly schedule runs",
    "dagster.owners": "who the assets belong to: e-mail addresses, and teams as `team:NAME`",
    "dagster.log_level": "the least severe messages of Dagster that are kept",
    "store.lock_timeout_s": (
        "seconds to wait while another process holds the store, which takes parts of a second; it "
        "does not limit how long a run waits for another run of its project to end"
    ),
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
    "rules.metric": (
        "the criterion of an evaluator, the id of a metric, or `retrieval_valid`: of how many "
        "cases there is a retrieval"
    ),
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
