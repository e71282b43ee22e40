import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.config import Config, read_config
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.http_config import HttpSettings
from rag_assets.contracts.recorded_config import RecordedMap, RecordedSettings
from rag_assets.contracts.system_config import (
    CallableVersion,
    FileVersion,
    RagSettings,
    SystemConfig,
)
from rag_assets.contracts.timing import Retries

MINIMAL = """\
project: support
dataset: data/cases.jsonl
system:
  name: bot
  rag:
    object: app:SupportRag
evaluators:
  - type: contains
    criterion: answer_correct
"""

FULL = """\
version: 1
project: support
dataset: data/cases.jsonl
suite: sample
system:
  name: bot
  version: "2.10"
  rag:
    object: app:SupportRag
    depth: 6
    top_k: 2
    token_budget: 40
    index_version: kb-2026-09-16
  config: {model: small, nested: {temperature: 0.5}}
  code_paths: ["prompts/*.txt"]
  timeout_s: 30
  retries: {attempts: 3, wait_s: 0, max_wait_s: 5.5, retry_on: ["app:Busy", "builtins:OSError"]}
  on_malformed: missing
evaluators:
  - type: contains
    criterion: answer_correct
    field: answer
  - type: numeric
    criterion: amount
    tolerance:
      absolute: 0.5
slices: [metadata.topic, metadata.a.b, relevant_position, context_truncated]
min_slice_support: 4
concurrency: {system: 32}
seed: -3
run: {fail_on_case_errors: false}
dagster: {rich_metadata_cases: 0, cron: "0 5 * * 1", log_level: DEBUG, owners: ["team:search"]}
store: {lock_timeout_s: 2}
"""


def read(tmp_path: Path, text: str) -> tuple[Config | None, list[Problem]]:
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "cases.jsonl").touch()
    path = tmp_path / "rag_assets.yaml"
    path.write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    return read_config(path, problems, name="rag_assets.yaml"), problems


def valid(tmp_path: Path, text: str) -> Config:
    config, problems = read(tmp_path, text)
    assert problems == []
    assert config is not None
    return config


def only_problem(tmp_path: Path, text: str) -> tuple[int, str, str]:
    config, problems = read(tmp_path, text)
    assert config is None
    assert len(problems) == 1, [str(problem) for problem in problems]
    assert problems[0].file == "rag_assets.yaml"
    return problems[0].line, problems[0].key, problems[0].message


def with_system(line: str) -> str:
    """The minimal config with one more line in `system`; the line stands on line 5."""
    return MINIMAL.replace("  name: bot\n", f"  name: bot\n  {line}\n")


def with_rag(line: str) -> str:
    """The minimal config with one more line in `system.rag`, on line 7."""
    return MINIMAL.replace("app:SupportRag\n", f"app:SupportRag\n    {line}\n")


def test_the_minimal_config_has_the_documented_defaults(tmp_path: Path) -> None:
    config = valid(tmp_path, MINIMAL)
    assert config.version == 1
    assert config.suite == "regression"
    assert config.system.version is None
    assert config.system.rag == RagSettings(object="app:SupportRag")
    assert config.system.staged.depth is None
    assert config.system.staged.index_version is None
    assert config.system.config is None
    assert config.system.code_paths == ()
    assert config.system.timeout_s == 120.0
    assert config.system.retries == Retries(attempts=1, wait_s=0.5, max_wait_s=30.0, retry_on=())
    assert config.system.on_malformed == "stop"
    assert config.slices == ()
    assert config.min_slice_support == 30
    assert (config.concurrency.system, config.concurrency.judge) == (8, 4)
    assert config.seed == 0
    assert config.run.fail_on_case_errors is True
    assert config.dagster.rich_metadata_cases == 1000
    assert config.dagster.cron == "0 2 * * *"
    assert config.dagster.owners == ()
    assert config.dagster.log_level == "INFO"
    assert config.store.lock_timeout_s == 60.0


