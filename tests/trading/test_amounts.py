"""Amounts: parsed exactly as written, or refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_UP, Decimal, getcontext, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.errors import InvalidParameter
from openbell.trading import amounts

D = Decimal
Reader = Callable[..., Decimal]
both = pytest.mark.parametrize("read", [amounts.quantity, amounts.price])


@both
@pytest.mark.parametrize(
    ("given_as", "meant"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", "1"),
        ("1.00", "1"),
        ("+1", "1"),
        (" 1 ", "1"),
        ("01.50", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1E+3", "1000"),
        ("12e-3", "0.012"),
        (0.1, "0.1"),
        (1e-8, "0.00000001"),
        (123456.789, "123456.789"),
        (999999999999999, "999999999999999"),
        (D("2.50"), "2.5"),
        ("0." + "1" * 8 + "0" * 20, "0.11111111"),
    ],
)
def test_an_amount_has_the_digits_that_were_written(read: Reader, given_as: Any, meant: str) -> None:
    found = read(given_as)
    assert found == D(meant)
    assert amounts.text(found) == meant


@both
@pytest.mark.parametrize(
    "given_as",
    [
        True,
        False,
        None,
        "",
        " ",
        "one",
        "1,5",
        "1 000",
        "1_000",
        "0x10",
        "--1",
        "1e",
        "１２",
        "٣",
        "½",
        "−1",
        "1" * 41,
        [1],
        {"value": 1},
        b"1",
        1j,
        pytest.param(10**5000, id="5001 digits"),
        pytest.param(-(10**5000), id="5001 digits less than zero"),
    ],
)
def test_a_value_that_is_no_number_is_refused_by_name(read: Reader, given_as: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^size must be a number$"):
        read(given_as, "size")


@both
@pytest.mark.parametrize(
    "given_as",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        "nan",
        "sNaN",
        "NaN123",
        "Infinity",
        "-inf",
        "1e40",
        "1e-40",
        "1e999999",
        "1e-999999",
        1e300,
    ],
)
def test_a_number_of_extreme_size_is_refused(read: Reader, given_as: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^size must be a number of ordinary size$"):
        read(given_as, "size")


@both
@pytest.mark.parametrize("given_as", ["1e9999999999999999999", "-1e-9999999999999999999"])
def test_an_exponent_that_no_decimal_has_is_refused(read: Reader, given_as: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^size must be a number"):
        read(given_as, "size")


@both
@pytest.mark.parametrize("given_as", [0, 0.0, -0.0, "0", "-0", "0e99999", "-1", -0.5, 10**15, "1e15", "1e16", "-1e15"])
def test_zero_negative_and_very_large_numbers_are_refused(read: Reader, given_as: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^size must be more than 0 and less than 1000000000000000$"):
        read(given_as, "size")


def test_a_quantity_has_eight_places_and_a_price_twelve() -> None:
    assert amounts.quantity("0.00000001") == D("1e-8")
    assert amounts.price("0.000000000001") == D("1e-12")
    assert amounts.quantity("999999999999999.99999999") == D("999999999999999.99999999")
    assert amounts.price("999999999999999.999999999999") == D("999999999999999.999999999999")
    with pytest.raises(InvalidParameter, match=r"^quantity may have at most 8 decimal places$"):
        amounts.quantity("1.000000001")
    with pytest.raises(InvalidParameter, match=r"^price may have at most 12 decimal places$"):
        amounts.price("1.0000000000001")


def test_digits_of_a_quantity_below_a_float_s_precision_are_rounded_away() -> None:
    assert amounts.quantity(0.1 + 0.2) == D("0.3")
    assert amounts.rounding_note(0.1 + 0.2, D("0.3")) == "quantity 0.30000000000000004 was rounded to 0.3"
    assert amounts.rounding_note("0.30", D("0.3")) is None
    assert amounts.quantity("1.0000000000009") == 1
    assert amounts.quantity(0.7 + 0.1) == D("0.8")
    for fine in ("1.0000000000011", "0.00000001000001", "0.9999999999989"):
        with pytest.raises(InvalidParameter, match="at most 8"):
            amounts.quantity(fine)


@given(st.integers(1, 10**23 - 1), st.sampled_from(["plain", "padded", "exponent", "float"]))
@settings(deadline=None, max_examples=300)
def test_every_quantity_equals_its_parsed_text(units: int, form: str) -> None:
    value = D(units).scaleb(-8, amounts._EXACT)
    written: Any = amounts.text(value)
    if form == "padded":
        written = f"00{value:.9f}"
    elif form == "exponent":
        written = f"{units}e-8"
    elif form == "float" and units < 10**15:
        written = float(value)
    found = amounts.quantity(written)
    assert found == value
    assert amounts.text(found) == amounts.text(value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**30), max_value=10**30))
@settings(deadline=None, max_examples=300)
def test_the_text_of_an_amount_is_plain_exact_and_unique(value: Decimal) -> None:
    written = amounts.text(value)
    assert D(written) == value
    assert "E" not in written.upper()
    assert not ("." in written and written.endswith(("0", ".")))
    assert amounts.text(D(f"{value:E}")) == written
    assert amounts.text(value.quantize(D("1e-25"), context=amounts._EXACT)) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [("0", "0"), ("-0.00", "0"), ("0E+5", "0"), ("1E+3", "1000"), ("-1.50", "-1.5"), ("1E-9", "0.000000001")],
)
def test_zeros_and_exponents_have_one_text(value: str, written: str) -> None:
    assert amounts.text(D(value)) == written


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**20), max_value=10**20),
    st.sampled_from([D(1), D("1e-8"), D("1e-12")]),
)
@settings(deadline=None, max_examples=200)
def test_rounding_goes_one_way_and_less_than_a_step(value: Decimal, step: Decimal) -> None:
    up, down = amounts.up(value, step), amounts.down(value, step)
    with amounts.exact():
        assert down <= value <= up
        assert value - down < step
        assert up - value < step
        assert up % step == down % step == 0


def test_a_price_is_rounded_up_for_buys_and_down_for_sells() -> None:
    assert amounts.against(D("1.0000000000001"), buying=True) == D("1.000000000001")
    assert amounts.against(D("1.0000000000009"), buying=False) == 1


@given(st.integers(-(10**20), 10**20), st.integers(1, 10**10))
@settings(deadline=None, max_examples=200)
def test_a_quotient_is_rounded_down(part: int, whole: int) -> None:
    found, exact = Fraction(amounts.share(D(part), D(whole))), Fraction(part, whole)
    assert found <= exact
    assert exact - found <= abs(exact) / 10**27


def test_exact_sums_do_not_depend_on_the_outer_context() -> None:
    with localcontext() as context:
        context.prec, context.rounding = 5, ROUND_UP
        with amounts.exact():
            product = D("999999999999999.99999999") * D("999999999999999.999999999999")
        assert Fraction(product) == Fraction("999999999999999.99999999") * Fraction("999999999999999.999999999999")
        assert getcontext().prec == 5


@given(st.floats(1e-6, 1e12))
@settings(deadline=None, max_examples=200)
def test_a_bars_price_has_the_shortest_digits_of_its_float(value: float) -> None:
    found = amounts.of_bar(value)
    assert float(found) == value
    assert D(repr(value)) == found
    assert amounts.number(found) == value


@given(st.integers(1, 10**8), st.integers(1, 10**8), st.sampled_from([10, 1000, 10**6]))
@settings(deadline=None, max_examples=300)
def test_sums_and_differences_of_floats_are_the_quantity_that_was_meant(one: int, other: int, unit: int) -> None:
    assert amounts.quantity(one / unit + other / unit) == D(one + other) / unit
    if one > 2 * other:
        assert amounts.quantity(one / unit - other / unit) == D(one - other) / unit


@given(st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=300)
def test_a_quantity_is_never_changed_by_more_than_the_tail_of_a_float(value: float) -> None:
    try:
        found = amounts.quantity(value)
    except InvalidParameter:
        return
    assert abs(Fraction(found) - Fraction(repr(value))) <= Fraction(repr(value)) / 10**12
