"""Reading chart configs: the contract's form and the vendor's have one meaning, and whatever is wrong is a problem."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from openbell.charts.config.reading import CONTRACT, VENDOR, read_config
from openbell.charts.config.vendor_form import settled, vendor_body
from openbell.charts.studies.catalogue import all_studies, find
from openbell.market.errors import InvalidParameter
from tests.charts.config.test_vendor_form import CONFIGS, NOW

PLAIN: dict[str, Any] = {"symbol": "BINANCE:BTCUSDT", "interval": "1h"}


def problems_of(**fields: Any) -> dict[str, str]:
    found = read_config({**PLAIN, **fields}).problems
    return {each.field: each.message for each in found}


def test_both_forms_of_a_study_have_one_meaning() -> None:
    contract = {"name": "BollingerBands@tv-basicstudies", "inputs": {"length": 30, "stdDev": 2.5}}
    vendor = {"name": "Bollinger Bands", "input": {"in_0": 30, "in_2": 2.5}}
    other = {"name": "bollinger bands", "input": {"in_0": 30, "in_1": 2.5}}
    read = [read_config({**PLAIN, "studies": [each]}).config for each in (contract, vendor, other)]
    assert read[0] is not None
    assert read[0] == read[1] == read[2]


def test_both_forms_of_a_drawing_have_one_meaning() -> None:
    contract = {"type": "Horizontal Line", "coordinates": {"price": 65000}, "style": {"lineWidth": 2}}
    vendor = {"name": "horizontal line", "input": {"price": 65000}, "override": {"lineWidth": 2}}
    read = [read_config({**PLAIN, "drawings": [each]}).config for each in (contract, vendor)]
    assert read[0] is not None
    assert read[0] == read[1]


@given(CONFIGS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_what_is_sent_to_the_vendor_is_read_as_the_same_config(config: Any) -> None:
    body = json.loads(json.dumps(vendor_body(config, NOW)))
    reading = read_config(body, VENDOR)
    assume(not any("entryPrice" in each.message for each in reading.problems))  # a position on the wrong side
    assert all("twice" in each.message for each in reading.problems)
    assert reading.config is not None
    assert settled(reading.config, NOW) == settled(config, NOW)


def test_every_study_is_found_by_its_names() -> None:
    for study in all_studies().values():
        for name in (study.name, study.short, study.title, study.title.upper()):
            assert find(name) is study
        for phrase in study.phrases:
            assert find(phrase).name in all_studies()


def test_an_unknown_study_suggests_the_nearest() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'Bollinger Bands'"):
        find("Bolinger Bands")


@pytest.mark.parametrize(
    ("kind", "entry", "target", "stop", "wrong"),
    [
        ("Long Position", 100, 110, 90, []),
        ("Short Position", 100, 90, 110, []),
        ("Long Position", 100, 90, 110, ["targetPrice", "stopPrice"]),
        ("Short Position", 90_000, 95_000, 99_000, ["targetPrice"]),
        ("Long Position", 100, 110, 100, ["stopPrice"]),
    ],
)
def test_a_position_whose_target_would_be_a_loss_is_refused(
    kind: str, entry: float, target: float, stop: float, wrong: list[str]
) -> None:
    place = {"entryPrice": entry, "targetPrice": target, "stopPrice": stop}
    found = problems_of(drawings=[{"type": kind, "coordinates": place}])
    assert [field.rpartition(".")[2] for field in found] == wrong


def test_inputs_may_be_counted_as_other_clients_do() -> None:
    counted = {"name": "Relative Strength Index", "input": {"in_0": 21}}
    named = {"name": "RSI", "inputs": {"length": 21}}
    assert read_config({**PLAIN, "studies": [counted]}).config == read_config({**PLAIN, "studies": [named]}).config


@pytest.mark.parametrize(
    ("fields", "suggestion"),
    [
        ({"symbol": "AAPL"}, "Set symbol to NASDAQ:AAPL"),
        ({"width": "800"}, "Set width to 800"),
        ({"range": "2026-03-17/2026-03-03"}, "Exchange the two times"),
        ({"studies": [{"name": "RSI", "inputs": {"length": "21"}}]}, "Set length to 21 without quotation marks"),
        ({"drawings": [{"type": "Horizontal Line"}]}, "Add coordinates with price"),
    ],
)
def test_a_suggestion_keeps_what_was_meant(fields: dict[str, Any], suggestion: str) -> None:
    (problem,) = read_config({**PLAIN, **fields}).problems
    assert problem.suggestions == (suggestion,)


def test_the_contracts_words_for_an_invalid_symbol() -> None:
    assert problems_of(symbol="BTC") == {"symbol": "Invalid symbol format"}
    assert problems_of(symbol="binance:btcusdt") == {}


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"interval": "7m"}, "interval", "is not one of 1m"),
        ({"interval": None}, "interval", "required"),
        ({"range": "7 days"}, "range", "must be one of 1D"),
        ({"range": {"from": "2026-03-03"}}, "range", '"from" and "to"'),
        ({"range": "2026-03-17/2026-03-03"}, "range", "ends before it begins"),
        ({"theme": "blue"}, "theme", "is not one of light, dark"),
        ({"style": "candles"}, "style", "did you mean 'candle'"),
        ({"width": 399}, "width", "400 to 8192"),
        ({"width": 8000, "height": 2001}, "resolution", "at most 16,000,000 pixels, not 8000x2001"),
        ({"height": "tall"}, "height", "whole number"),
        ({"width": True}, "width", "whole number"),
        ({"timezone": "Mars/Olympus"}, "timezone", "no time zone"),
        ({"timezone": "tokyo"}, "timezone", "did you mean 'Asia/Tokyo'"),
        ({"shiftLeft": -1}, "shiftLeft", "0 to 500"),
        ({"watermark": "x" * 201}, "watermark", "at most 200"),
        ({"override": []}, "override", "must be an object"),
        ({"studies": {}}, "studies", "must be a list"),
        ({"studies": [{"name": "Nonsense"}]}, "studies[0].name", "no study"),
        ({"studies": [{"name": "RSI", "inputs": {"lenght": 3}}]}, "studies[0].inputs.lenght", "did you mean 'length'"),
        ({"studies": [{"name": "RSI", "inputs": {"length": 0}}]}, "studies[0].inputs.length", "1 to 500"),
        ({"studies": [{"name": "RSI", "inputs": {"length": 1.5}}]}, "studies[0].inputs.length", "whole number"),
        ({"drawings": [{"type": "Doodle"}]}, "drawings[0].type", "no drawing"),
        ({"drawings": [{"type": "Trend Line", "coordinates": {}}]}, "drawings[0].coordinates.startPrice", "needs"),
        (
            {"drawings": [{"type": "Horizontal Line", "coordinates": {"price": -1}}]},
            "drawings[0].coordinates.price",
            "positive",
        ),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], field: str, words: str) -> None:
    found = problems_of(**fields)
    assert words in found[field]


def test_minutes_and_months_differ_by_case() -> None:
    assert read_config({**PLAIN, "interval": "1m"}).config != read_config({**PLAIN, "interval": "1M"}).config
    days = read_config({**PLAIN, "interval": "1d"}).config
    assert days is not None
    assert days.interval == "1D"
    for spelled, interval in (("60m", "1h"), ("daily", "1D"), ("240", "4h"), ("1month", "1M")):
        found = read_config({**PLAIN, "interval": spelled}).config
        assert found is not None
        assert found.interval == interval


def test_an_unknown_field_is_a_warning_and_the_config_is_read() -> None:
    reading = read_config({**PLAIN, "colour": "red"})
    assert reading.config is not None
    assert [(each.field, each.severity) for each in reading.problems] == [("colour", "warning")]


def test_the_vendors_defaults_differ_from_the_contracts() -> None:
    vendor, contract = read_config({}, VENDOR).config, read_config(PLAIN, CONTRACT).config
    assert vendor is not None
    assert contract is not None
    assert (vendor.symbol, vendor.interval, vendor.width, vendor.height) == ("BINANCE:BTCUSDT", "1D", 800, 600)
    assert (contract.width, contract.height) == (1200, 675)


_KEYS = st.sampled_from(
    [
        *PLAIN,
        "range",
        "theme",
        "style",
        "width",
        "studies",
        "drawings",
        "override",
        "name",
        "inputs",
        "type",
        "coordinates",
    ]
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["RSI", "1h", "7D"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS | st.text(max_size=6), inner, max_size=5),
    max_leaves=20,
)


@given(_JSON, st.sampled_from([CONTRACT, VENDOR]))
@settings(max_examples=300, deadline=None)
def test_no_json_raises(raw: Any, form: Any) -> None:
    reading = read_config(raw, form)
    assert (reading.config is None) == any(each.severity == "error" for each in reading.problems)
    assert all(len(each.message) < 1500 for each in reading.problems)


def test_a_date_range_holds_its_last_day() -> None:
    from openbell.charts.config.ranges import bounds_of

    bounds = bounds_of("2026-03-03/2026-03-17", NOW)
    assert (bounds.start, bounds.end) == (datetime(2026, 3, 3, tzinfo=UTC), datetime(2026, 3, 18, tzinfo=UTC))


@pytest.mark.parametrize("name", ["studies", "drawings"])
def test_a_list_that_is_too_long_is_counted(name: str) -> None:
    assert problems_of(**{name: [{"type": "Horizontal Line"}] * 60}) == {name: f"60 {name}, and a config may have 50"}
    assert problems_of(**{name: "RSI"}) == {name: f"{name} must be a list of at most 50 {name}, not 'RSI'"}
