"""A real browser in front of `rag-assets ui`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from serving import Session

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ABSENT = (
    "There is no Chromium for the tests in a browser. Install it with .ci/chromium, or with "
    "apt-get install chromium."
)
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)
failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[failed] = item.stash.get(failed, False) or report.failed
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail(ABSENT)
        pytest.skip(ABSENT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser: Browser, session: Session) -> Page:
    """Shared by the tests of a module, so that the scripts of the UI are made ready once."""
    context = browser.new_context(base_url=session.url, viewport={"width": 1400, "height": 820})
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


@pytest.fixture
def page(tab: Page, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    """A page of the session that a module defines. An error of its scripts fails the test."""
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(str(error))

    tab.on("pageerror", note)
    yield tab
    if errors or request.node.stash.get(failed, False):
        picture = tmp_path / "page.png"
        tab.screenshot(path=picture)
        print(f"What the page showed: {picture}")
    # What still runs in this page is of this test.
    tab.goto("about:blank")
    tab.remove_listener("pageerror", note)
    assert errors == []
