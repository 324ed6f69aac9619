"""YAML texts become plain data or are refused; none ends the process."""

from __future__ import annotations

import pytest

from openbell.strategies.errors import SpecRefused
from openbell.strategies.yaml_text import MAX_DEPTH, MAX_TEXT, read_yaml


def test_a_text_is_read_as_plain_data() -> None:
    assert read_yaml('a: [1, 2.5, true, "${x}"]\nb: {c: text}') == {"a": [1, 2.5, True, "${x}"], "b": {"c": "text"}}


def test_nesting_up_to_the_limit_is_read() -> None:
    found = read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        [found] = found
    assert found == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * (MAX_TEXT + 1), "is longer than 100,000 characters"),
        ("a: &x [1]\nb: *x", "has aliases"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "is nested more than 40 levels deep"),
        ("[" * (MAX_TEXT // 2) + "]" * (MAX_TEXT // 2), "is nested more than 40 levels deep"),
        ("- " * (MAX_TEXT // 2), "is nested more than 40 levels deep"),
        ("{a: " * (MAX_TEXT // 4), "is nested more than 40 levels deep"),
        ("!!python/object/apply:os.system [true]", "could not determine a constructor for the tag"),
        ("a: [1", "is not YAML"),
        ("a\0b", "is not YAML"),
        ("---\na\n---\nb", "expected a single document"),
    ],
)
def test_a_text_that_is_more_than_data_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SpecRefused, match=reason):
        read_yaml(text)
