"""HTTP systems against a real server on loopback."""

import json
import threading
from collections import Counter, deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blackboxes import Place, a_case, call_of, called, failure
from http_service import Asked, Reply, closed_port, serving_http
from rag_assets.contracts.errors import ArtifactError
from rag_assets.systems.blackbox import BlackBox, Execution
from rag_assets.systems.retry_after import retry_after_s

AT_ONCE = {"wait_s": 0, "max_wait_s": 0}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def system_at(place: Place, url: str, *, version: str = "1", **http: Any) -> BlackBox:
    http = {"retries": AT_ONCE, **http}
    return place.system(version=version, http={"url": url, **http})


def answering(reply: Reply) -> Any:
    return serving_http(lambda asked: reply)


def states(result: Any) -> list[tuple[str, int | None]]:
    return [(attempt.state, attempt.status) for attempt in result.attempts]


# What is sent


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
def test_the_input_is_sent_as_json_with_every_method(place: Place, method: str) -> None:
    with answering(Reply(body={"answer": "14 days"})) as service:
        result = call_of(system_at(place, service.url, method=method), a_case(input=["é", 1, None]))
    assert result.value == Execution({"answer": "14 days"}, {}, None, {})
    (asked,) = service.asked
    assert (asked.method, asked.path, asked.body) == (method, "/answer", ["é", 1, None])
    assert asked.headers["Content-Type"] == "application/json"


def test_the_body_is_a_template(place: Place) -> None:
    body = {
        "q": "{{ input.question }}",
        "all": "{{ input }}",
        "who": "{{ case.user }}",
        "line": "{{ case.id }} as {{ case.user.id }} at {{case.as_of}}, seed {{ seed }}",
        "seed": ["{{ seed }}", 3, None],
    }
    user = {"id": "u1", "roles": ["staff"]}
    case = a_case(input={"question": ["a"]}, user=user, as_of="2026-01-15")
    with answering(Reply(body={})) as service:
        call_of(system_at(place, service.url, body=body), case)
        call_of(system_at(place, service.url, body={"who": "{{ case.user }}"}))
    assert [asked.body for asked in service.asked] == [
        {
            "q": ["a"],
            "all": {"question": ["a"]},
            "who": user,
            "line": "c1 as u1 at 2026-01-15, seed 0",
            "seed": [0, 3, None],
        },
        {"who": None},
    ]


def test_a_path_that_a_case_lacks_is_an_error_of_that_case(place: Place) -> None:
    with answering(Reply(body={})) as service:
        system = system_at(place, service.url, body={"q": "{{ input.question }}"})
        found = called(system, [a_case("bad", "text"), a_case("good", {"question": "Q?"})])
    assert failure(found["bad"]) == (
        "execution_error",
        "HttpError",
        "the body needs input.question, and this case has nothing there",
    )
    assert len(found["bad"].attempts) == 1
    assert found["good"].failure is None
    assert [asked.body for asked in service.asked] == [{"q": "Q?"}]


def test_no_cookie_of_one_case_reaches_another(place: Place) -> None:
    with answering(Reply(body={}, headers={"Set-Cookie": "session=first; Path=/"})) as service:
        called(system_at(place, service.url), [a_case(f"c{n}") for n in range(3)], limit=1)
    assert len(service.asked) == 3
    assert all("Cookie" not in asked.headers for asked in service.asked)


def test_calls_share_connections_and_give_them_back(place: Place) -> None:
    with answering(Reply(body={})) as service:
        called(system_at(place, service.url), [a_case(f"c{n}") for n in range(12)], limit=2)
        # The handlers end when the client has closed its connections.
        for thread in threading.enumerate():
            if "process_request" in thread.name:
                thread.join(5)
        assert not any("process_request" in thread.name for thread in threading.enumerate())
    assert 1 <= service.connections <= 2


# What comes back

