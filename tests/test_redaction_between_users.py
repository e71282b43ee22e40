"""A judgment that two users share shows each of them no more than their own sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import call
from sourced import DOCUMENTS, MEMBER, SECRET, STAFF, SourcedProject, case

HIDDEN = f"it read: [restricted: {len(SECRET)} characters]"


@pytest.mark.parametrize("order", [("staff", "member"), ("member", "staff")])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_memoized_judgment(tmp_path: Path, order: tuple[str, str], at_once: bool) -> None:
    sourced = SourcedProject(tmp_path)
    # The manifest holds no texts: what is restricted stands in the recorded passages alone.
    sourced.manifest(*({**one, "text": None} for one in DOCUMENTS))
    # Every judgment of the second case is that of the first: nothing else looks at its evidence.
    sourced.without("admissible", "no_leak")
    users = {"staff": STAFF, "member": MEMBER}
    cases = [case(name, "alarm", users[name]) for name in order]
    if not at_once:
        sourced.cases(cases[0])
        sourced.run()
    sourced.cases(*cases)
    run = sourced.run()
    reasons = {name: run.judgment(name, "quoting").reason for name in order}
    assert run.judgment(order[1], "quoting").source == ("shared" if at_once else "hit")
    assert reasons["member"] == HIDDEN
    shown = call(tmp_path, "inspect", "latest", "--case", "member", "--json").stdout
    assert json.loads(shown)["judgments"][-1]["reason"] == HIDDEN
    assert SECRET not in shown
