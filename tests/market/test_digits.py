"""The digits with which numbers leave."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.market.bars import make
from openbell.market.digit_columns import significant_column, volume_column, volumes_of
from openbell.market.digits import average, significant, volume
from openbell.market.instruments import parse
from openbell.market.plural import in_words
from openbell.market.timeframes import Timeframe

finite = st.floats(allow_nan=False, allow_infinity=False)
DUSTY = [0.1 + 0.2, 1.005, 2.5, 1234567890.5, 99999999999.5, 0.99999999995, 1e22, 5e-324, 1.7976931348623157e308, -0.0]


@given(finite)
def test_a_computed_number_has_10_significant_digits_and_stays_finite(value: float) -> None:
    found = significant(value)
    assert found == pytest.approx(value, rel=5.1e-10, abs=5e-324)
    assert significant(found) == found
    if abs(value) < 1e308:
        assert len(Decimal(repr(found)).normalize().as_tuple().digits) <= 10


@given(st.integers(0, 2**32), st.integers(0, 12))
def test_columns_are_rounded_like_single_numbers(seed: int, places: int) -> None:
    chance = np.random.default_rng(seed)
    sizes = 10.0 ** chance.uniform(-30, 30, 40) * chance.choice([-1, 1], 40)
    column = np.concatenate([sizes, np.round(chance.uniform(0, 1e4, 40), places), DUSTY])
    assert significant_column(column).tolist() == [significant(value) for value in column.tolist()]
    assert volume_column(np.abs(column)).tolist() == [volume(value) for value in np.abs(column).tolist()]


def test_what_is_not_finite_stays() -> None:
    found = significant_column(np.array([np.nan, np.inf, -np.inf, 1.0 / 3.0]))
    assert repr(found.tolist()) == "[nan, inf, -inf, 0.3333333333]"


@given(st.integers(0, 2**32), st.integers(1, 1440), st.integers(0, 8))
def test_a_sum_of_volumes_is_the_decimal_sum(seed: int, count: int, places: int) -> None:
    """One after another, as bars are made; up to 13 digits."""
    parts = [Decimal(int(each)).scaleb(-places) for each in np.random.default_rng(seed).integers(0, 10**8, count)]
    added = float(np.add.reduceat(np.array([float(each) for each in parts]), [0])[0])
    exact = sum(parts, Decimal(0))
    if len(exact.normalize().as_tuple().digits) <= 13:
        assert volume(added) == float(exact)


@pytest.mark.parametrize("own", [1234567890123.04, 12345678901230.4, 0.1 + 0.2, 123456789012345678.0])
def test_a_volume_of_the_feed_is_never_rounded(own: float) -> None:
    bars = make(parse("BTC/USD"), Timeframe.M1, [0], [1.0], [1.0], [1.0], [1.0], [own])
    assert volumes_of(bars).tolist() == [own]
    hours = replace(bars, timeframe=Timeframe.H1)
    assert volumes_of(hours, native=True).tolist() == [own]
    assert volumes_of(hours).tolist() == [volume(own)], "a sum"


@given(st.integers(0, 10**13), st.integers(0, 12))
def test_a_volume_of_the_feed_keeps_its_digits(whole: int, places: int) -> None:
    own = float(Decimal(whole).scaleb(-places))
    assert volume(own) == own
    assert volume_column(np.array([own])).tolist() == [own]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1", "1"),
        ("0.1234567890", "0.1234567890"),
        ("2.00000000005", "2.0000000000"),
        ("66666.6666666666666", "66666.6666666667"),
    ],
)
def test_an_average_has_at_most_10_places(value: str, shown: str) -> None:
    assert str(average(Decimal(value))) == shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 minutes"),
        (59.9, "0 minutes"),
        (60, "1 minute"),
        (3600, "1 hour"),
        (5400, "1 hour and 30 minutes"),
        (86400, "1 day"),
        (90000 + 59 * 60, "1 day and 1 hour"),
        (3294223 * 60, "2,287 days and 15 hours"),
    ],
)
def test_durations_are_said_in_their_two_largest_units(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