FULL = {
    "data": [{"text": "14 days"}],
    "evidence": {
        "retrieval": {"query": "Q?", "depth": 3, "candidates": [{"doc_id": "a", "score": 1}]},
        "context": {"items": [{"doc_id": "a"}]},
        "citations": ["a"],
        "trace": {"steps": [1, 2]},
    },
}
PATHS = {
    "retrieval/v1": "evidence.retrieval",
    "context/v1": "evidence.context",
    "citations/v1": "evidence.citations",
    "trace": "evidence.trace",
}
ARTIFACTS = {
    "retrieval/v1": {"query": "Q?", "depth": 3, "candidates": [{"doc_id": "a", "score": 1.0}]},
    "context/v1": {
        "items": [{"doc_id": "a"}],
        "dropped": [],
        "token_budget": None,
        "source": "retrieval",
    },
    "citations/v1": {"ids": ["a"]},
    "trace": {"steps": [1, 2]},
}


def test_output_and_artifacts_are_read_from_the_response(place: Place) -> None:
    with answering(Reply(body=FULL)) as service:
        system = system_at(place, service.url, output_path="data.0.text", artifacts=PATHS)
        result = call_of(system)
    assert result.value == Execution("14 days", ARTIFACTS, "valid", {})
    assert system.records == frozenset(ARTIFACTS)


def test_citations_may_be_an_object_with_ids(place: Place) -> None:
    with answering(Reply(body={"c": {"ids": ["a", "b#1"]}})) as service:
        result = call_of(system_at(place, service.url, artifacts={"citations/v1": "c"}))
    assert result.value.artifacts == {"citations/v1": {"ids": ["a", "b#1"]}}


def test_an_empty_retrieval_is_a_result(place: Place) -> None:
    body = {"r": {"query": None, "depth": 2, "candidates": []}}
    with answering(Reply(body=body)) as service:
        result = call_of(system_at(place, service.url, artifacts={"retrieval/v1": "r"}))
    assert (result.failure, result.value.state) == (None, "empty")


@pytest.mark.parametrize(
    ("retrieval", "query"),
    [
        ({"state": "denied"}, None),
        ({"state": "denied", "query": "q", "depth": 3, "candidates": []}, "q"),
    ],
)
def test_a_service_may_say_that_access_was_denied(
    place: Place, retrieval: dict[str, Any], query: str | None
) -> None:
    paths = {"retrieval/v1": "r", "context/v1": "c", "citations/v1": "cited"}
    with answering(Reply(body={"answer": None, "r": retrieval})) as service:
        result = call_of(system_at(place, service.url, output_path="answer", artifacts=paths))
    nothing = {
        "retrieval/v1": {"query": query, "depth": None, "candidates": [], "state": "denied"},
        "context/v1": {"items": [], "dropped": [], "token_budget": None, "source": "retrieval"},
        "citations/v1": {"ids": []},
    }
    assert (result.failure, result.value) == (None, Execution(None, nothing, "denied", {}))


@pytest.mark.parametrize(("state", "ids"), [("valid", ["a"]), ("empty", [])])
def test_any_other_state_goes_with_the_candidates(place: Place, state: str, ids: list[str]) -> None:
    found = [{"doc_id": one} for one in ids]
    body = {"r": {"query": None, "depth": 2, "candidates": found, "state": state}}
    with answering(Reply(body=body)) as service:
        result = call_of(system_at(place, service.url, artifacts={"retrieval/v1": "r"}))
    stored = {"query": None, "depth": 2, "candidates": found}
    assert (result.value.state, result.value.artifacts) == (state, {"retrieval/v1": stored})