def test_every_key_is_read(tmp_path: Path) -> None:
    config = valid(tmp_path, FULL)
    rag = config.system.rag
    assert (rag.depth, rag.top_k, rag.token_budget) == (6, 2, 40)
    assert rag.index_version == "kb-2026-09-16"
    assert config.suite == "sample"
    assert config.system.version == "2.10"
    assert config.system.config == {"model": "small", "nested": {"temperature": 0.5}}
    assert config.system.code_paths == ("prompts/*.txt",)
    assert config.system.timeout_s == 30.0
    assert config.system.retries.attempts == 3
    assert config.system.retries.retry_on == ("app:Busy", "builtins:OSError")
    assert config.system.on_malformed == "missing"
    assert config.slices == (
        "metadata.topic",
        "metadata.a.b",
        "relevant_position",
        "context_truncated",
    )
    assert config.min_slice_support == 4
    assert (config.concurrency.system, config.concurrency.judge) == (32, 4)
    assert config.seed == -3
    assert config.run.fail_on_case_errors is False
    assert config.dagster.rich_metadata_cases == 0
    assert config.dagster.cron == "0 5 * * 1"
    assert config.dagster.owners == ("team:search",)
    assert config.dagster.log_level == "DEBUG"
    assert config.store.lock_timeout_s == 2.0


def test_evaluator_entries_keep_their_parameters_and_lines(tmp_path: Path) -> None:
    contains, numeric = valid(tmp_path, FULL).evaluators
    assert (contains.type, contains.criterion) == ("contains", "answer_correct")
    assert contains.parameters == {"field": "answer"}
    assert contains.line == 20
    assert dict(contains.lines) == {"type": 20, "criterion": 21, "field": 22}
    assert numeric.parameters == {"tolerance": {"absolute": 0.5}}
    assert dict(numeric.lines) == {
        "type": 23,
        "criterion": 24,
        "tolerance": 25,
        "tolerance.absolute": 26,
    }


def test_paths_are_absolute_and_start_at_the_config_file(tmp_path: Path) -> None:
    config = valid(tmp_path, MINIMAL)
    assert config.path == tmp_path / "rag_assets.yaml"
    assert config.root == tmp_path
    assert config.dataset == tmp_path / "data" / "cases.jsonl"


def test_lines_answer_for_dotted_keys(tmp_path: Path) -> None:
    lines = valid(tmp_path, FULL).lines
    assert lines["system.rag.depth"] == 10
    assert lines["evaluators.0.field"] == 22
    assert lines["slices.1"] == 27


def test_the_digest_is_of_the_content_and_not_of_the_writing(tmp_path: Path) -> None:
    expected = digest(
        {
            "project": "support",
            "dataset": "data/cases.jsonl",
            "system": {"name": "bot", "rag": {"object": "app:SupportRag"}},
            "evaluators": [{"type": "contains", "criterion": "answer_correct"}],
        }
    )
    assert valid(tmp_path, MINIMAL).digest == expected
    assert valid(tmp_path, f"# a comment\n\n{MINIMAL}").digest == expected
    assert valid(tmp_path, f"{MINIMAL}seed: 0\n").digest != expected


def test_a_config_cannot_be_changed(tmp_path: Path) -> None:
    config = valid(tmp_path, MINIMAL)
    with pytest.raises(ValidationError, match="frozen"):
        config.seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("index_version: v1", "v1"),
        ("index_version: 2026-09-16", "2026-09-16"),
        ("index_version: {file: index/VERSION}", FileVersion(file=Path("index/VERSION"))),
        ("index_version: {callable: app:version}", CallableVersion(callable="app:version")),
        ("index_version:", None),
    ],
)
def test_the_forms_of_index_version(tmp_path: Path, written: str, value: Any) -> None:
    assert valid(tmp_path, with_rag(written)).system.rag.index_version == value


