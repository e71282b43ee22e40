"""Callables as systems: what is declared, recorded and returned."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from blackboxes import Place, a_case, call_of, called, failure
from rag_assets.contracts.errors import ArtifactError
from rag_assets.systems.blackbox import Execution
from rag_assets.systems.calls import Call, CallSettings, CallWindow, EventLoop
from rag_assets.systems.current import CurrentCase, current_case

HEAD = """
import asyncio, threading
from rag_assets import (
    Citations, Context, ContextItem, DroppedItem, Passage, Retrieval, current_case, system
)

"""
RETRIEVAL = {"query": "q", "depth": 2, "candidates": [{"doc_id": "a"}]}
CONTEXT = {
    "items": [{"doc_id": "a", "position": 1, "tokens": 3}],
    "dropped": [{"doc_id": "b", "reason": "top_k"}],
    "token_budget": 1,
    "source": "retrieval",
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def app(place: Place, source: str) -> None:
    place.write("app.py", HEAD + source)


def outcome(place: Place, body: str, *, records: list[str] | None = None, **system: Any) -> Any:
    """The execution, or reason, type and message of the failure, of a function of these lines."""
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    app(place, f"def run(question):\n    case = current_case()\n{indented}")
    made = place.system(callable="app:run", records=records or [], **system)
    result = call_of(made)
    return failure(result) if result.failure else result.value


# What is recorded


@pytest.mark.parametrize(
    "body",
    [
        (
            "case.retrieval(query='q', depth=2, candidates=[Passage(doc_id='a')])\n"
            "case.context(items=[ContextItem(doc_id='a', position=1, tokens=3)],\n"
            "    dropped=[{'doc_id': 'b', 'reason': 'top_k'}], token_budget=1)\n"
            "case.citations(['a', 'a#1'])"
        ),
        (
            "case.retrieval(Retrieval(query='q', depth=2, candidates=[Passage(doc_id='a')]))\n"
            "case.context(Context(items=[ContextItem(doc_id='a', position=1, tokens=3)],\n"
            "    dropped=[DroppedItem(doc_id='b', reason='top_k')], token_budget=1))\n"
            "case.citations(Citations(ids=['a', 'a#1']))"
        ),
        (
            "case.retrieval({'query': 'q', 'depth': 2, 'candidates': [{'doc_id': 'a'}]})\n"
            "case.context({'items': [{'doc_id': 'a', 'position': 1, 'tokens': 3}],\n"
            "    'dropped': [{'doc_id': 'b', 'reason': 'top_k'}], 'token_budget': 1})\n"
            "case.citations({'ids': ('a', 'a#1')})"
        ),
        (
            "found = {'query': 'q', 'depth': 2, 'candidates': [{'doc_id': 'a'}]}\n"
            "case.artifact('retrieval/v1', found)\n"
            "case.artifact('context/v1', Context(\n"
            "    items=[ContextItem(doc_id='a', position=1, tokens=3)],\n"
            "    dropped=[DroppedItem(doc_id='b', reason='top_k')], token_budget=1))\n"
            "case.artifact('citations/v1', ['a', 'a#1'])"
        ),
    ],
    ids=["keywords", "models", "mappings", "kinds"],
)
def test_artifacts_are_recorded_in_any_form(place: Place, body: str) -> None:
    kinds = ["retrieval/v1", "context/v1", "citations/v1"]
    assert outcome(place, f"{body}\nreturn 'A'", records=kinds) == Execution(
        "A",
        {
            "retrieval/v1": RETRIEVAL,
            "context/v1": CONTEXT,
            "citations/v1": {"ids": ["a", "a#1"]},
        },
        "valid",
        {},
    )


def test_free_kinds_are_stored_as_given_and_cannot_change_later(place: Place) -> None:
    body = "steps = [1]\ncase.artifact('trace', {'steps': steps, 'z': None})\nsteps.append(2)"
    found = outcome(place, f"{body}\nreturn 'A'")
    assert found.artifacts == {"trace": {"steps": [1], "z": None}}
    assert found.state is None


def test_what_is_not_cross_checked(place: Place) -> None:
    """A context that was never retrieved, over its own budget, is a finding and no error."""
    body = (
        "case.retrieval(query=None, depth=1, candidates=[])\n"
        "case.context(items=[{'doc_id': 'x', 'tokens': 9}], token_budget=0, source='cache')\n"
        "case.citations([])\n"
        "return 'A'"
    )
    found = outcome(place, body)
    assert found.state == "empty"
    assert found.artifacts["context/v1"]["source"] == "cache"
    assert found.artifacts["citations/v1"] == {"ids": []}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "case.retrieval(query=1, depth=1, candidates=[{'doc_id': 'a', 'score': -1e999}])",
            "retrieval/v1 candidates.0.score: must be a finite number, got -inf (float)",
        ),
        (
            "case.retrieval(query='q', candidates=[])",
            "retrieval/v1 depth: is required: how many candidates were asked for",
        ),
        (
            "case.retrieval(query='q', depth=1, candidates=[{'doc_id': 'a'}, {'doc_id': 'b'}])",
            "retrieval/v1 candidates: holds 2 candidates, more than the depth 1",
        ),
        ("case.retrieval(depth=1, candidates=[])", "retrieval/v1 query: is required"),
        (
            "case.retrieval(query='q', depth=True, candidates=[])",
            "retrieval/v1 depth: must be a whole number, got True (bool)",
        ),
        (
            "case.retrieval({'query': 'q', 'depth': 1, 'candidates': []}, depth=2)",
            "retrieval/v1: is recorded from one value, or from keywords, but not from both",
        ),
        (
            "case.retrieval()",
            "retrieval/v1: must be a Retrieval or a mapping, got None (NoneType)",
        ),
        (
            "case.context(items=[{'doc_id': 'a', 'rank': 1}])",
            (
                "context/v1 items.0.rank: is not a field of this artifact; extra values belong "
                "into metadata"
            ),
        ),
        (
            "case.context(items=[], dropped=[{'doc_id': 'a', 'reason': 'reranker'}])",
            "context/v1 dropped.0.reason: must be 'top_k' or 'token_budget', got 'reranker' (str)",
        ),
        (
            "case.context(items=[{'doc_id': 'a', 'position': 0}])",
            "context/v1 items.0.position: must be at least 1, got 0 (int)",
        ),
        (
            "case.citations('a')",
            "citations/v1: must be a list of ids, or a mapping with ids, got 'a' (str)",
        ),
        ("case.citations(['a', 3])", "citations/v1 ids.1: must be a string, got 3 (int)"),
        (
            "case.artifact('retrieval/v2', {})",
            'retrieval/v2: must be retrieval/v1, the one version there is, got "retrieval/v2"',
        ),
        (
            "case.artifact('context', {})",
            'context: must be context/v1, the one version there is, got "context"',
        ),
        (
            "case.artifact('', 1)",
            'must be the name of an artifact kind, without white space around it, got ""',
        ),
        (
            "case.artifact('trace', {'a': {1}})",
            "trace a: is a set, which JSON cannot hold",
        ),
    ],
)
@pytest.mark.parametrize("is_caught", [False, True])
def test_a_malformed_artifact_names_kind_and_field(
    place: Place, line: str, message: str, is_caught: bool
) -> None:
    """It counts, whatever the user's code makes of the exception."""
    body = f"try:\n    {line}\nexcept ValueError:\n    pass\nreturn 1" if is_caught else line
    assert outcome(place, body) == ("malformed_artifact", "ArtifactError", message)