@pytest.mark.parametrize(
    ("body", "http", "message"),
    [
        (
            {"r": {"state": "gone", "query": "q", "depth": 2, "candidates": []}},
            {"artifacts": {"retrieval/v1": "r"}},
            'retrieval/v1 state: must be valid, empty or denied, got "gone"',
        ),
        (
            {"r": {"state": "valid", "query": "q", "depth": 2, "candidates": []}},
            {"artifacts": {"retrieval/v1": "r"}},
            "retrieval/v1 state: is valid, and there is no candidate",
        ),
        (
            {"r": {"state": "denied", "candidates": [{"doc_id": "a"}]}},
            {"artifacts": {"retrieval/v1": "r"}},
            (
                "retrieval/v1 candidates: must be empty, because the system reported that access "
                "was denied"
            ),
        ),
        (
            {"error": "overloaded"},
            {"output_path": "result"},
            'output: is absent: the response has nothing at "result"',
        ),
        (
            {"data": []},
            {"output_path": "data.0.text"},
            'output: is absent: the response has nothing at "data.0.text"',
        ),
        (
            {"r": {"query": "q", "depth": 2, "candidates": [{"doc_id": 7}]}},
            {"artifacts": {"retrieval/v1": "r"}},
            "retrieval/v1 candidates.0.doc_id: must be a string, got 7 (int)",
        ),
        (
            {"r": {"query": "q", "candidates": []}},
            {"artifacts": {"retrieval/v1": "r"}},
            "retrieval/v1 depth: is required: how many candidates were asked for",
        ),
        (
            {},
            {"artifacts": {"context/v1": "c.d"}},
            'context/v1: is absent: the response has nothing at "c.d"',
        ),
        (
            {"c": None},
            {"artifacts": {"context/v1": "c"}},
            "context/v1: must be a Context or a mapping, got None (NoneType)",
        ),
        (
            {"c": ["a", ""]},
            {"artifacts": {"citations/v1": "c"}},
            "citations/v1 ids.1: must not be empty",
        ),
        (
            b'{"answer": "\\ud800"}',
            {"output_path": "answer"},
            "output: holds half of a surrogate pair, which UTF-8 cannot write",
        ),
    ],
)
def test_what_is_absent_or_malformed_is_a_malformed_artifact(
    place: Place, body: Any, http: dict[str, Any], message: str
) -> None:
    with answering(Reply(body=body)) as service:
        result = call_of(system_at(place, service.url, **http))
    assert failure(result) == ("malformed_artifact", "ArtifactError", message)
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(400, {"error": "no"}), 'status 400: {"error": "no"}'),
        (Reply(404, ""), "status 404"),
        (
            Reply(302, "moved", {"Location": "/x"}),
            "status 302 is a redirect, and none is followed: moved",
        ),
        (Reply(204), "status 204 has no body"),
        (Reply(200, "<html>hi</html>"), "status 200, and the body is not JSON: <html>hi</html>"),
        (Reply(200, ""), "status 200, and the body is not JSON"),
        (Reply(200, '{"a": NaN}'), 'status 200, and the body is not JSON: {"a": NaN}'),
        (Reply(200, b"\xff\x00"), "status 200, and the body is not JSON: \ufffd\\x00"),
        (Reply(200, "[" * 100_000), "status 200, and the body is not JSON: " + "[" * 500),
    ],
)
def test_an_unusable_answer_is_an_error_of_the_case(
    place: Place, reply: Reply, message: str
) -> None:
    with answering(reply) as service:
        result = call_of(system_at(place, service.url))
    assert failure(result) == ("execution_error", "HttpError", message)
    assert states(result) == [("error", reply.status)]
    assert len(service.asked) == 1


def test_an_error_shows_the_first_500_characters(place: Place) -> None:
    with answering(Reply(418, "é" * 501)) as service:
        _, _, message = failure(call_of(system_at(place, service.url)))
    assert message == "status 418: " + "é" * 500


# Retries


class Script:
    """Replies of each case, one after the other; the last one is repeated."""

    def __init__(self, replies: dict[str, list[Reply]]) -> None:
        self.replies = {case_id: deque(of_case) for case_id, of_case in replies.items()}
        self.asked: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Reply:
        case_id = asked.body["id"]
        self.asked[case_id] += 1
        left = self.replies[case_id]
        return left.popleft() if len(left) > 1 else left[0]


def scripted(
    place: Place, replies: dict[str, list[Reply]], **http: Any
) -> tuple[dict[str, Any], Script]:
    script = Script(replies)
    with serving_http(script) as service:
        system = system_at(place, service.url, body={"id": "{{ case.id }}"}, **http)
        return called(system, [a_case(case_id) for case_id in replies]), script