@pytest.mark.parametrize(
    ("written", "got"),
    [
        ("index_version: 7", "7"),
        ('index_version: ""', '""'),
        ("index_version: {fil: x}", '{"fil": "x"}'),
        ("index_version: {file: x, callable: a:b}", '{"file": "x", "callable": "a:b"}'),
        ("index_version: {callable: app}", '{"callable": "app"}'),
        ("index_version: {file: 7}", '{"file": 7}'),
    ],
)
def test_other_forms_of_index_version_are_refused(tmp_path: Path, written: str, got: str) -> None:
    assert only_problem(tmp_path, with_rag(written)) == (
        7,
        "system.rag.index_version",
        (
            "index_version must be a string (numbers in quotes), {file: path} or "
            f"{{callable: module:function}}, got {got}."
        ),
    )


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ('depth: "2"', "depth", 'must be an integer, got "2"; write depth: 2 without quotes.'),
        ("depth: true", "depth", "must be an integer, got true."),
        ("top_k: 2.0", "top_k", "must be an integer, got 2.0; write top_k: 2."),
        ("top_k: 2.5", "top_k", "must be an integer, got 2.5."),
        ("token_budget: many", "token_budget", 'must be an integer, got "many".'),
        ("depth: [6]", "depth", "must be an integer, got [6]."),
        ("depth: 0", "depth", "must be at least 1, got 0."),
    ],
)
def test_numbers_are_not_coerced(tmp_path: Path, line: str, key: str, message: str) -> None:
    assert only_problem(tmp_path, with_rag(line)) == (7, f"system.rag.{key}", f"{key} {message}")


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("version: 1.10", "version", 'must be a string, got 1.1; write version: "1.10" in quotes.'),
        ('version: ""', "version", "must not be empty."),
        ("timeout_s: 0", "timeout_s", "must be greater than 0, got 0."),
        (
            'timeout_s: "1.5"',
            "timeout_s",
            'must be a finite number, got "1.5"; write timeout_s: 1.5 without quotes.',
        ),
        ("timeout_s: true", "timeout_s", "must be a finite number, got true."),
        ("config: [a]", "config", 'must be a mapping, got ["a"].'),
        (
            "code_paths: prompts/*",
            "code_paths",
            'must be a list, got "prompts/*"; write code_paths: ["prompts/*"].',
        ),
        ("retries: 3", "retries", "must be a mapping, got 3."),
        (
            "on_malformed: mising",
            "on_malformed",
            'must be one of stop, missing, got "mising". Did you mean "missing"?',
        ),
    ],
)
def test_wrong_values_in_system(tmp_path: Path, line: str, key: str, message: str) -> None:
    assert only_problem(tmp_path, with_system(line)) == (5, f"system.{key}", f"{key} {message}")


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ('version: "1"', "version", 'version must be an integer, got "1"; write version: 1'),
        ("version: 2", "version", "version must be 1, got 2; this is the only version there is."),
        ("version: true", "version", "version must be an integer, got true."),
        ("min_slice_support: 0", "min_slice_support", "min_slice_support must be at least 1"),
        ("concurrency: {judge: 0}", "concurrency.judge", "judge must be at least 1, got 0."),
        ("seed: 1.5", "seed", "seed must be an integer, got 1.5."),
        (
            "run: {fail_on_case_errors: yes}",
            "run.fail_on_case_errors",
            'fail_on_case_errors must be true or false, got "yes"; write fail_on_case_errors: true',
        ),
        (
            "dagster: {log_level: info}",
            "dagster.log_level",
            "log_level must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
        ),
        (
            "dagster: {owners: [search]}",
            "dagster.owners.0",
            'The entry must be an e-mail address, or a team as team:NAME, got "search".',
        ),
        (
            "store: {lock_timeout_s: -1}",
            "store.lock_timeout_s",
            "lock_timeout_s must be at least 0",
        ),
        ("suite: samples", "suite", "suite must be one of regression, sample"),
        ("slices: metadata.topic", "slices", "slices must be a list"),
        ("slices:", "slices", "slices must be a list, got null."),
    ],
)
def test_wrong_values_at_the_top(tmp_path: Path, line: str, key: str, message: str) -> None:
    at, place, text = only_problem(tmp_path, f"{MINIMAL}{line}\n")
    assert (at, place) == (10, key)
    assert text.startswith(message)


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        (
            with_rag("dept: 6"),
            7,
            "system.rag.dept",
            'The key "dept" is not known. Did you mean "depth"?',
        ),
        (
            with_system("timeout: 6"),
            5,
            "system.timeout",
            'The key "timeout" is not known. Did you mean "timeout_s"?',
        ),
        (
            f"{MINIMAL}concurrency: {{sistem: 3}}\n",
            10,
            "concurrency.sistem",
            'The key "sistem" is not known. Did you mean "system"?',
        ),
        (
            f"{MINIMAL}store: {{zzz: 3}}\n",
            10,
            "store.zzz",
            'The key "zzz" is not known. The keys here are lock_timeout_s.',
        ),
    ],
)
def test_unknown_keys_get_the_nearest_known_one(
    tmp_path: Path, text: str, line: int, key: str, message: str
) -> None:
    assert only_problem(tmp_path, text) == (line, key, message)


