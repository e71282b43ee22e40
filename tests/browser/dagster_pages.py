"""Reading and clicking the pages of the Dagster UI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from colorsys import rgb_to_hsv

from playwright.sync_api import Locator, Page, expect

ROWS = "table => [...table.rows].map(row => [...row.cells].map(cell => cell.innerText.trim()))"


def table(page: Page, header: str) -> list[list[str]]:
    """The cells of the innermost table with a certain header, row by row."""
    found = page.locator("table").filter(has=page.get_by_text(header, exact=True)).last
    found.wait_for()
    return list(found.evaluate(ROWS))


def metadata(page: Page, name: str) -> str:
    """The text of a metadata entry."""
    cells = page.locator("td:first-child").filter(has_text=re.compile(f"^{name}$"))
    # A table that is the value of an earlier entry may have a row of that name, too.
    return cells.last.locator("xpath=following-sibling::td[1]").inner_text()


def check(page: Page, name: str) -> Locator:
    """A check in the list of an asset's checks, with its icon and its result."""
    return page.get_by_title(name, exact=True).locator("xpath=ancestor::div[2]")


def colour(icon: Locator) -> str:
    """What people call the colour in which an icon is painted."""
    painted = icon.evaluate("icon => getComputedStyle(icon).backgroundColor")
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", painted)[:3])
    hue, saturation, _ = rgb_to_hsv(red, green, blue)
    if saturation < 0.3:
        return "grey"
    degrees = hue * 360
    return "amber" if 25 < degrees < 60 else "green" if 90 < degrees < 170 else "red"


def materialize_all(page: Page) -> None:
    """All partitions of all assets, from the graph."""
    page.goto("/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_role("button", name="Launch backfill").click()


def materialize_one(page: Page, asset: str, case: str) -> None:
    """One partition of an asset, from its page."""
    page.goto(f"/assets/{asset}?view=partitions&partition={case}")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_role("button", name="Launch 1 run").click()


def materialize_some(page: Page, asset: str, cases: Sequence[str]) -> None:
    """A selection of partitions of an asset, ticked one by one on its page."""
    page.goto(f"/assets/{asset}?view=partitions")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_role("button", name="Custom", exact=True).click()
    page.get_by_text(re.compile(r"^\d+ partitions selected$")).click()
    choices = page.get_by_role("menu")
    choices.get_by_text("Select all").click()
    for case in cases:
        choices.get_by_title(case, exact=True).click()
    page.keyboard.press("Escape")
    launch = page.get_by_role("button", name="Launch backfill")
    expect(page.get_by_text(f"{len(cases)} partitions", exact=True)).to_be_visible()
    launch.click()
