"""What is masked, and what is not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.secrets import Secrets, credentials_in_url, is_credential


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://h:8000/a?k=3&q=token&max_tokens=9&tokenizer=x#token=1", []),
        ("https://h/?api_key=&token=", []),
        ("https://user:p%40ss@h/", ["a user or a password"]),
        ("https://sk-canary@h/", ["a user or a password"]),
        (
            "https://:pw@h/?k=3&to%6ben=1&access_key=2&token=3",
            ["a user or a password", "the parameter token", "the parameter access_key"],
        ),
    ],
)
def test_credentials_in_a_url(url: str, found: list[str]) -> None:
    assert credentials_in_url(url) == found


@pytest.mark.parametrize(
    "name", ["Authorization", "X-Auth", "Cookie", "Set-Cookie2", "apiKey", "token2"]
)
def test_names_of_credentials(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize(
    "name", ["Author", "Accept", "keyword", "q", "Content-Type", "max_tokens", "Tokenizer"]
)
def test_names_that_carry_none(name: str) -> None:
    assert not is_credential(name)


def test_masking() -> None:
    secrets = Secrets(["token-1", "token-1-long", "abc", ""])
    assert secrets.masked("token-1-long, token-1 and abc") == "***, *** and abc"
    value = {"token-1": ["x token-1", {"a": 1}], "b": None}
    assert secrets.masked_json(value) == {"***": ["x ***", {"a": 1}], "b": None}
    assert Secrets([]).masked_json(value) is value
    assert "token" not in repr(secrets)


def test_masking_inside_json() -> None:
    secrets = Secrets(['a/b"c\\d'])
    assert (
        secrets.masked('{"x": "a/b\\"c\\\\d", "y": "a\\/b\\"c\\\\d"}') == '{"x": "***", "y": "***"}'
    )


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.lists(st.text(min_size=4, max_size=9), max_size=4), st.text(max_size=9))
def test_no_secret_is_left(values: list[str], around: str) -> None:
    masked = Secrets(values).masked(around + around.join(values) + around)
    kept = masked.replace("***", "\0")
    assert not any(value in part for value in values for part in kept.split("\0"))