# What is owed


def test_a_declared_kind_that_was_not_recorded_is_named(place: Place) -> None:
    body = "case.citations(['a'])\nreturn 'A'"
    found = outcome(place, body, records=["trace", "citations/v1", "context/v1"])
    why = "was not recorded, although the system declares it"
    assert found == Execution(
        "A", {"citations/v1": {"ids": ["a"]}}, None, {"context/v1": why, "trace": why}
    )
    with pytest.raises(ArtifactError) as caught:
        found.complete()
    assert (caught.value.field, caught.value.message) == ("context/v1", why)


@pytest.mark.parametrize("records", [[], ["citations/v1"]])
def test_what_is_recorded_twice_counts_not_at_all(place: Place, records: list[str]) -> None:
    body = "case.citations(['a'])\ncase.citations(['a'])\nreturn 'A'"
    found = outcome(place, body, records=records)
    assert found.artifacts == {}
    assert found.unusable == {
        "citations/v1": "was recorded twice, and neither counts; record each kind once a case"
    }
    with pytest.raises(ArtifactError, match=r"^citations/v1: was recorded twice"):
        found.complete()


def test_what_is_complete_is_returned(place: Place) -> None:
    found = outcome(place, "case.citations([])\nreturn 'A'", records=["citations/v1"])
    assert found.complete() is found