@pytest.mark.parametrize("key", ["path", "root", "digest", "lines"])
def test_what_is_computed_is_no_key_of_the_file(tmp_path: Path, key: str) -> None:
    line, place, message = only_problem(tmp_path, f"{MINIMAL}{key}: x\n")
    assert (line, place) == (10, key)
    assert message.startswith(f'The key "{key}" is not known.')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("project: support", "projct: support"),
        ("dataset: data", "datset: data"),
        ("evaluators:", "evaluatrs:"),
        ("  name: bot", "  nam: bot"),
        ("  rag:", "  rga:"),
    ],
)
def test_a_misspelt_required_key_is_one_problem(tmp_path: Path, old: str, new: str) -> None:
    _, _, message = only_problem(tmp_path, MINIMAL.replace(old, new))
    wanted = old.split(":")[0].strip()
    assert message.endswith(f'is not known. Did you mean "{wanted}"?')


@pytest.mark.parametrize(
    ("removed", "line", "key", "message"),
    [
        ("project: support\n", 1, "project", "project is required: a label for the project."),
        (
            "  name: bot\n",
            3,
            "system.name",
            "name is required: a name for the system, part of every identity.",
        ),
        (
            "  rag:\n    object: app:SupportRag\n",
            3,
            "system",
            "system needs exactly one of rag, callable, http, recorded.",
        ),
    ],
)
def test_required_keys(tmp_path: Path, removed: str, line: int, key: str, message: str) -> None:
    assert only_problem(tmp_path, MINIMAL.replace(removed, "")) == (line, key, message)


def test_keys_of_later_versions_at_the_top(tmp_path: Path) -> None:
    assert only_problem(tmp_path, f"{MINIMAL}budget: {{calls: 5}}\n") == (
        10,
        "budget",
        "budget is not in this version of rag-assets; remove it.",
    )


def test_labels_are_one_glob_or_several(tmp_path: Path) -> None:
    one = valid(tmp_path, f"{MINIMAL}labels: labels/*.csv\n")
    assert (one.labels, one.label_disagreement) == (("labels/*.csv",), "exclude")
    more = "labels: [a.csv, b.jsonl]\nlabel_disagreement: strictest\n"
    both = valid(tmp_path, f"{MINIMAL}{more}")
    assert (both.labels, both.label_disagreement) == (("a.csv", "b.jsonl"), "strictest")
    assert only_problem(tmp_path, f"{MINIMAL}label_disagreement: newest\n") == (
        10,
        "label_disagreement",
        'label_disagreement must be one of exclude, majority, strictest, got "newest".',
    )


