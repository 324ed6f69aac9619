"""Grids: values as people write them, values from ranges, and samples of what is too large."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.backtest.grids import MOST_COMBINATIONS, Grid, grid, parse_values
from openbell.market.errors import InvalidParameter
from openbell.strategies.compiled import compiled
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Number, Spec, SpecParameter
from tests.strategies.specs import crossover

WHOLE = SpecParameter("fastPeriod", True, 2, 50, 12)
STOPS = ("STOP_LOSS", "STOP_GAIN", "TRAILING_STOP_LOSS")
FRACTION = SpecParameter("stopLoss", False, 0.5, 10.0, 2.0)


def spec_with(*parameters: tuple[str, str, float, float, float]) -> Spec:
    """The crossover with stops, whose distances are parameters beside the two periods."""
    raw: dict[str, Any] = crossover()
    raw["parameters"] += [
        {"name": name, "type": kind, "min": low, "max": high, "defaultValue": default}
        for name, kind, low, high, default in parameters
    ]
    names = [each[0] for each in parameters]
    stops = [{"type": kind, "params": {"percentage": f"${{{name}}}"}} for kind, name in zip(STOPS, names, strict=False)]
    raw["exitConditions"] = [{"type": "OR", "conditions": [*raw["exitConditions"], *stops]}]
    return read_spec(raw)


@pytest.mark.parametrize(
    ("parameter", "text", "expected"),
    [
        (WHOLE, "8", (8,)),
        (WHOLE, "5,9,12", (5, 9, 12)),
        (WHOLE, "5..20:5", (5, 10, 15, 20)),
        (WHOLE, "5..8", (5, 6, 7, 8)),
        (WHOLE, " 5..21:5 , 30 ", (5, 10, 15, 20, 30)),
        (WHOLE, "9,5,9", (9, 5)),
        (WHOLE, "7..7", (7,)),
        (FRACTION, "2", (2.0,)),
        (FRACTION, "1..3:0.5", (1.0, 1.5, 2.0, 2.5, 3.0)),
        (FRACTION, "0.5..0.8:0.1", (0.5, 0.6, 0.7, 0.8)),
    ],
)
def test_values_as_people_write_them(parameter: SpecParameter, text: str, expected: tuple[Number, ...]) -> None:
    found = parse_values(parameter, text)
    assert found == expected
    assert {type(each) for each in found} == {int if parameter.whole else float}


@pytest.mark.parametrize(
    ("parameter", "text", "why"),
    [
        (WHOLE, "", "write whole numbers such as 5,9,12"),
        (WHOLE, "5,,9", "write whole numbers"),
        (WHOLE, "five", "write whole numbers"),
        (WHOLE, "5.5", "write whole numbers"),
        (WHOLE, "nan", "write whole numbers"),
        (WHOLE, "inf", "write whole numbers"),
        (FRACTION, "inf", "write numbers"),
        (WHOLE, "5..", "write whole numbers"),
        (WHOLE, "5..9..12", "write whole numbers"),
        (WHOLE, "5:..9", "write whole numbers"),
        (WHOLE, "20..5", "a step above 0"),
        (WHOLE, "5..20:0", "a step above 0"),
        (WHOLE, "5..20:-5", "a step above 0"),
        (WHOLE, "1..1000000000", "at most 10,000 values"),
        (FRACTION, "1..3", "add a step"),
        (FRACTION, "1..3:1e-300", "at most 10,000 values"),
    ],
)
def test_values_that_cannot_be_read_are_refused(parameter: SpecParameter, text: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        parse_values(parameter, text)


def test_given_values_are_combined_in_the_order_of_the_parameters() -> None:
    found = grid(spec_with(), {"emaPeriod": [9, 5], "smaPeriod": (3, 20)})
    rows = [(each["smaPeriod"], each["emaPeriod"]) for each in found.combinations]
    assert rows == [(3, 5), (3, 9), (20, 5), (20, 9)], "a fast period above the slow one is a try as well"
    assert found.possible == 4


def test_a_parameter_without_values_uses_its_range() -> None:
    found = grid(spec_with(), {"smaPeriod": [5]})
    assert [each["emaPeriod"] for each in found.combinations] == list(range(2, 51))
    spec = spec_with(("stopLoss", "DOUBLE", 1.0, 9.0, 2.5))
    stops = {each["stopLoss"] for each in grid(spec, {"smaPeriod": [5], "emaPeriod": [9]}).combinations}
    assert stops == {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 2.5}


def test_too_many_combinations_are_sampled_the_same_way_each_time() -> None:
    spec = spec_with(("stopLoss", "DOUBLE", 1.0, 9.0, 2.5))
    found = grid(spec, most=200)
    assert found.possible == 49 * 49 * 10
    assert len(found.combinations) == 200 == len({tuple(each.values()) for each in found.combinations})
    assert spec.defaults() in found.combinations
    assert found == grid(spec, most=200)
    rows = [tuple(each.values()) for each in found.combinations]
    assert rows == sorted(rows), "neighbours share lines"
    assert len({each["smaPeriod"] for each in found.combinations}) > 40, "all of the range is tried"


def test_nearly_all_combinations_are_sampled_without_delay() -> None:
    found = grid(spec_with(), most=49 * 49 - 1)
    assert len({tuple(each.values()) for each in found.combinations}) == 49 * 49 - 1


def test_a_sample_without_the_defaults_if_the_values_do_not_have_them() -> None:
    found = grid(spec_with(), {"smaPeriod": [20, 30]}, most=10)
    assert len(found.combinations) == 10
    assert {each["smaPeriod"] for each in found.combinations} <= {20, 30}


def test_ranges_of_millions_are_sampled() -> None:
    spec = spec_with(*((f"s{n}", "DOUBLE", 0.1, 50.0, 1.0) for n in range(3)))
    found = grid(spec, most=50)
    assert found.possible == 49 * 49 * 10**3
    assert len(found.combinations) == 50


@pytest.mark.parametrize("name", sorted(canonical()))
def test_every_canonical_strategy_has_a_grid_of_valid_combinations(name: str) -> None:
    spec = canonical()[name]
    found = grid(spec, most=100)
    assert 1 <= len(found.combinations) <= 100
    for each in found.combinations:
        compiled(spec, each)


def test_a_spec_without_parameters_is_one_try() -> None:
    raw = crossover() | {"parameters": []}
    raw["indicators"][0]["params"]["period"], raw["indicators"][1]["params"]["length"] = 5, 9
    assert grid(read_spec(raw)) == Grid(({},), 1)


@pytest.mark.parametrize(
    ("values", "most", "why"),
    [
        ({"smaperiod": [5]}, 10, "did you mean"),
        ({"smaPeriod": []}, 10, "needs between 1 and"),
        ({"smaPeriod": [51]}, 10, "between 2 and 50"),
        ({"smaPeriod": [5.5]}, 10, "whole number"),
        ({}, 0, "between 1 and 100,000"),
        ({}, MOST_COMBINATIONS + 1, "between 1 and 100,000"),
    ],
)
def test_what_cannot_be_combined_is_refused(values: dict[str, list[Number]], most: int, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        grid(spec_with(), values, most)


@given(st.text(alphabet="0123456789.,:-e ", max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_values_or_a_refusal(text: str) -> None:
    for parameter in (WHOLE, FRACTION):
        try:
            assert 1 <= len(parse_values(parameter, text)) <= 200_000
        except InvalidParameter:
            continue
