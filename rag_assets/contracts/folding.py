"""Texts as they are compared when it matters what they say, and not how they are written."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

Place = tuple[int, int]
"""Where a character comes from: start and end in the text as it was written."""


def folded(text: str) -> str:
    """A text without the difference of case, of compatible characters and of white space.

    Characters that are not seen, such as soft hyphens and zero-width spaces, do not count.

    NFKC, case folding, NFKC once more (case folding may undo it), and one space for every run of
    white space; none at either end. Folding a folded text changes nothing.
    """
    return " ".join(_alike(text).split())


def folded_places(text: str) -> tuple[str, list[Place]]:
    """The folded text, and for each of its characters where it comes from.

    A character that cannot be traced comes from the whole text.
    """
    characters: list[str] = []
    places: list[Place] = []
    for piece, start, end in _pieces(text):
        for character in _alike(piece):
            if not character.isspace():
                characters.append(character)
                places.append((start, end))
            elif characters and characters[-1] != " ":
                characters.append(" ")
                places.append((start, end))
    if characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    whole = folded(text)
    if "".join(characters) != whole:
        places = [(0, len(text))] * len(whole)
    return whole, places


def _alike(text: str) -> str:
    if text.isascii():
        return text.lower()
    seen = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Parts that fold on their own, as (part, start, end): a letter with its accents, for one."""
    start = 0
    for end in range(1, len(text) + 1):
        part = text[start:end]
        following = text[end : end + 1]
        if not following or _alike(part + following) == _alike(part) + _alike(following):
            yield part, start, end
            start = end