def test_rate_limits_are_waited_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service asks to wait is the least wait, and it is not in the latency."""
    monkeypatch.setattr("rag_assets.systems.attempts.random.uniform", lambda low, high: high)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    good = Reply(200, {})
    found, script = scripted(
        place,
        {
            "r1": [Reply(429, {}, {"Retry-After": "1"}), good],
            "r2": [Reply(429, {}, {"Retry-After": soon}), good],
            "r3": [Reply(429, {})],
            "fine": [good],
        },
    )
    assert {case_id: states(result) for case_id, result in found.items()} == {
        "r1": [("error", 429), ("ok", None)],
        "r2": [("error", 429), ("ok", None)],
        "r3": [("error", 429)] * 4,
        "fine": [("ok", None)],
    }
    assert failure(found["r3"]) == ("execution_error", "HttpError", "status 429: {}")
    assert script.asked == {"r1": 2, "r2": 2, "r3": 4, "fine": 1}
    for case_id in ("r1", "r2"):
        assert found[case_id].failure is None
        assert found[case_id].latency_ms == found[case_id].attempts[-1].duration_ms
        assert found[case_id].latency_ms < 900


def test_the_wait_is_as_long_as_the_service_asks(place: Place) -> None:
    times: list[datetime] = []

    def answer(asked: Asked) -> Reply:
        times.append(datetime.now())
        return Reply(503, "", {"Retry-After": "1"}) if len(times) == 1 else Reply(200, {})

    with serving_http(answer) as service:
        assert call_of(system_at(place, service.url)).failure is None
    assert (times[1] - times[0]).total_seconds() >= 1.0


@pytest.mark.parametrize(
    ("asked", "longest", "limit"), [("121", 0, 120), ("3600", 0, 120), ("3601", 3600, 3600)]
)
def test_a_service_that_asks_for_too_long_a_wait_is_not_asked_again(
    place: Place, asked: str, longest: float, limit: int
) -> None:
    retries = {"wait_s": 0, "max_wait_s": longest}
    replies = {"r": [Reply(429, "busy", {"Retry-After": asked})]}
    found, script = scripted(place, replies, retries=retries)
    assert script.asked == {"r": 1}
    assert failure(found["r"])[2] == (
        f"status 429: busy; the service asks to wait {asked} s, and at most {limit} s are waited "
        "(retries.max_wait_s)"
    )
    assert states(found["r"]) == [("error", 429)]
    # Without another attempt the wait does not matter.
    single, _ = scripted(place, replies, retries={**retries, "attempts": 1})
    assert failure(single["r"])[2] == "status 429: busy"


def test_one_attempt_means_one(place: Place) -> None:
    found, script = scripted(place, {"r": [Reply(429, {})]}, retries={"attempts": 1})
    assert (states(found["r"]), script.asked) == ([("error", 429)], {"r": 1})


def test_status_and_type_decide_and_no_word_in_the_body(place: Place) -> None:
    """One attempt for what stays wrong, whatever the text says; the others are tried again."""
    good = Reply(200, {"result": "r"})
    found, _ = scripted(
        place,
        {
            "e1": [Reply(400, {"error": "maximum 500 tokens, see timeout guide"}), good],
            "e2": [Reply(401, {"error": "bad key"}), good],
            "e3": [Reply(503, "<html>busy</html>"), good],
            "e4": [Reply(200, {"error": "overloaded"}), good],
            "e5": [Reply(429, "\0\1"), good],
            "e6": [Reply(408, ""), Reply(500, "permanent error"), Reply(599), good],
            "e7": [Reply(501, "not supported, do not retry")],
        },
        output_path="result",
    )
    assert {case_id: states(result) for case_id, result in found.items()} == {
        "e1": [("error", 400)],
        "e2": [("error", 401)],
        "e3": [("error", 503), ("ok", None)],
        "e4": [("error", None)],
        "e5": [("error", 429), ("ok", None)],
        "e6": [("error", 408), ("error", 500), ("error", 599), ("ok", None)],
        "e7": [("error", 501)] * 4,
    }
    assert failure(found["e1"]) == (
        "execution_error",
        "HttpError",
        'status 400: {"error": "maximum 500 tokens, see timeout guide"}',
    )
    assert failure(found["e2"])[2] == 'status 401: {"error": "bad key"}'
    assert failure(found["e4"]) == (
        "malformed_artifact",
        "ArtifactError",
        'output: is absent: the response has nothing at "result"',
    )
    assert [found["e3"].attempts[0].error, found["e5"].attempts[0].error] == [
        "HttpError: status 503: <html>busy</html>",
        "HttpError: status 429: \\x00\\x01",
    ]


def test_a_service_that_hangs_costs_attempts_times_the_time_out(place: Place) -> None:
    """Headers without a body, and a body that drips, are time-outs; the others finish."""
    end = threading.Event()

    def hangs() -> Iterator[bytes]:
        yield b"{"
        end.wait(20)

    def drips() -> Iterator[bytes]:
        while not end.wait(0.02):
            yield b" "

    began = datetime.now()
    try:
        found, script = scripted(
            place,
            {
                "h1": [Reply(pieces=hangs)],
                "h2": [Reply(pieces=drips)],
                "h3": [Reply(200, {})],
            },
            timeout_s=0.3,
            retries={**AT_ONCE, "attempts": 2},
        )
    finally:
        end.set()
    assert (datetime.now() - began).total_seconds() < 5
    for case_id in ("h1", "h2"):
        assert failure(found[case_id]) == ("timeout", "TimeoutError", "no result after 0.3 s")
        assert states(found[case_id]) == [("timeout", None)] * 2
        assert script.asked[case_id] == 2
    assert found["h3"].failure is None


def test_a_service_that_is_not_there_is_tried_again(place: Place) -> None:
    url = f"http://127.0.0.1:{closed_port()}/answer"
    result = call_of(system_at(place, url))
    assert failure(result) == (
        "execution_error",
        "HttpError",
        f"no answer from {url} (ConnectError: All connection attempts failed)",
    )
    assert states(result) == [("error", None)] * 4


def test_a_connection_that_breaks_is_tried_again(place: Place) -> None:
    def nothing() -> Iterator[bytes]:
        yield b"{"

    lies = {"Content-Length": "100"}
    found, _ = scripted(place, {"c": [Reply(headers=lies, pieces=nothing), Reply(200, {"a": 1})]})
    assert states(found["c"]) == [("error", None), ("ok", None)]
    assert found["c"].value.output == {"a": 1}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": " 0 "}, 0.0),
        ({"Retry-After": "-1"}, 0.0),
        ({"Retry-After": "soon"}, 0.0),
        ({"Retry-After": "1.5"}, 0.0),
        ({"Retry-After": "9" * 500}, 0.0),
        (
            {
                "Retry-After": "Thu, 15 Jan 2026 09:30:10 GMT",
                "Date": "Thu, 15 Jan 2026 09:30:03 GMT",
            },
            7.0,
        ),
        (
            {
                "Retry-After": "Thu, 15 Jan 2026 09:30:10 GMT",
                "Date": "Thu, 15 Jan 2026 10:00:00 GMT",
            },
            0.0,
        ),
        ({"Retry-After": "Thu, 15 Jan 2026 09:30:10 GMT"}, 0.0),
        ({"Retry-After": f"Thu, 15 Jan {'9' * 30} 09:30:10 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_s(headers) == seconds


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.text(max_size=40), st.text(max_size=40) | st.none())
def test_any_retry_after_is_a_wait(written: str, date: str | None) -> None:
    headers = {"Retry-After": written} | ({} if date is None else {"Date": date})
    assert 0 <= retry_after_s(headers) < 10**10


# Secrets


def echo(asked: Asked) -> Reply:
    return Reply(int(asked.body), {"you sent": dict(asked.headers)})


def test_secrets_are_sent_and_shown_nowhere(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "canary-7c1f-env")
    headers = {"Authorization": "Bearer ${TOKEN}", "X-Other": "${TOKEN}", "X-Model": "large"}
    with serving_http(echo) as service:
        system = system_at(place, service.url, headers=headers, retries={**AT_ONCE, "attempts": 1})
        good, bad = call_of(system, a_case(input=200)), call_of(system, a_case(input=400))
    assert service.asked[0].headers["Authorization"] == "Bearer canary-7c1f-env"
    assert good.value.output["you sent"]["Authorization"] == "Bearer ***"
    assert '"Authorization": "Bearer ***"' in failure(bad)[2]
    shown = json.dumps(system.settings) + repr(system) + repr(good) + repr(bad)
    assert "canary" not in shown
    assert system.settings["http"]["headers"] == headers


def test_a_secret_is_masked_before_the_text_is_cut(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "canary-7c1f")
    with answering(Reply(400, "x" * 495 + "canary-7c1f")) as service:
        system = system_at(place, service.url, headers={"X-A": "${TOKEN}"})
        assert failure(call_of(system))[2] == "status 400: " + "x" * 495 + "***"


def test_the_identity_knows_no_secret(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    identities = set()
    for token in ("one-token", "two-token"):
        monkeypatch.setenv("TOKEN", token)
        identities.add(system_at(place, "http://h/", headers={"X-A": "${TOKEN}"}).identity)
    assert len(identities) == 1


@pytest.mark.parametrize("value", [None, ""])
def test_an_unset_variable_is_a_problem(
    place: Place, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("TOKEN", value)
    http = {"url": "http://h/", "headers": {"X-A": "Bearer ${TOKEN}"}}
    assert place.problem(version="1", http=http) == (
        6,
        "system.http.headers.X-A",
        "needs the environment variable TOKEN, which is not set or empty.",
    )


def test_a_variable_that_a_header_cannot_carry_is_a_problem(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "canary\nX-Evil: 1")
    http = {"url": "http://h/", "headers": {"X-A": "${TOKEN}"}}
    line, key, message = place.problem(version="1", http=http)
    assert (line, key) == (6, "system.http.headers.X-A")
    assert message == (
        "holds what a header cannot carry: a line break, white space around it, or a character "
        "that is not ASCII (in the environment variables it names)."
    )


# Identities


def test_what_is_asked_and_read_is_part_of_the_identity(place: Place) -> None:
    base = system_at(place, "http://h/")
    others = [
        system_at(place, "http://h/x"),
        system_at(place, "http://h/", version="2"),
        system_at(place, "http://h/", method="PUT"),
        system_at(place, "http://h/", headers={"X-Model": "large"}),
        system_at(place, "http://h/", body={"q": "{{ input }}"}),
        system_at(place, "http://h/", output_path="a"),
        system_at(place, "http://h/", artifacts={"retrieval/v1": "r"}),
    ]
    assert len({base.identity, *(other.identity for other in others)}) == 8
    unchanged = system_at(place, "http://h/", timeout_s=3, retries={"attempts": 2})
    assert unchanged.identity == base.identity
    assert (unchanged.timeout_s, unchanged.retries.attempts) == (3.0, 2)
    assert (base.timeout_s, base.retries.attempts, base.code) == (120.0, 4, {})


def test_cases_share_an_execution_only_when_the_same_is_sent(place: Place) -> None:
    def keys(body: Any, *cases: Any) -> int:
        system = system_at(place, "http://h/", body=body)
        return len({system.execution_of(case) for case in cases})

    one, two = a_case("c1"), a_case("c2")
    assert keys(None, one, two) == 1
    assert keys({"q": "{{ input }}"}, one, two) == 1
    assert keys({"id": "{{ case.id }}"}, one, two) == 2
    assert keys(None, one, a_case(input="other"), a_case(user="u"), a_case(as_of="2026-01-15")) == 4
    assert system_at(place, "http://h/").execution_of(one, 1) != system_at(
        place, "http://h/"
    ).execution_of(one, 0)


# Many at once


def test_64_cases_in_flight_do_not_mix(place: Place) -> None:
    barrier = threading.Barrier(64)

    def answer(asked: Asked) -> Reply:
        barrier.wait(20)
        name = asked.body["question"]
        retrieval = {"query": name, "depth": 1, "candidates": [{"doc_id": name}]}
        return Reply(200, {"result": name, "r": retrieval})

    with serving_http(answer) as service:
        system = system_at(
            place, service.url, output_path="result", artifacts={"retrieval/v1": "r"}
        )
        cases = [a_case(f"c{n}", {"question": f"q{n}"}) for n in range(64)]
        found = called(system, cases, limit=64)
    for number in range(64):
        name = f"q{number}"
        execution = found[f"c{number}"].value
        assert execution.output == name
        assert execution.artifacts["retrieval/v1"]["candidates"] == [{"doc_id": name}]


def test_words_of_an_error_in_an_answer_are_no_error(place: Place) -> None:
    """An answer that speaks of errors is an answer."""
    with answering(Reply(200, {"answer": "HTTP 503 after 5 attempts"})) as service:
        result = call_of(system_at(place, service.url, output_path="answer"))
    assert (result.failure, result.value.output) == (None, "HTTP 503 after 5 attempts")


def test_what_is_not_complete_says_so() -> None:
    execution = Execution.of("a", {}, declared=frozenset({"trace"}))
    with pytest.raises(ArtifactError) as caught:
        execution.complete()
    assert str(caught.value) == "trace: was not recorded, although the system declares it"
