"""The key `system.http`: a service that is called over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from rag_assets.contracts.errors import Problem
from rag_assets.contracts.kinds import kind_problem
from rag_assets.contracts.secrets import REFERENCE, credentials_in_url, is_credential
from rag_assets.contracts.template import template_problems
from rag_assets.contracts.text import shown
from rag_assets.contracts.timing import Retries, Seconds
from rag_assets.contracts.validation import FileModel, NonEmpty
from rag_assets.contracts.yaml_source import YamlSource

_KEY = "system.http"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# What HTTP cannot carry in a header, and line breaks, which would make two headers of one.
_NOT_IN_HEADER = re.compile(r"[^\t\x20-\x7e]")


def _must_be_url(value: str) -> str:
    # No message repeats the value, which may hold a password.
    if "${" in value:
        raise ValueError(
            "is sent as it stands here, and nothing is filled in for ${; values of the environment "
            "belong in headers, as in headers: {Authorization: Bearer ${API_TOKEN}}"
        )
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", value):
        raise ValueError("must be a URL like http://127.0.0.1:8000/answer")
    found = credentials_in_url(value)
    if found:
        raise ValueError(
            f"holds {' and '.join(found)}, and this file and the records would show it; keep the "
            "secret in an environment variable, and send it in a header, as in "
            "headers: {Authorization: Bearer ${API_TOKEN}}"
        )
    return value


Url = Annotated[NonEmpty, AfterValidator(_must_be_url)]


class HttpSettings(FileModel):
    """`system.http`: one request for each case.

    Attributes:
        output_path: dotted path of the output in the response; None for the whole response.
        artifacts: kind → dotted path in the response.
        body: a template (see `rag_assets.contracts.template`); None for the input of the case.
        headers: sent with every request; `${NAME}` is an environment variable.
        timeout_s, retries: replace those of `system`.
    """

    url: Url = Field(description="where the service answers, such as http://127.0.0.1:8000/answer")
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: Mapping[str, str] = {}
    body: Any = None
    output_path: NonEmpty | None = None
    artifacts: Mapping[str, NonEmpty] = {}
    timeout_s: Seconds | None = None
    retries: Retries | None = None


def check_http(source: YamlSource, problems: list[Problem]) -> None:
    """Append what is wrong with the headers, the body and the artifacts of `system.http`.

    Args:
        source: the config file; `system.http` is a mapping in it.
        problems: the list to append to.
    """
    http = source.content["system"]["http"]
    found = [*_header_problems(http.get("headers")), *_artifact_problems(http.get("artifacts"))]
    found += template_problems(http.get("body"), f"{_KEY}.body")
    problems += [source.problem(key, message) for key, message in found]


def header_problem(value: str) -> str | None:
    """Why a text cannot be the value of a header; None when it can. The text is not repeated."""
    if _NOT_IN_HEADER.search(value) or value != value.strip():
        return (
            "holds what a header cannot carry: a line break, white space around it, or a "
            "character that is not ASCII"
        )
    return None


def _header_problems(headers: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(headers, dict):
        return
    seen: set[str] = set()
    for name, value in headers.items():
        key = f"{_KEY}.headers.{name}"
        if not _HEADER_NAME.fullmatch(name):
            yield key, f"{shown(name)} is no name of a header."
        elif name.lower() in seen:
            yield key, f"The header {name} stands here twice; keep one."
        elif isinstance(value, str):
            yield from ((key, message) for message in _value_problems(name, value))
        seen.add(name.lower())


def _value_problems(name: str, value: str) -> Iterator[str]:
    if is_credential(name) and not REFERENCE.search(value):
        yield (
            f"{name} carries a credential: write ${{NAME}} for an environment variable that holds "
            "it, and keep the value out of this file."
        )
    elif "${" in REFERENCE.sub("", value):
        yield (
            f"{name} holds a ${{ that names no environment variable; write it like ${{API_TOKEN}}."
        )
    else:
        problem = header_problem(value)
        if problem is not None:
            yield f"The value of {name} {problem}."


def _artifact_problems(artifacts: Any) -> Iterator[tuple[str, str]]:
    for kind in artifacts if isinstance(artifacts, dict) else ():
        problem = kind_problem(kind)
        if problem is not None:
            # The words are for a value; here the kind is the key.
            yield f"{_KEY}.artifacts.{kind}", f"The kind {problem}."


def described(http: HttpSettings) -> dict[str, Any]:
    """What of the settings decides the answers, as JSON; headers as they are written."""
    return {
        "url": http.url,
        "method": http.method,
        "headers": dict(http.headers),
        "body": http.body,
        "output_path": http.output_path,
        "artifacts": dict(http.artifacts),
    }
