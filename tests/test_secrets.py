"""What is masked, and what is not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.secrets import (
    Secrets,
    basic_authorization,
    is_credential,
    url_secrets,
    url_without_secrets,
    url_without_user,
)

URL = "https://user:p%40ss-word@host:8000/a/b?token=t%2Fop-secret&k=3&api_key=&q=token#x"


def test_a_url_is_shown_without_its_secrets() -> None:
    assert url_without_secrets(URL) == "https://host:8000/a/b?token=***&k=3&api_key=&q=token#x"
    assert url_without_user(URL) == URL.replace("user:p%40ss-word@", "")
    assert url_without_secrets("http://h/a?b=c") == "http://h/a?b=c"


def test_the_secrets_of_a_url_in_every_spelling() -> None:
    basic = basic_authorization(URL)
    assert basic == "Basic dXNlcjpwQHNzLXdvcmQ="
    assert url_secrets(URL) - {""} == {
        "p@ss-word",
        "p%40ss-word",
        "t/op-secret",
        "t%2Fop-secret",
        "dXNlcjpwQHNzLXdvcmQ=",
    }
    assert url_secrets("http://h/?q=refund") == {""}
    assert basic_authorization("http://h/") is None


def test_a_user_without_a_password_is_a_key() -> None:
    assert "sk-canary" in url_secrets("http://sk-canary@h/")
    assert "user" not in url_secrets("http://user:canary@h/")


@pytest.mark.parametrize("name", ["Authorization", "X-Auth", "Cookie", "Set-Cookie2", "apiKey"])
def test_names_of_credentials(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize("name", ["Author", "Accept", "keyword", "q", "Content-Type"])
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
