"""Reading the JSON of clients."""

from __future__ import annotations

from math import inf, isnan

import pytest

from openbell.protocol.json_text import parse

LONG = b"9" * 400


def test_a_whole_number_that_no_float_holds_is_an_infinity_wherever_it_stands() -> None:
    assert parse(b'{"a": [%s, -%s], "b": {"c": %s}}' % (LONG, LONG, LONG)) == {"a": [inf, -inf], "b": {"c": inf}}


def test_a_whole_number_that_a_float_holds_keeps_its_digits() -> None:
    assert parse(b"[%s]" % (b"9" * 300)) == [10**300 - 1]


def test_an_id_keeps_its_digits_whatever_their_number() -> None:
    assert parse(b'{"id": %s, "params": {"id": %s}}' % (LONG, LONG)) == {"id": 10**400 - 1, "params": {"id": inf}}


@pytest.mark.parametrize("text", [b"[NaN]", b"[Infinity]", b"[-Infinity]"])
def test_nan_and_infinity_are_read_only_where_they_may_be(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected value|invalid number"):
        parse(text)
    (value,) = parse(text, nan=True)
    assert isnan(value) or abs(value) == inf


@pytest.mark.parametrize("text", [b'{"a": 1, "a": 2}', b'[{"b": {"a": 1, "a": 1}}]', b'{"\\u0061": 1, "a": 2}'])
def test_a_key_that_is_given_twice_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="given twice"):
        parse(text)


@pytest.mark.parametrize("text", [b"7", b'"\\":"', b"null", b"[]", b'{"a\\":": 1}'])
def test_texts_that_look_like_keys_are_texts(text: bytes) -> None:
    parse(text)
