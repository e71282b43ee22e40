"""The outputs in docs/decisions.md are what the example prints, line by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scipy.stats import beta

from command_line import copy_example, program_in
from rag_assets.statistics import clopper_pearson
from rag_assets.statistics.display import RATE

PAGE = (Path(__file__).parent.parent / "docs" / "decisions.md").read_text(encoding="utf-8")


def blocks() -> list[list[str]]:
    found = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    return [block.splitlines() for block in found]


def test_every_shown_line_is_printed(tmp_path: Path) -> None:
    folder = copy_example(tmp_path / "example")
    program = program_in(folder)
    for block in blocks():
        printed: list[str] = []
        for line in block:
            if not line.startswith("$ "):
                assert line in printed, f"{line!r} is not among:\n" + "\n".join(printed)
                printed = printed[printed.index(line) :]
            elif line.startswith("$ set token_budget "):
                config = folder / "rag_assets.yaml"
                budget = line.rsplit(" ", 1)[1]
                text = re.sub(r"token_budget: \d+", f"token_budget: {budget}", config.read_text())
                config.write_text(text)
            else:
                result = program(*line.removeprefix("$ rag-assets ").split())
                assert result.exit_code in (0, 1, 3), result.output
                printed = result.stdout.splitlines()


@pytest.mark.parametrize(
    "row", re.findall(r"^\| ([\d,]+) of ([\d,]+) \| (.*?) % \| (\[.*?\]) \| (\w+) \|$", PAGE, re.M)
)
def test_the_table_of_rates(row: tuple[str, str, str, str, str]) -> None:
    passes, cases = (int(text.replace(",", "")) for text in row[:2])
    found = clopper_pearson(passes, cases)
    assert found.lower is not None
    assert found.upper is not None
    assert RATE.estimate(passes / cases) == f"{row[2]}%"
    assert RATE.interval(found.lower, found.upper) == row[3].replace(" %", "%")
    state = "PASS" if found.lower >= 0.7 else "FAIL" if found.upper < 0.7 else None
    assert row[4] == (state or "INSUFFICIENT_EVIDENCE")


def test_the_recomputed_bounds() -> None:
    bounds = [round(float(bound), 9) for bound in (beta.ppf(0.025, 9, 5), beta.ppf(0.975, 10, 4))]
    assert f"\n{bounds}\n" in PAGE