RAG = "  rag:\n    object: app:SupportRag\n"


def as_kind(text: str) -> str:
    """The minimal config with another kind of system, which begins on line 5."""
    return MINIMAL.replace(RAG, f"  {text}\n")


def test_two_kinds_of_system(tmp_path: Path) -> None:
    assert only_problem(tmp_path, with_system("callable: app:answer")) == (
        3,
        "system",
        "system holds rag and callable; exactly one of them may stand here.",
    )


def test_a_kind_that_is_null_is_none(tmp_path: Path) -> None:
    assert valid(tmp_path, with_system("callable: null")).system.kind == "rag"
    assert only_problem(tmp_path, as_kind("rag: null")) == (
        3,
        "system",
        "system needs exactly one of rag, callable, http, recorded.",
    )


def test_a_callable(tmp_path: Path) -> None:
    system = valid(tmp_path, as_kind("callable: app:run\n  records: [retrieval/v1, trace]")).system
    assert (system.kind, system.callable) == ("callable", "app:run")
    assert system.records == ("retrieval/v1", "trace")
    assert valid(tmp_path, as_kind("callable: app:run")).system.records is None


HTTP = """http:
    url: http://127.0.0.1:8766/answer
    method: PUT
    headers: {Authorization: "Bearer ${TOKEN}", X-Model: large}
    output_path: result.0
    artifacts: {retrieval/v1: evidence.retrieval, trace: trace}
    body: {q: "{{ input.question }}", who: "user {{ case.user.id }}", k: 3, seed: "{{ seed }}"}
    timeout_s: 5
    retries: {wait_s: 0}
  version: "1\""""


def test_an_http_system(tmp_path: Path) -> None:
    system = valid(tmp_path, as_kind(HTTP)).system
    assert system.kind == "http"
    assert system.http == HttpSettings(
        url="http://127.0.0.1:8766/answer",
        method="PUT",
        headers={"Authorization": "Bearer ${TOKEN}", "X-Model": "large"},
        output_path="result.0",
        artifacts={"retrieval/v1": "evidence.retrieval", "trace": "trace"},
        body={
            "q": "{{ input.question }}",
            "who": "user {{ case.user.id }}",
            "k": 3,
            "seed": "{{ seed }}",
        },
        timeout_s=5.0,
        retries=Retries(wait_s=0.0),
    )
    small = valid(tmp_path, as_kind("version: x\n  http: {url: 'http://h/'}")).system.http
    assert small == HttpSettings(url="http://h/")
    assert small is not None
    assert (small.method, small.body, small.output_path) == ("POST", None, None)


def test_http_makes_four_attempts_where_the_file_names_none() -> None:
    assert Retries(wait_s=0.1).for_http() == Retries(attempts=4, wait_s=0.1)
    assert Retries(attempts=1).for_http() == Retries(attempts=1)


