"""Sections of a page that are measured: each between two comments on lines of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MEASURED = re.compile(
    r"^(?P<begin><!-- measured: (?P<name>[^\n]+?) -->\n).*?^(?P<end><!-- end -->)$",
    re.MULTILINE | re.DOTALL,
)


def with_measured(page: str, sections: Mapping[str, str]) -> str:
    """A page with the sections that were measured anew.

    Args:
        page: the Markdown text.
        sections: name → Markdown; sections of the page that are not among them stay.

    Raises:
        SystemExit: the page has no place for a section.
    """
    places = {found["name"] for found in _MEASURED.finditer(page)}
    if absent := sections.keys() - places:
        raise SystemExit(f"The page has no section `<!-- measured: {min(absent)} -->`.")

    def filled(found: re.Match[str]) -> str:
        if found["name"] not in sections:
            return found[0]
        return f"{found['begin']}\n{sections[found['name']].strip()}\n\n{found['end']}"

    return _MEASURED.sub(filled, page)