def test_an_attempt_starts_with_nothing_recorded(place: Place) -> None:
    app(
        place,
        "tries = []\n"
        "def run(question):\n"
        "    tries.append(1)\n"
        "    current_case().citations([str(len(tries))])\n"
        "    current_case().usage(input_tokens=5)\n"
        "    if len(tries) == 1:\n"
        "        current_case().denied()\n"
        "        raise OSError('busy')\n"
        "    return 'A'\n",
    )
    system = place.system(callable="app:run")
    loop = EventLoop()
    window = CallWindow(
        CallSettings(
            limit=1, timeout_s=10, root=place.root, attempts=2, wait_s=0, retry_on=(OSError,)
        ),
        loop,
        threading.Event(),
    )
    case = CurrentCase({}, records=True)
    call = Call("c", lambda: system.invoke(a_case()), system.accept, case)
    (result,) = [one for one in window.run([call], asynchronous=False) if one is not None]
    loop.close()
    assert result.value == Execution("A", {"citations/v1": {"ids": ["2"]}}, None, {})
    assert result.usage == {"input_tokens": 10}


# Denied


def test_denied_is_a_result_without_candidates(place: Place) -> None:
    kinds = ["retrieval/v1", "context/v1"]
    found = outcome(place, "case.denied()\nreturn {'answer': None}", records=kinds)
    nothing = {
        "retrieval/v1": {"query": None, "depth": None, "candidates": [], "state": "denied"},
        "context/v1": {"items": [], "dropped": [], "token_budget": None, "source": "retrieval"},
    }
    assert found == Execution({"answer": None}, nothing, "denied", {})
    assert found.complete() is found


def test_who_is_denied_may_say_what_was_asked(place: Place) -> None:
    body = "case.denied()\ncase.retrieval(query='q', depth=3, candidates=[])\nreturn 1"
    found = outcome(place, body, records=["retrieval/v1"])
    assert found.state == "denied"
    recorded = found.artifacts["retrieval/v1"]
    assert (recorded["query"], recorded["depth"]) == ("q", None)


def test_who_is_denied_has_no_candidates(place: Place) -> None:
    body = "case.denied()\ncase.retrieval(query='q', depth=3, candidates=[{'doc_id': 'a'}])"
    assert outcome(place, f"{body}\nreturn 1") == (
        "malformed_artifact",
        "ArtifactError",
        (
            "retrieval/v1 candidates: must be empty, because the system reported that access was "
            "denied"
        ),
    )


# The function


@pytest.mark.parametrize("word", ["def", "async def"])
def test_sync_and_async_functions_get_a_copy_of_the_input(place: Place, word: str) -> None:
    app(
        place,
        f"{word} run(question, seed=None):\n"
        "    question['seen'] = True\n"
        "    return [question, seed, current_case().config, current_case().user]\n",
    )
    system = place.system(callable="app:run", config={"model": "m"})
    assert (system.is_async, system.takes_seed) == (word != "def", True)
    case = a_case(input={"q": 1}, user="u1")
    assert call_of(system, case).value.output == [{"q": 1, "seen": True}, 0, {"model": "m"}, "u1"]
    assert case.input == {"q": 1}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{1}", "bot must return JSON, but the value is a set, which JSON cannot hold"),
        (
            "{'a': [float('nan')]}",
            "bot must return JSON, but a.0: the value is nan, and JSON has no such number",
        ),
    ],
)
def test_an_output_that_is_not_json_is_an_error_of_its_case(
    place: Place, value: str, message: str
) -> None:
    assert outcome(place, f"return {value}") == ("execution_error", "TypeError", message)


def test_null_is_an_output(place: Place) -> None:
    assert outcome(place, "return None") == Execution(None, {}, None, {})


def test_an_exception_is_an_error_of_its_case(place: Place) -> None:
    assert outcome(place, "raise LookupError('no index')") == (
        "execution_error",
        "LookupError",
        "no index",
    )


