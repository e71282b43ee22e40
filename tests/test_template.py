"""Templates of request bodies."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blackboxes import a_case
from rag_assets.contracts.template import (
    NAMES,
    TemplateError,
    placeholders,
    render,
    template_problems,
    unanswered,
)

CASE = a_case(
    input={"question": "Q?", "tags": ["a", {"b": 2}], "none": None},
    user={"id": "u1", "roles": []},
    as_of="2026-01-15",
)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ input }}", CASE.input),
        ("{{input.tags}}", ["a", {"b": 2}]),
        ("{{  input.tags.1.b  }}", 2),
        ("{{ input.none }}", None),
        ("{{ case.id }}", "c1"),
        ("{{ case.user }}", {"id": "u1", "roles": []}),
        ("{{ case.user.roles }}", []),
        ("{{ case.as_of }}", "2026-01-15"),
        ("{{ seed }}", 7),
        (" {{ seed }}", " 7"),
        ("{{ seed }}{{ seed }}", "77"),
        ("Ask: {{ input.question }} ({{ input.tags.1 }})", 'Ask: Q? ({"b":2})'),
        ("{ input } $x %s", "{ input } $x %s"),
        (3.5, 3.5),
        (None, None),
        ({"a": ["{{ seed }}", {"{{ seed }}": True}]}, {"a": [7, {"{{ seed }}": True}]}),
    ],
)
def test_placeholders_become_values(template: Any, value: Any) -> None:
    assert list(template_problems(template, "body")) == []
    assert render(template, CASE, 7) == value


@pytest.mark.parametrize(
    ("template", "place", "message"),
    [
        (
            "{{ inptu }}",
            "body",
            'The placeholder "inptu" is not known. Did you mean "input"?',
        ),
        (
            {"a": ["x", "{{ expected.answer }}"]},
            "body.a.1",
            (
                'The placeholder "expected.answer" is not known. The placeholders are input, '
                "case.id, case.user, case.as_of, seed."
            ),
        ),
        (
            "{{ case.id.x }}",
            "body",
            'The placeholder "case.id.x" is not known. Did you mean "case.id"?',
        ),
        (
            "{{ input. }}",
            "body",
            'The placeholder "input." is not known. Did you mean "input"?',
        ),
        (
            "a {{ input",
            "body",
            'A placeholder is not closed; write it like "{{ input }}".',
        ),
    ],
)
def test_problems_name_the_place(template: Any, place: str, message: str) -> None:
    assert list(template_problems(template, "body")) == [(place, message)]


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ input.answer }}", "input.answer"),
        ("{{ input.tags.2 }}", "input.tags.2"),
        ({"a": "x {{ case.user.name }}"}, "case.user.name"),
    ],
)
def test_a_path_that_leads_nowhere(template: Any, name: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(template, CASE, 0)
    assert str(caught.value) == f"the body needs {name}, and this case has nothing there"


@pytest.mark.parametrize(
    ("template", "place", "message"),
    [
        (
            {"q": ["{{ input.quesiton }}"]},
            "body.q.0",
            (
                "No case has input.quesiton. The keys of input are question, tags, none, other. "
                'Did you mean "question"?'
            ),
        ),
        ("{{ input.tags.9.b }}", "body", "No case has input.tags.9.b. input.tags has no keys in "),
        (
            "{{ input.tags.1.c.d }} {{ input.other }}",
            "body",
            "No case has input.tags.1.c.d. The keys of input.tags.1 are b.",
        ),
        ("{{ case.user.name }}", "body", "No case has case.user.name. The keys of case.user are "),
    ],
)
def test_a_path_that_no_case_has(template: Any, place: str, message: str) -> None:
    cases = [CASE, a_case(input={"other": 1}), a_case(input="text")]
    ((found, told),) = unanswered(template, "body", cases)
    assert found == place
    assert told.startswith(message)


def test_a_path_in_cases_without_a_key() -> None:
    (found,) = unanswered("{{ input.q }}", "body", [a_case(input="text")])
    assert found == ("body", "No case has input.q. input has no keys in any of them.")


def test_which_placeholders_are_used() -> None:
    assert placeholders(None) == frozenset()
    assert placeholders({"a": ["{{ input.q }} {{ seed }}", 3]}) == {"input", "seed"}


WORDS = ["{{", "}}", " ", ".", *NAMES, "question", "{{ seed }}"]
parts = st.text(max_size=6) | st.sampled_from(WORDS)
texts = st.lists(parts, max_size=6).map("".join)
templates = st.recursive(
    texts | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(templates)
def test_any_template_has_problems_or_renders_to_json(template: Any) -> None:
    problems = list(template_problems(template, "body"))
    if problems:
        assert all(place.startswith("body") for place, _ in problems)
        return
    assert placeholders(template) <= set(NAMES)
    nowhere = list(unanswered(template, "body", [CASE]))
    try:
        rendered = render(template, CASE, 7)
    except TemplateError:
        assert nowhere
        return
    assert nowhere == []
    json.dumps(rendered)
    if not placeholders(template):
        assert rendered == template
