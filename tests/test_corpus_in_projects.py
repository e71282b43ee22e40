"""A corpus in a project: what is refused, what runs keep, what a changed manifest makes new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from command_line import call, document
from corpora import labels
from projects import Run
from rag_assets.assets.instance import open_instance, release_sqlite
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.places import load_config
from rag_assets.evaluation.project import load_project
from sourced import DOCUMENTS, STAFF, SourcedProject, case

DATED = {"as_of": "2026-09-16"}


@pytest.fixture
def sourced(tmp_path: Path) -> SourcedProject:
    found = SourcedProject(tmp_path)
    found.cases(case("one", "desk", expected=labels("desk", answer="noon"), **DATED))
    return found


def problems(sourced: SourcedProject) -> list[str]:
    with pytest.raises(InputError) as raised:
        load_project(sourced.root / "rag_assets.yaml")
    return [str(problem) for problem in raised.value.problems]


# What is refused


def test_a_manifest_that_is_not_there(sourced: SourcedProject) -> None:
    sourced.replace("rag_assets.yaml", "corpus: corpus.jsonl", "corpus: no.jsonl")
    assert problems(sourced) == [
        (
            'rag_assets.yaml:4: corpus: There is no file "no.jsonl" in the folder of the config '
            "file; write the path of the manifest relative to that folder."
        )
    ]


def test_a_broken_manifest_says_nothing_untrue_about_the_rest(sourced: SourcedProject) -> None:
    sourced.manifest({"doc_id": "desk"}, {"doc_id": "desk"})
    (problem,) = problems(sourced)
    assert problem.startswith("corpus.jsonl:2: doc_id:")


@pytest.mark.parametrize(
    ("doc_id", "why"),
    [
        ("alarm", '"alarm" is not permitted to its user'),
        ("old", '"old" is retired at 2026-09-16'),
        ("later", '"later" is not yet valid at 2026-09-16'),
        ("past", '"past" is expired at 2026-09-16'),
        ("ghost", '"ghost" is not in the manifest'),
    ],
)
def test_a_label_that_contradicts_an_answer(sourced: SourcedProject, doc_id: str, why: str) -> None:
    later = {"doc_id": "later", "valid_from": "2026-10-01"}
    sourced.manifest(*DOCUMENTS, later, {"doc_id": "past", "valid_to": "2026-09-15"})
    sourced.cases(
        case("fine", "desk", expected=labels("desk")),
        case("wrong", "desk", expected=labels("desk", doc_id), **DATED),
    )
    assert problems(sourced) == [
        (
            'cases.jsonl:2: expected.relevant: Case "wrong" expects an answer, and its relevant '
            f"document {why}. Correct the label or the manifest, or expect behavior: abstain."
        )
    ]
    result = call(sourced.root, "check")
    assert (result.exit_code, result.stdout) == (2, "")


def test_without_a_date_it_is_a_warning(sourced: SourcedProject) -> None:
    sourced.cases(
        case("gone", "desk", expected=labels("alarm")),
        case("part", "desk", expected=labels("desk", "old")),
        case("abstains", "desk", expected=labels("old", behavior="abstain"), **DATED),
    )
    project = load_project(sourced.root / "rag_assets.yaml")
    assert list(project.warnings[:2]) == [
        (
            'Case "gone" (line 1): its relevant document "alarm" is not permitted to its user, so '
            "the label does not count."
        ),
        (
            'Case "part" (line 2): its relevant document "old" is retired today, so the label does '
            "not count."
        ),
    ]
    excluded = [project.evaluators[1].exclusion(one) for one in project.dataset.cases]
    assert excluded == ["no_admissible_source", None, "no_admissible_source"]


def test_many_labels_are_counted(sourced: SourcedProject) -> None:
    sourced.cases(*(case(f"c{i}", "desk", expected=labels("old")) for i in range(8)))
    warnings = load_project(sourced.root / "rag_assets.yaml").warnings
    assert warnings[5] == "3 more labels do not count for the same reasons."


@pytest.mark.parametrize(
    ("expected", "key", "message"),
    [
        (
            {"behavior": "refuse"},
            "behavior",
            'behavior must be one of answer, abstain, clarify, report_error, got "refuse".',
        ),
        (
            {"behavior": "abstain", "reason": "acess_denied"},
            "reason",
            (
                "reason must be one of source_absent, access_denied, source_retired, ambiguous, "
                'got "acess_denied". Did you mean "access_denied"?'
            ),
        ),
        (
            {"reason": "ambiguous"},
            "reason",
            (
                "reason says why a system abstains, and the expected behavior is answer. Write "
                "behavior: abstain, or remove the reason."
            ),
        ),
        ({"facts": "F1"}, "facts", 'facts must be a list of texts, got "F1".'),
        ({"facts": ["F1", "F1"]}, "facts.1", '"F1" stands here twice; remove it.'),
        (
            {"forbidden": ["x", " \t"]},
            "forbidden.1",
            (
                r'The forbidden text " \t" holds nothing that could be found: nothing is left of '
                "it when white space is folded. Remove it."
            ),
        ),
    ],
)
def test_what_is_expected_is_checked(
    sourced: SourcedProject, expected: dict[str, Any], key: str, message: str
) -> None:
    sourced.cases(case("one", "desk"), case("two", "desk", expected=expected))
    assert problems(sourced) == [f"cases.jsonl:2: expected.{key}: {message}"]


def test_a_user_may_stand_in_the_input(sourced: SourcedProject) -> None:
    inside = {"question": "desk", "user": {"id": "bob", "roles": ["staff"]}}
    sourced.cases(
        {"id": "in", "input": inside, "expected": labels("alarm"), **DATED},
        {"id": "both", "input": inside, "user": "eve", "expected": labels("desk"), **DATED},
    )
    first, second = load_project(sourced.root / "rag_assets.yaml").dataset.cases
    assert (first.asker, second.asker) == (inside["user"], "eve")
    assert first.sources is not None
    assert first.sources.names == {"bob", "staff"}
    sourced.cases({"id": "bad", "input": {"question": "desk", "user": 7}})
    (problem,) = problems(sourced)
    assert problem.startswith("cases.jsonl:1: input.user: user must be a string, got 7")
    # Without a corpus nobody asks who it is.
    sourced.replace("rag_assets.yaml", "corpus: corpus.jsonl\n", "")
    sourced.without("admissible", "no_leak")
    load_project(sourced.root / "rag_assets.yaml")


def test_slices_of_sources_need_a_corpus(sourced: SourcedProject) -> None:
    sourced.replace("rag_assets.yaml", "corpus: corpus.jsonl\n", "slices: [stale_source]\n")
    sourced.without("admissible", "no_leak")
    assert problems(sourced) == [
        (
            "rag_assets.yaml:4: slices.0: stale_source asks the manifest, and this config declares "
            "none. Name it with the key corpus, or remove this slice."
        )
    ]


def test_check_says_what_the_corpus_is(sourced: SourcedProject) -> None:
    result = call(sourced.root, "check")
    assert "corpus   4 documents in corpus.jsonl" in result.stdout.splitlines()


# What a run keeps, and what a changed manifest makes new


CASES = (
    case("one", "desk new", expected=labels("desk", answer="noon"), **DATED),
    case("two", "old alarm", expected=labels("alarm", behavior="abstain"), **DATED),
    case("bob", "alarm", STAFF, expected=labels("alarm", answer="7714"), **DATED),
)


class Changed:
    """A project that ran twice, with another manifest in between."""

    def __init__(self, root: Path) -> None:
        self.sourced = SourcedProject(root)
        self.sourced.cases(*CASES)
        self.sourced.without("quoting")
        self.sourced.replace(
            "rag_assets.yaml",
            "system:\n",
            "slices: [stale_source, admissible_source]\nmin_slice_support: 1\nsystem:\n",
        )
        self.first = self.sourced.run()
        self.again = self.sourced.run()
        retired = [{**DOCUMENTS[0], "status": "retired"}, *DOCUMENTS[1:]]
        self.sourced.manifest(*retired)
        # The label of the first case contradicts the manifest from now on.
        self.sourced.cases({**CASES[0], "expected": {"answer": "noon"}}, *CASES[1:])
        self.gate = call(self.sourced.root, "gate", "latest", "--policy", "any.yaml")
        self.second = self.sourced.run()

    def manifest(self, run: Run) -> Any:
        return json.loads(run.row.record)["manifest"]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Changed:
    folder = tmp_path_factory.mktemp("changed")
    (folder / "any.yaml").write_text("rules:\n  - {id: a, metric: answer_correct, min: 0.1}\n")
    return Changed(folder)


@pytest.fixture
def instance(changed: Changed) -> Iterator[dg.DagsterInstance]:
    with open_instance(load_config(changed.sourced.root / "rag_assets.yaml")) as instance:
        yield instance
    release_sqlite()


def test_a_run_freezes_the_manifest_without_its_texts(changed: Changed) -> None:
    found = changed.manifest(changed.first)
    assert (found["file"], found["documents"]) == ("corpus.jsonl", 4)
    assert found["as_of"] == changed.first.row.created_at[:10]
    with changed.sourced.store.reading() as reader:
        kept = json.loads(reader.payloads([found["artifact"]])[found["artifact"]])
    assert {one["doc_id"] for one in kept["documents"]} == {"desk", "alarm", "old", "new"}
    assert not any({"text", "title"} & one.keys() for one in kept["documents"])
    assert changed.manifest(changed.second)["digest"] != found["digest"]


def test_values(changed: Changed) -> None:
    values = {
        (case_id, criterion): changed.first.judgment(case_id, criterion).value
        for case_id in ("one", "two", "bob")
        for criterion in ("admissible_retrieval", "admissible_context", "no_leak")
    }
    assert values == {
        ("one", "admissible_retrieval"): 1.0,
        ("one", "admissible_context"): 1.0,
        ("one", "no_leak"): 1.0,
        ("two", "admissible_retrieval"): 0.0,
        ("two", "admissible_context"): 0.0,
        ("two", "no_leak"): 0.0,
        ("bob", "admissible_retrieval"): 1.0,
        ("bob", "admissible_context"): 1.0,
        ("bob", "no_leak"): 1.0,
    }
    assert changed.first.judgment("two", "admissible_context").reason == "retired"
    assert changed.first.judgment("two", "hit_rate_at_2").reason == "no_admissible_source"
    assert changed.first.judgment("bob", "hit_rate_at_2").value == 1.0


def test_a_repeated_run_hits(changed: Changed) -> None:
    assert changed.again.counts["judgment"] == {"hit": 16}
    assert changed.again.counts["execution"] == {"hit": 3}


def test_a_changed_manifest_judges_anew_what_reads_it_and_nothing_else(changed: Changed) -> None:
    counts = changed.second.counts
    assert counts["execution"] == {"hit": 3}
    assert (counts["retrieve"], counts["generate"]) == ({"hit": 3}, {"hit": 3})
    sources = {(one.case_id, one.criterion): one.source for one in changed.second.judgments}
    readers = ("admissible_retrieval", "admissible_context", "admissible_citations", "no_leak")
    assert {sources["bob", criterion] for criterion in readers} == {"miss"}
    # What is relevant for bob, and what the answers are compared with, has not changed.
    assert sources["bob", "hit_rate_at_2"] == "hit"
    assert {sources[one, "answer_correct"] for one in ("one", "bob")} == {"hit"}
    assert changed.second.judgment("one", "admissible_context").reason == "retired"


def test_slices_of_sources(changed: Changed) -> None:
    def members(run: Run, name: str) -> dict[str, int]:
        found = [one for one in run.metrics if one.criterion == "no_leak"]
        scopes = {one.scope: one.observed for one in found}
        return {
            scope.partition("=")[2]: observed
            for scope, observed in scopes.items()
            if scope.startswith(f"slice/{name}=")
        }

    assert members(changed.first, "stale_source") == {"false": 2, "true": 1}
    assert members(changed.again, "stale_source") == {"false": 2, "true": 1}
    assert members(changed.first, "admissible_source") == {"absent": 1, "present": 2}
    assert members(changed.second, "stale_source") == {"false": 1, "true": 2}
    # The first case says nothing about its sources any more.
    assert members(changed.second, "admissible_source") == {"absent": 1, "present": 1}


def test_gate_and_compare_name_the_manifest(changed: Changed) -> None:
    assert "the project has changed since this run: dataset, manifest" in changed.gate.stderr
    result = call(changed.sourced.root, "compare", "latest", "latest~1")
    lines = result.stdout.splitlines()
    ours, theirs = (changed.manifest(run)["digest"][:12] for run in (changed.second, changed.again))
    said = lines.index(f"Manifest differs: {ours} against {theirs}")
    assert said < next(i for i, row in enumerate(lines) if row.startswith("answer_correct:"))
    assert not any(row.startswith("date differs") for row in lines)
    same = call(changed.sourced.root, "compare", "latest~1", "latest~2")
    assert "differs" not in same.stdout


def test_slices_of_a_comparison(changed: Changed) -> None:
    result = call(changed.sourced.root, "compare", "latest~1", "latest~2", "--json")
    rows = {tuple(one["slice"]) for one in document(result)["slices"]["rows"]}
    assert rows == {
        ("stale_source", "false"),
        ("stale_source", "true"),
        ("admissible_source", "absent"),
        ("admissible_source", "present"),
    }


def test_the_manifest_is_an_asset_that_judgments_depend_on(
    changed: Changed, instance: dg.DagsterInstance
) -> None:
    key = dg.AssetKey(["sample", "corpus_manifest"])
    observed = [
        record.asset_observation.data_version
        for record in instance.fetch_observations(key, limit=5).records
        if record.asset_observation
    ]
    digests = [changed.manifest(run)["digest"] for run in (changed.second, changed.first)]
    assert observed == digests
    for stage, reads in (("judgments", True), ("generation", False), ("retrieval", False)):
        records = instance.fetch_materializations(dg.AssetKey(["sample", stage]), limit=1).records
        tags = records[0].asset_materialization.tags or {}  # type: ignore[union-attr]
        assert ("dagster/input_data_version/sample/corpus_manifest" in tags) == reads
    # Every judgment was emitted again, and before it only the case whose expectation was edited.
    numbers = {
        stage: len(
            instance.fetch_materializations(dg.AssetKey(["sample", stage]), limit=50).records
        )
        for stage in ("retrieval", "generation", "judgments")
    }
    assert numbers == {"retrieval": 4, "generation": 4, "judgments": 6}


def test_violations_are_red_checks(changed: Changed, instance: dg.DagsterInstance) -> None:
    found: dict[str, Any] = {}
    for name in ("admissible_context", "admissible_retrieval", "admissible_citations", "no_leak"):
        key = dg.AssetCheckKey(dg.AssetKey(["sample", "metrics"]), name)
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=9)
        one = records[-1].event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
        found[name] = (one.passed, one.severity.value, one.metadata["failures"].value)
        assert len(records) == 3
    assert found == dict.fromkeys(found, (False, "ERROR", 1))
    assert one.description is not None
    assert one.description.startswith("1 case failed: two: text leaked")


def test_dates_that_differ_are_said_where_they_matter(tmp_path: Path) -> None:
    from rag_assets.evaluation.pairing import setting_changes

    sourced = SourcedProject(tmp_path)
    sourced.cases(*CASES)
    sourced.without("quoting")
    run = json.loads(sourced.run().row.record)
    later = {**run, "manifest": {**run["manifest"], "as_of": "2031-01-01"}}
    assert list(setting_changes(later, run)) == []
    passed = {**later, "manifest": {**later["manifest"], "passed": [1, 0]}}
    assert list(setting_changes(passed, run)) == [("date", "2031-01-01", run["manifest"]["as_of"])]


def test_what_is_hardly_meant_so_is_told(tmp_path: Path) -> None:
    project = SourcedProject(tmp_path)
    project.manifest({**DOCUMENTS[0], "facts": ["F1"]})
    user = {"id": "ann", "role": ["staff"]}
    project.cases(case("one", "desk", user, expected={"facts": ["F1", "F9"], "answer": "x"}))
    project.replace("rag_assets.yaml", "corpus:", "labels: [labels/*.csv]\ncorpus:")
    told = " ".join(call(tmp_path, "check").stderr.split())
    assert (
        'Users of the dataset have a key "role", which nothing reads. Did you mean "roles"?' in told
    )
    assert 'labels: "labels/*.csv" matches no file, so there are no labels from there.' in told
    assert 'No document of the manifest states "F9", which cases expect as facts.' in told