def test_a_recorded_system(tmp_path: Path) -> None:
    system = valid(tmp_path, as_kind("recorded: {path: r.csv, map: {answer: reply.text}}")).system
    assert system.recorded == RecordedSettings(path="r.csv", map=RecordedMap(answer="reply.text"))
    assert system.recorded is not None
    assert system.recorded.map.case_id == "case_id"


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        (
            "callable: 3",
            5,
            "system.callable",
            'callable must be a string, got 3; write callable: "3" in quotes.',
        ),
        (
            "callable: app:run\n  records: [retrieval/v2]",
            6,
            "system.records.0",
            'The entry must be retrieval/v1, the one version there is, got "retrieval/v2".',
        ),
        (
            "callable: app:run\n  records: retrieval/v1",
            6,
            "system.records",
            'records must be a list, got "retrieval/v1"; write records: ["retrieval/v1"].',
        ),
        (
            "rag: {object: app:Rag}\n  records: [trace]",
            6,
            "system.records",
            (
                "records belongs to a callable; a staged system records what its stages return. "
                "Remove it."
            ),
        ),
        (
            "version: x\n  http: {url: 'http://h/'}\n  records: [trace]",
            7,
            "system.records",
            (
                "records belongs to a callable; name the artifacts of a response in "
                "system.http.artifacts. Remove it."
            ),
        ),
        (
            "recorded: {path: r.csv}\n  code_paths: ['x/*']",
            6,
            "system.code_paths",
            "code_paths adds to the code of a system, and recorded has none here. Remove it.",
        ),
        (
            "http: {url: 'http://h/'}",
            3,
            "system.version",
            (
                "version is required for http: there is no code to look at. Say which version of "
                "the service answers, and change it with every deployment."
            ),
        ),
        (
            "version: x\n  http: {}",
            6,
            "system.http.url",
            "url is required: where the service answers, such as http://127.0.0.1:8000/answer.",
        ),
        (
            "version: x\n  retries: {retry_on: ['app:Busy']}\n  http: {url: 'http://h/'}",
            6,
            "system.retries.retry_on",
            (
                "retry_on names exceptions of your own code. What is retried over HTTP is 408, "
                "429, 500 and above, time-outs and failed connections. Remove it."
            ),
        ),
        (
            "recorded: {path: r.csv, map: {anser: x}}",
            5,
            "system.recorded.map.anser",
            'The key "anser" is not known. Did you mean "answer"?',
        ),
    ],
)
def test_wrong_kinds_of_system(
    tmp_path: Path, text: str, line: int, key: str, message: str
) -> None:
    assert only_problem(tmp_path, as_kind(text)) == (line, key, message)


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("url: ftp://h/", "url", "url must be a URL like http://127.0.0.1:8000/answer."),
        ("url: http://h:x/", "url", "url must be a URL like http://127.0.0.1:8000/answer."),
        (
            "url: 'https://h/?token=${API_TOKEN}'",
            "url",
            (
                "url is sent as it stands here, and nothing is filled in for ${; values of the "
                "environment belong in headers, as in headers: {Authorization: Bearer "
                "${API_TOKEN}}."
            ),
        ),
        (
            "url: 'https://me:canary@h/?api_key=canary'",
            "url",
            (
                "url holds a user or a password and the parameter api_key, and this file and the "
                "records would show it; keep the secret in an environment variable, and send it "
                "in a header, as in headers: {Authorization: Bearer ${API_TOKEN}}."
            ),
        ),
        ("method: PATCH", "method", 'method must be one of POST, GET, PUT, got "PATCH".'),
        (
            "headers: {X-Count: 3}",
            "headers.X-Count",
            'X-Count must be a string, got 3; write X-Count: "3" in quotes.',
        ),
        (
            "headers: {Authorization: Bearer canary}",
            "headers.Authorization",
            (
                "Authorization carries a credential: write ${NAME} for an environment variable "
                "that holds it, and keep the value out of this file."
            ),
        ),
        (
            "headers: {x-model: 'a ${1B}'}",
            "headers.x-model",
            "x-model holds a ${ that names no environment variable; write it like ${API_TOKEN}.",
        ),
        ("headers: {'a b': c}", "headers.a b", '"a b" is no name of a header.'),
        (
            "headers: {X-A: c, x-a: d}",
            "headers.x-a",
            "The header x-a stands here twice; keep one.",
        ),
        (
            'headers: {X-A: "c\\nX-B: d"}',
            "headers.X-A",
            (
                "The value of X-A holds what a header cannot carry: a line break, white space "
                "around it, or a character that is not ASCII."
            ),
        ),
        (
            "artifacts: {context/v3: a}",
            "artifacts.context/v3",
            'The kind must be context/v1, the one version there is, got "context/v3".',
        ),
        (
            "body: {a: ['{{ case.usr }}']}",
            "body.a.0",
            'The placeholder "case.usr" is not known. Did you mean "case.user"?',
        ),
        (
            "body: 'x {{ input'",
            "body",
            'A placeholder is not closed; write it like "{{ input }}".',
        ),
        ("timeout_s: 0", "timeout_s", "timeout_s must be greater than 0, got 0."),
    ],
)
def test_wrong_values_in_http(tmp_path: Path, line: str, key: str, message: str) -> None:
    url = "" if line.startswith("url") else "    url: http://h/\n"
    text = as_kind(f"version: x\n  http:\n{url}    {line}")
    where = 7 if line.startswith("url") else 8
    assert only_problem(tmp_path, text) == (where, f"system.http.{key}", message)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "X-Api-Key",
        "api-key",
        "Cookie",
        "X-Access-Token",
        "Client-Secret",
        "Ocp-Apim-Subscription-Key",
        "X-Password",
        "X-Custom-Auth",
    ],
)
def test_a_credential_is_never_written_out(tmp_path: Path, name: str) -> None:
    def text(value: str) -> str:
        return as_kind(f"version: x\n  http: {{url: 'http://h/', headers: {{{name}: '{value}'}}}}")

    config, problems = read(tmp_path, text("canary-7c1f"))
    assert config is None
    assert [problem.key for problem in problems] == [f"system.http.headers.{name}"]
    assert "canary" not in str(problems)
    assert valid(tmp_path, text("${SECRET}")).system.kind == "http"