def test_a_thread_of_the_users_own_is_told(place: Place) -> None:
    body = (
        "said = []\n"
        "def work():\n"
        "    try:\n"
        "        current_case()\n"
        "    except Exception as error:\n"
        "        said.append(str(error))\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
        "return said"
    )
    assert outcome(place, body).output == [
        (
            "current_case() works in the thread or task in which rag-assets calls your code. In a "
            "thread of your own, take what you need before you start it."
        )
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_64_cases_in_flight_do_not_mix(place: Place, is_async: bool) -> None:
    """All of them are inside at once, and record in turn."""
    if is_async:
        app(
            place,
            "inside = []\n"
            "async def run(name):\n"
            "    inside.append(name)\n"
            "    while len(inside) < 64:\n"
            "        await asyncio.sleep(0.001)\n"
            "    current_case().retrieval(query=name, depth=1, candidates=[{'doc_id': name}])\n"
            "    await asyncio.sleep(0)\n"
            "    current_case().citations([name])\n"
            "    return current_case().user\n",
        )
    else:
        app(
            place,
            "barrier = threading.Barrier(64)\n"
            "def run(name):\n"
            "    barrier.wait(20)\n"
            "    current_case().retrieval(query=name, depth=1, candidates=[{'doc_id': name}])\n"
            "    barrier.wait(20)\n"
            "    current_case().citations([name])\n"
            "    return current_case().user\n",
        )
    system = place.system(callable="app:run", records=["retrieval/v1", "citations/v1"])
    cases = [a_case(f"c{n}", f"q{n}", user=f"u{n}") for n in range(64)]
    found = called(system, cases, limit=64)
    for number in range(64):
        execution = found[f"c{number}"].value.complete()
        name = f"q{number}"
        assert execution.output == f"u{number}"
        assert execution.artifacts["retrieval/v1"]["candidates"] == [{"doc_id": name}]
        assert execution.artifacts["citations/v1"] == {"ids": [name]}


# Inside a stage


def in_a_stage(invoke: Any, *, has_contract: bool) -> tuple[str, str, str] | Any:
    loop = EventLoop()
    window = CallWindow(
        CallSettings(limit=1, timeout_s=10, root=Path("/nowhere")), loop, threading.Event()
    )
    call = Call("c", invoke, lambda value: value, CurrentCase({}), has_contract=has_contract)
    (result,) = [one for one in window.run([call], asynchronous=False) if one is not None]
    loop.close()
    return failure(result) if result.failure else result.value


@pytest.mark.parametrize("has_contract", [True, False], ids=["retrieve", "generate"])
@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("retrieval/v1", lambda: current_case().retrieval(RETRIEVAL)),
        ("context/v1", lambda: current_case().context(items=[])),
        ("citations/v1", lambda: current_case().citations([])),
        ("trace", lambda: current_case().artifact("trace", 1)),
    ],
)
def test_recording_in_a_stage_breaks_its_contract(
    kind: str, record: Any, has_contract: bool
) -> None:
    def caught() -> None:
        with contextlib.suppress(ArtifactError):
            record()

    message = f"{kind}: cannot be recorded in a stage; what a stage returns is what is recorded"
    for invoke in (record, caught):
        assert in_a_stage(invoke, has_contract=has_contract) == (
            "malformed_artifact",
            "RecorderError",
            message,
        )


def test_usage_may_be_reported_in_a_stage() -> None:
    def stage() -> str:
        current_case().usage(input_tokens=3)
        return "fine"

    assert in_a_stage(stage, has_contract=True) == "fine"


# What is declared


DECLARED = (
    '@system(name="other", version="7", config={"model": "small"}, timeout_s=3, '
    'records=["retrieval/v1", "trace"])\n'
    "def run(question):\n"
    "    return 1\n"
)


def test_the_decorator_declares_what_the_config_leaves_open(place: Place) -> None:
    app(place, DECLARED)
    system = place.system(callable="app:run")
    assert (system.name, system.version, system.config) == ("bot", "7", {"model": "small"})
    assert (system.timeout_s, system.retries.attempts) == (3.0, 1)
    assert system.records == {"retrieval/v1", "trace"}
    assert system.settings == {
        "kind": "callable",
        "name": "bot",
        "version": "7",
        "config": {"model": "small"},
        "records": ["retrieval/v1", "trace"],
        "code": {"run": system.code["run"].digest},
    }


def test_the_config_overrides_the_decorator(place: Place) -> None:
    app(place, DECLARED)
    system = place.system(
        callable="app:run", version="8", config={}, timeout_s=120, records=["context/v1"]
    )
    assert (system.version, system.config, system.timeout_s) == ("8", {}, 120.0)
    assert system.records == {"context/v1"}


def test_null_leaves_the_value_of_the_decorator(place: Place) -> None:
    app(place, DECLARED)
    system = place.system(callable="app:run", version=None, config=None, records=None)
    assert (system.version, system.config) == ("7", {"model": "small"})
    assert system.records == {"retrieval/v1", "trace"}


def test_an_undecorated_function_will_do(place: Place) -> None:
    app(place, "def run(question):\n    return 1\n")
    system = place.system(callable="app:run")
    assert (system.version, system.config, system.timeout_s) == (None, {}, 120.0)
    assert system.records == frozenset()


