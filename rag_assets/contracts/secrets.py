"""What must not be shown or stored: values from the environment, and where they may not stand.

A value is secret by where it comes from and by the name it goes by, never by how it looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""`${NAME}`: an environment variable."""

MASK = "***"
SHORTEST = 4
"""Shorter values are not masked: they can be guessed, and masking them would garble any text."""

_CREDENTIAL = re.compile(
    r"auth(?!or(?!iz))|cookie|token(?!s\b|iz)|secret|passw|pwd|credential|key(?!word)",
    re.IGNORECASE,
)


def is_credential(name: str) -> bool:
    """Whether a header or a parameter of this name carries a credential."""
    return _CREDENTIAL.search(name) is not None


class Secrets:
    """Values to be masked wherever they come up. Printing it prints none of them."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {one for value in values if len(value) >= SHORTEST for one in _spellings(value)}
        # The longest first: one value may hold another.
        ordered = sorted(found, key=lambda value: (-len(value), value))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if found else None

    def masked(self, text: str) -> str:
        """A text with every secret replaced by `***`."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def masked_json(self, value: Any) -> Any:
        """A JSON value with the secrets masked in all its texts, keys included."""
        if self._pattern is None:
            return value
        if isinstance(value, dict):
            return {self.masked(key): self.masked_json(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.masked_json(part) for part in value]
        return self.masked(value) if isinstance(value, str) else value


def _spellings(value: str) -> set[str]:
    """A value as it is, and as it stands inside JSON; some writers escape slashes there."""
    written = json.dumps(value)[1:-1]
    return {value, written, written.replace("/", "\\/")}


def references(text: str) -> list[str]:
    """The environment variables that a text names."""
    return REFERENCE.findall(text)


def substituted(text: str, environment: Mapping[str, str]) -> str:
    """A text with its environment variables filled in; all of them are set."""
    return REFERENCE.sub(lambda match: environment[match[1]], text)


def credentials_in_url(url: str) -> list[str]:
    """What of a URL carries a credential, by its name: no value is in the answer.

    Args:
        url: a URL that can be split into its parts.
    """
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    named = dict.fromkeys(name for name, value in pairs if value and is_credential(name))
    has_user = bool(parts.username or parts.password)
    return [*(["a user or a password"] if has_user else []), *(f"the parameter {n}" for n in named)]