@pytest.mark.parametrize("name", ["Accept", "X-Author", "X-Keyword", "X-Model"])
def test_other_headers_may_be_literal(tmp_path: Path, name: str) -> None:
    text = as_kind(f"version: x\n  http: {{url: 'http://h/', headers: {{{name}: v}}}}")
    assert valid(tmp_path, text).system.kind == "http"


@pytest.mark.parametrize("reference", ["app", "app:", ":x", "app.py:1x", "a b:c", "app:x:y"])
def test_references_have_the_form_module_name(tmp_path: Path, reference: str) -> None:
    text = MINIMAL.replace("app:SupportRag", f'"{reference}"')
    assert only_problem(tmp_path, text) == (
        6,
        "system.rag.object",
        f'object must have the form "module:name", got "{reference}".',
    )


def test_retry_on_holds_references(tmp_path: Path) -> None:
    text = with_system("retries: {retry_on: ['app:Busy', TimeoutError]}")
    assert only_problem(tmp_path, text) == (
        5,
        "system.retries.retry_on.1",
        'The entry must have the form "module:name", got "TimeoutError".',
    )


def test_a_missing_dataset_points_at_the_config(tmp_path: Path) -> None:
    text = MINIMAL.replace("cases.jsonl", "casse.jsonl")
    line, key, message = only_problem(tmp_path, text)
    assert (line, key) == (2, "dataset")
    assert message.startswith('There is no file "data/casse.jsonl" in the folder of the config')


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("data", 'There is no file "data" in'),
        ('""', 'There is no file "" in'),
        ("7", 'dataset must be a path, as a string, got 7; write dataset: "7" in quotes.'),
    ],
)
def test_a_dataset_that_is_no_file(tmp_path: Path, written: str, message: str) -> None:
    text = MINIMAL.replace("data/cases.jsonl", written)
    assert only_problem(tmp_path, text)[2].startswith(message)


@pytest.mark.parametrize(
    ("names", "index", "message"),
    [
        (
            "metadata.topic, metadata.topic",
            1,
            'The slice "metadata.topic" is declared twice; keep one.',
        ),
        (
            "relevant_positon",
            0,
            (
                'The slice "relevant_positon" is not known; write metadata.<key> or '
                "relevant_position or context_truncated or stale_source or admissible_source. "
                'Did you mean "relevant_position"?'
            ),
        ),
        (
            "topic",
            0,
            (
                'The slice "topic" is not known; write metadata.<key> or relevant_position or '
                "context_truncated or stale_source or admissible_source."
            ),
        ),
        (
            "metadata.",
            0,
            (
                'The slice "metadata." is not known; write metadata.<key> or relevant_position or '
                "context_truncated or stale_source or admissible_source. "
                'Did you mean "metadata.<key>"?'
            ),
        ),
        ("relevant_position, 7", 1, 'The entry must be a string, got 7; write "7" in quotes.'),
    ],
)
def test_slices(tmp_path: Path, names: str, index: int, message: str) -> None:
    text = f"{MINIMAL}slices: [{names}]\n"
    assert only_problem(tmp_path, text) == (10, f"slices.{index}", message)