def test_the_decorator_leaves_the_function_as_it_is(place: Place) -> None:
    app(place, "def plain(q):\n    return q\n\nrun = system(version='1')(plain)\n")
    system = place.system(callable="app:run")
    assert call_of(system, a_case(input=5)).value.output == 5


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "@system(version=3)\ndef run(q):\n    return 1\n",
            "version in the decorator must be a non-empty string, got 3.",
        ),
        (
            "@system(timeout_s=0)\ndef run(q):\n    return 1\n",
            "timeout_s in the decorator must be above 0, got 0.",
        ),
        (
            "@system(records='citations/v2')\ndef run(q):\n    return 1\n",
            (
                "An entry of records in the decorator must be citations/v1, the one version there "
                'is, got "citations/v2".'
            ),
        ),
        (
            "@system(config={'a': {1}})\ndef run(q):\n    return 1\n",
            "config.a in the decorator must be JSON, but is a set, which JSON cannot hold.",
        ),
        ("run = 3\n", "must be a function that takes the input; app:run is not one."),
        (
            "class run:\n    pass\n",
            (
                "must be a function that takes the input; app:run is a class; name a function, or "
                "an instance."
            ),
        ),
        (
            "def run(a, b):\n    return 1\n",
            "app:run(a, b) cannot be called with the input of a case alone.",
        ),
        (
            "def ran(a):\n    return 1\n",
            "app:run cannot be imported: app has no attribute run.",
        ),
    ],
)
def test_what_cannot_be_called_is_refused(place: Place, source: str, message: str) -> None:
    app(place, source)
    assert place.problem(callable="app:run") == (5, "system.callable", message)


@pytest.mark.parametrize(
    "source",
    [
        "class Bot:\n    def answer(self, q):\n        return 1\n\nrun = Bot().answer\n",
        "class Bot:\n    def __call__(self, q):\n        return 1\n\nrun = Bot()\n",
        "import functools\n\ndef f(a, q):\n    return 1\n\nrun = functools.partial(f, 1)\n",
    ],
    ids=["bound method", "callable object", "partial"],
)
def test_what_is_no_plain_function_needs_a_version(place: Place, source: str) -> None:
    app(place, source)
    assert place.problem(callable="app:run") == (
        5,
        "system.version",
        (
            "is required, because app:run is no plain function whose code could be looked at: "
            "declare a version, and change it with the code."
        ),
    )
    system = place.system(callable="app:run", version="1")
    assert call_of(system).value.output == 1


def test_code_paths_count_as_code(place: Place) -> None:
    app(place, "def run(q):\n    return 1\n")
    place.write("prompt.txt", "one")
    first = place.system(callable="app:run", code_paths=["prompt.txt"])
    place.write("prompt.txt", "two")
    second = place.system(callable="app:run", code_paths=["prompt.txt"])
    assert first.identity != second.identity
    assert place.problem(callable="app:run", code_paths=["x/*"])[1] == "system.code_paths.0"


# Identities


def test_code_and_settings_are_the_identity_and_nothing_else(place: Place) -> None:
    base = "def helper():\n    return {}\n\n{}def run(question):\n    return helper()\n"

    def identity(value: int = 1, decorator: str = "", **system: Any) -> str:
        app(place, base.replace("{}", str(value), 1).replace("{}", decorator))
        return place.system(callable="app:run", **system).identity

    first = identity(decorator="@system()\n")
    assert identity(decorator="# a remark\n@system()\n") == first
    assert identity(decorator="@system(timeout_s=9)\n") == first
    same = {"timeout_s": 3, "retries": {"attempts": 3}, "on_malformed": "missing"}
    assert identity(decorator="@system()\n", **same) == first
    others = [
        identity(2, decorator="@system()\n"),
        identity(decorator="@system()\n", version="2"),
        identity(decorator="@system()\n", config={"a": 1}),
        identity(decorator="@system()\n", records=["trace"]),
        identity(decorator="@system(version='3')\n"),
    ]
    assert len({first, *others}) == 6


def test_an_execution_is_known_by_its_input_and_who_asks(place: Place) -> None:
    app(place, "def run(question):\n    return 1\n\ndef seeded(question, seed):\n    return 1\n")
    system = place.system(callable="app:run")
    base = system.execution_of(a_case())
    same = [a_case("other"), a_case(expected={"answer": "x"}, metadata={"topic": "t"})]
    assert {system.execution_of(case) for case in same} == {base}
    others = [a_case(input="R?"), a_case(user="u"), a_case(as_of="2026-01-15")]
    keys = {system.execution_of(case) for case in others} | {system.execution_of(a_case(), 1)}
    assert len(keys | {base}) == 5
    assert place.system(callable="app:seeded").takes_seed
