"""Finding restricted texts: against the definition, and where it matters how they are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.folding import folded
from rag_assets.evaluators.leaks import Guarded, Leak, LeakIndex

deterministic = settings(derandomize=True, deadline=None, max_examples=300)

SALARY = "The salary of the director is one hundred thousand crowns a year, paid monthly."
SHARED = "Everybody knows that refunds take fourteen days and that is all there is to it."
SECRET = SHARED.replace("that is all there is to it", "a further part that nobody may know")


def only(*admissible: str) -> Callable[[str], bool]:
    return lambda doc_id: doc_id in admissible


@pytest.fixture(scope="module")
def index() -> LeakIndex:
    return LeakIndex(
        [
            Guarded("pay", "hr", "Payroll plan", SALARY),
            Guarded("known", "all", "Refunds", SHARED),
            Guarded("more", "hr", "Refunds", SECRET),
            Guarded("code", "hr", None, "Code 4711"),
        ]
    )


def found(index: LeakIndex, text: str) -> list[tuple[str, str | None, str]]:
    """What of which document, and the part of the text."""
    leaks = index.find(text, only("known"))
    return [(one.what, one.doc_id, text[one.offset : one.offset + one.length]) for one in leaks]


def test_a_verbatim_run(index: LeakIndex) -> None:
    text = f"I was told:{SALARY[4:50]}!"
    assert found(index, text) == [("text", "pay", SALARY[4:50])]
    assert found(index, SALARY[4:43]) == []  # 39 characters
    assert found(index, SALARY[4:44]) == [("text", "pay", SALARY[4:44])]


def test_case_compatible_characters_and_white_space_make_no_difference(index: LeakIndex) -> None:
    text = "So:\n THE salary  of the\tdirector is one hundred thousand crowns."
    assert found(index, text) == [("text", "pay", text[5:-1])]
    assert found(index, text.replace("director", "ｄｉｒｅｃｔｏｒ"))[0][:2] == ("text", "pay")


def test_characters_that_are_not_seen_do_not_hide_anything(index: LeakIndex) -> None:
    hyphens, zeros = (mark.join(SALARY[4:50]) for mark in ("\u00ad", "\u200b"))
    assert found(index, hyphens) == [("text", "pay", hyphens)]
    assert found(index, zeros) == [("text", "pay", zeros)]


def test_what_an_admissible_document_holds_as_well_is_no_leak(index: LeakIndex) -> None:
    assert found(index, SHARED) == []
    # The title is that of an admissible document too.
    assert found(index, "See Refunds.") == []
    ((what, doc_id, part),) = found(index, SECRET)
    assert (what, doc_id) == ("text", "more")
    assert part == SECRET[SECRET.index("a further") - 39 :]


def test_titles_and_short_texts(index: LeakIndex) -> None:
    assert found(index, "The PAYROLL  plan says code 4711.") == [
        ("title", "pay", "PAYROLL  plan"),
        ("text", "code", "code 4711"),
    ]


def test_a_title_is_no_part_of_a_longer_word() -> None:
    index = LeakIndex([Guarded("hr", "hr", "HR", None), Guarded("cn", "hr", "薪资", None)])
    assert found(index, "I chronicle three things.") == []
    assert found(index, "Ask (HR)! Or hr-team.") == [("title", "hr", "HR"), ("title", "hr", "hr")]
    # Not all scripts have spaces between words.
    assert found(index, "关于薪资的") == [("title", "cn", "薪资")]


def test_a_title_that_an_admissible_document_holds_is_no_leak() -> None:
    index = LeakIndex(
        [Guarded("a", 1, "Night shift", None), Guarded("b", 2, None, "About the night shift.")]
    )
    assert index.find("night shift", only("b")) == []
    assert index.find("night shift", only()) == [Leak("title", "a", 0, 11)]


def test_forbidden_texts(index: LeakIndex) -> None:
    leaks = index.find("It was 30  DAYS, then 30 days.", only(), ["30 days"])
    assert leaks == [Leak("forbidden", None, 7, 8), Leak("forbidden", None, 22, 7)]


def test_two_parts_of_one_text_are_two_leaks(index: LeakIndex) -> None:
    text = f"{SALARY[:41]}; and so on: {SALARY[-41:]}"
    assert [part for _, _, part in found(index, text)] == [SALARY[:41], SALARY[-41:]]


def test_nothing_to_look_for() -> None:
    assert LeakIndex(()).find("any text", only()) == []
    assert LeakIndex([Guarded("a", 1, None, None)]).find("any text", only()) == []


small = st.text(st.sampled_from("ab "), max_size=24)


@deterministic
@given(
    st.lists(st.tuples(st.sampled_from("xyz"), small), min_size=1, max_size=5),
    st.text(st.sampled_from("ab "), max_size=20),
    st.integers(1, 9),
    st.sampled_from("xyz"),
)
def test_runs_are_those_of_the_definition(
    rows: list[tuple[str, str]], text: str, size: int, admissible: str
) -> None:
    documents = [Guarded(str(i), group, None, body) for i, (group, body) in enumerate(rows)]
    groups = {one.doc_id: one.group for one in documents}
    index = LeakIndex(documents, size)

    def is_admissible(doc_id: str) -> bool:
        return groups[doc_id] == admissible

    content = folded(text)
    known = [(is_admissible(one.doc_id), folded(one.text or "")) for one in documents]

    def leaks(part: str) -> bool:
        holders = [seen for seen, body in known if part in body]
        return bool(holders) and not any(holders)

    wanted = {
        place
        for start in range(len(content) - size + 1)
        if leaks(content[start : start + size])
        for place in range(start, start + size)
    }
    for seen, body in known:
        if not seen and body and len(body) < size and leaks(body):
            wanted |= {
                place
                for start in range(len(content))
                if content.startswith(body, start)
                for place in range(start, start + len(body))
            }
    # Folding only collapses white space here, so that leaks are counted in folded places.
    again = index.find(content, is_admissible)
    assert {p for one in again for p in range(one.offset, one.offset + one.length)} == wanted
    assert all(groups[str(one.doc_id)] != admissible for one in again)


def test_looking_takes_no_longer_with_more_documents() -> None:
    """A part that thousands of documents share is looked up once for each group, not for each."""
    template = "The limit of customer {0} is {0}00 units, which holds for all orders of {0}. "
    documents = [Guarded(f"d{i}", i % 3, None, template.format(i) * 3) for i in range(3000)]
    index = LeakIndex(documents)
    asked: list[str] = []

    def is_admissible(doc_id: str) -> bool:
        asked.append(doc_id)
        return int(doc_id[1:]) % 3 != 1

    assert index.find(template.format(7), is_admissible)[0].doc_id == "d7"
    assert index.find(template.format(8), is_admissible) == []
    assert len(asked) < 500