@pytest.mark.parametrize(
    ("entries", "line", "key", "message"),
    [
        (" []", 7, "evaluators", "evaluators must hold at least one evaluator."),
        (" contains", 7, "evaluators", 'evaluators must be a list, got "contains"; write eva'),
        (
            "\n  - contains\n",
            8,
            "evaluators.0",
            'The entry must be a mapping with a type, got "contains".',
        ),
        ("\n  - k: 2\n", 8, "evaluators.0.type", "type is required: what the evaluator"),
        ("\n  - type: 7\n", 8, "evaluators.0.type", "type must be a string, got 7; write ty"),
        (
            "\n  - type: recall\n    criterion: ''\n",
            9,
            "evaluators.0.criterion",
            "criterion must not be empty.",
        ),
    ],
)
def test_evaluator_entries_have_a_shape(
    tmp_path: Path, entries: str, line: int, key: str, message: str
) -> None:
    text = MINIMAL[: MINIMAL.index("evaluators:")] + f"evaluators:{entries}"
    at, place, words = only_problem(tmp_path, text)
    assert (at, place) == (line, key)
    assert words.startswith(message)


def test_all_problems_of_a_file_come_together_in_the_order_of_the_lines(tmp_path: Path) -> None:
    config, problems = read(
        tmp_path,
        "projct: support\n"
        "dataset: nowhere.jsonl\n"
        "dataset: data/cases.jsonl\n"
        "system:\n"
        "  name: 7\n"
        "  rag: {object: app:SupportRag, depth: '6', dept: 3}\n"
        "evaluators:\n"
        "  - contains\n"
        "slices: [topic]\n"
        "budget: {calls: 3}\n",
    )
    assert config is None
    assert [(problem.line, problem.key) for problem in problems] == [
        (1, "projct"),
        (2, "dataset"),
        (3, "dataset"),
        (5, "system.name"),
        (6, "system.rag.dept"),
        (6, "system.rag.depth"),
        (8, "evaluators.0"),
        (9, "slices.0"),
        (10, "budget"),
    ]
    assert str(problems[5]) == (
        'rag_assets.yaml:6: system.rag.depth: depth must be an integer, got "6"; '
        "write depth: 6 without quotes."
    )


@pytest.mark.parametrize("text", ["", "- a\n", "a: [1\n"])
def test_a_file_that_is_no_mapping_is_one_problem(tmp_path: Path, text: str) -> None:
    config, problems = read(tmp_path, text)
    assert config is None
    assert len(problems) == 1


NAMES = [
    *Config.model_fields,
    *SystemConfig.model_fields,
    *RagSettings.model_fields,
    *HttpSettings.model_fields,
    "budget",
    "file",
    "callable",
    "type",
    "criterion",
]
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
    | st.sampled_from(["", "app:x", "data/cases.jsonl", "metadata.topic", "stop", "2", "yes"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@deterministic
@given(st.dictionaries(st.sampled_from(NAMES), values, max_size=6))
def test_any_mapping_is_a_config_or_has_problems_with_lines(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    config, problems = read(tmp_path, json.dumps(content))
    assert (config is None) == bool(problems)
    assert {problem.line for problem in problems} <= {1}
    places = [(problem.key, problem.message) for problem in problems]
    assert len(places) == len(set(places))
