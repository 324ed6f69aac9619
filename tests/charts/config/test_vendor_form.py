"""The vendor's form of a chart config: what is sent has one meaning, and reading it back gives the same config."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.charts.config.choices import FORMATS, INTERVALS, PRESETS, SCALES, SESSIONS, STYLES, THEMES
from openbell.charts.config.model import (
    KINDS,
    TYPES,
    ChartConfig,
    ConfigAnnotation,
    ConfigStudy,
    Coordinate,
    Watermark,
    kind_of,
)
from openbell.charts.config.ranges import bounds_of, read_range
from openbell.charts.config.vendor_form import settled, vendor_body
from openbell.charts.studies.catalogue import all_studies, find
from openbell.charts.studies.study import Input

NOW = datetime(2026, 3, 18, 15, 4, 5, 678_901, tzinfo=UTC)
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
OVERRIDES = st.dictionaries(
    st.sampled_from(["Plot.color", "Plot.linewidth", "lineColor"]),
    st.sampled_from(["rgb(8,153,129)", 2, True]),
    max_size=2,
)
RANGES = st.one_of(
    st.none(),
    st.sampled_from(
        [*PRESETS, "7D", "4H", "18M", "30MIN", "2W", "99999Y", "2026-03-03/2026-03-17", "2026-03-03/2026-03-03"]
    ),
    st.tuples(TIMES, TIMES)
    .filter(lambda pair: pair[0] < pair[1])
    .map(lambda pair: f"{pair[0].isoformat()}/{pair[1].isoformat()}"),
)


def values_of(wanted: Input) -> st.SearchStrategy[Any]:
    if isinstance(wanted.default, bool):
        return st.booleans()
    if isinstance(wanted.default, str):
        return st.sampled_from(wanted.choices)
    if isinstance(wanted.default, int):
        return st.integers(int(wanted.low), int(wanted.high))
    return st.floats(wanted.low, wanted.high)


@st.composite
def studies(draw: st.DrawFn) -> ConfigStudy:
    study = draw(st.sampled_from(sorted(all_studies().values(), key=lambda each: each.name)))
    chosen = [each for each in study.inputs if draw(st.booleans())]
    return ConfigStudy(
        study, {each.name: draw(values_of(each)) for each in chosen}, draw(OVERRIDES), force_overlay=draw(st.booleans())
    )


@st.composite
def drawings(draw: st.DrawFn) -> ConfigAnnotation:
    kind = draw(st.sampled_from(sorted(KINDS.values(), key=lambda each: each.name)))
    names = [*kind.required, *(each for each in kind.optional if draw(st.booleans()))]
    return ConfigAnnotation(
        kind,
        {each: draw(st.floats(0.01, 1e6)) for each in names if TYPES[each] is Coordinate.PRICE},
        {each: draw(TIMES) for each in names if TYPES[each] is Coordinate.TIME},
        draw(st.text(min_size=1, max_size=20)) if "text" in names else "",
        draw(OVERRIDES),
        on_top=draw(st.booleans()),
    )


CONFIGS = st.builds(
    ChartConfig,
    symbol=st.sampled_from(["BINANCE:BTCUSDT", "NASDAQ:AAPL"]),
    interval=st.sampled_from(INTERVALS),
    range=RANGES,
    theme=st.sampled_from(THEMES),
    style=st.sampled_from(STYLES),
    width=st.integers(400, 2048),
    height=st.integers(300, 1920),
    scale=st.sampled_from(SCALES),
    session=st.sampled_from(SESSIONS),
    format=st.sampled_from(FORMATS),
    shift_left=st.integers(0, 5),
    shift_right=st.integers(0, 5),
    watermark=st.none() | st.builds(Watermark, text=st.text(min_size=1, max_size=9).filter(str.strip)),
    override=st.just({"showLegend": False, "priceRange": {"from": 1, "to": 2}}) | st.just({}),
    studies=st.lists(studies(), max_size=4).map(tuple),
    drawings=st.lists(drawings(), max_size=3).map(tuple),
)


def read(body: dict[str, Any]) -> ChartConfig:
    """What a server of the vendor's API reads from a body."""
    mark = (
        Watermark(body["watermark"], body["watermarkSize"], body["watermarkOpacity"]) if "watermark" in body else None
    )
    plain = ("symbol", "interval", "theme", "style", "width", "height", "scale", "session", "timezone", "format")
    return ChartConfig(
        **{name: body[name] for name in plain},
        range=read_range(body["range"]) if "range" in body else None,
        shift_left=body.get("shiftLeft", 0),
        shift_right=body.get("shiftRight", 0),
        watermark=mark,
        override=body.get("override", {}),
        studies=tuple(map(read_study, body.get("studies", []))),
        drawings=tuple(map(read_drawing, body.get("drawings", []))),
    )


def read_study(body: dict[str, Any]) -> ConfigStudy:
    study = find(body["name"])
    assert study.title == body["name"], "the vendor knows titles only"
    by_key = {each.key: each for each in study.inputs}
    inputs = {by_key[key].name: by_key[key].check(value) for key, value in body.get("input", {}).items()}
    return ConfigStudy(study, inputs, body.get("override", {}), force_overlay=body.get("forceOverlay", False))


def read_drawing(body: dict[str, Any]) -> ConfigAnnotation:
    kind, given = kind_of(body["name"]), body["input"]
    assert kind is not None and {"top", "bottom"} >= {body["zOrder"]}
    return ConfigAnnotation(
        kind,
        {name: value for name, value in given.items() if TYPES[name] is Coordinate.PRICE},
        {name: datetime.fromisoformat(value) for name, value in given.items() if TYPES[name] is Coordinate.TIME},
        given.get("text", ""),
        body.get("override", {}),
        on_top=body["zOrder"] == "top",
    )


@settings(max_examples=150, deadline=None)
@given(CONFIGS)
def test_what_is_sent_is_read_as_the_same_config(config: ChartConfig) -> None:
    body = json.loads(json.dumps(vendor_body(config, NOW), allow_nan=False))

    assert read(body) == settled(config, NOW)
    assert vendor_body(read(body), NOW + timedelta(days=9)) == body, "a settled config does not depend on the time"


@settings(max_examples=100, deadline=None)
@given(CONFIGS)
def test_settling_keeps_everything_that_the_config_has(config: ChartConfig) -> None:
    made = settled(config, NOW)

    for before, after in zip(config.studies, made.studies, strict=True):
        assert {**before.inputs}.items() <= {**after.inputs}.items()
        assert all(before.value(each.name) == after.value(each.name) for each in before.study.inputs)
    for old, new in zip(config.drawings, made.drawings, strict=True):
        assert (old.kind, old.prices, old.text, old.override) == (new.kind, new.prices, new.text, new.override)
        assert set(old.times) <= set(new.times)


def test_every_input_of_a_study_has_a_key_of_its_own() -> None:
    for study in all_studies().values():
        keys = [each.key for each in study.inputs]
        assert len(set(keys)) == len(keys) and all(keys), study.name
        assert find(study.title) is study


def test_names_and_inputs_are_the_vendors() -> None:
    config = ChartConfig(
        "BINANCE:BTCUSDT",
        studies=(
            ConfigStudy(find("BollingerBands"), {"stdDev": 2.5}),
            ConfigStudy(find("RSI"), {}),
            ConfigStudy(find("MACD"), {"fastLength": 8}, {"MACD.color": "rgb(1,2,3)"}, force_overlay=True),
        ),
    )
    assert vendor_body(config, NOW)["studies"] == [
        {"name": "Bollinger Bands", "input": {"in_0": 20, "in_2": 2.5}},
        {"name": "Relative Strength Index", "input": {"length": 14}},
        {
            "name": "MACD",
            "forceOverlay": True,
            "input": {"in_0": 8, "in_1": 26, "in_2": 9},
            "override": {"MACD.color": "rgb(1,2,3)"},
        },
    ]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        *((preset, preset) for preset in PRESETS),
        ("7D", {"from": "2026-03-11T15:04:05.678Z", "to": "2026-03-18T15:04:05.678Z"}),
        ("2026-03-03/2026-03-17", {"from": "2026-03-03T00:00:00.000Z", "to": "2026-03-17T23:59:59.999Z"}),
        ("2026-03-03/2026-03-03", {"from": "2026-03-03T00:00:00.000Z", "to": "2026-03-03T23:59:59.999Z"}),
        ("2026-03-03/2026-03-17T12:00:00Z", {"from": "2026-03-03T00:00:00.000Z", "to": "2026-03-17T12:00:00.000Z"}),
        (
            "2026-03-03T01:00:00+02:00/2026-03-17T12:00:00.5+01:00",
            {"from": "2026-03-02T23:00:00.000Z", "to": "2026-03-17T11:00:00.500Z"},
        ),
        (
            "2026-03-03T00:00:00.000001Z/2026-03-03T00:00:00.000002Z",
            {"from": "2026-03-03T00:00:00.000Z", "to": "2026-03-03T00:00:00.001Z"},
        ),
    ],
)
def test_a_range_that_the_vendor_does_not_know_is_sent_as_two_times(written: str, sent: object) -> None:
    assert vendor_body(ChartConfig("BINANCE:BTCUSDT", range=read_range(written)), NOW)["range"] == sent


def test_format_is_always_sent() -> None:
    assert vendor_body(ChartConfig("BINANCE:BTCUSDT"), NOW)["format"] == "png"
    assert vendor_body(ChartConfig("BINANCE:BTCUSDT", format="jpeg"), NOW)["format"] == "jpeg"


@pytest.mark.parametrize("written", ["7D", "2026-03-03/2026-03-17", "YTD", "1M", "ALL", None])
def test_a_position_without_a_start_begins_at_three_quarters(written: str | None) -> None:
    prices = {"entryPrice": 60_000.0, "targetPrice": 66_000.0, "stopPrice": 58_000.0}
    config = ChartConfig(
        "BINANCE:BTCUSDT", "1h", written, drawings=(ConfigAnnotation(KINDS["Long Position"], prices, {}),)
    )

    (sent,) = vendor_body(config, NOW)["drawings"]
    start = datetime.fromisoformat(sent["input"].pop("startDatetime"))

    assert sent == {"name": "Long Position", "input": prices, "zOrder": "top"}
    bounds = bounds_of(written or "ALL", NOW)
    if bounds.start is not None:
        assert abs(start - (bounds.start + (bounds.end - bounds.start) * 3 / 4)) < timedelta(milliseconds=2)
    else:
        assert timedelta(hours=29) < NOW - start < timedelta(hours=31), "a quarter of about 120 bars"


def test_a_position_never_begins_after_its_end() -> None:
    prices = {"entryPrice": 60_000.0, "targetPrice": 66_000.0, "stopPrice": 58_000.0}
    end = NOW - timedelta(days=6)
    drawing = ConfigAnnotation(KINDS["Short Position"], prices, {"endDatetime": end})
    (made,) = settled(ChartConfig("BINANCE:BTCUSDT", "1h", "7D", drawings=(drawing,)), NOW).drawings
    assert made.times["startDatetime"] < made.times["endDatetime"]


def test_the_body_shares_nothing_with_the_config() -> None:
    config = ChartConfig("BINANCE:BTCUSDT", override={"style": {"candleStyle.upColor": "rgb(8,153,129)"}})
    vendor_body(config, NOW)["override"]["style"].clear()
    assert config.override == {"style": {"candleStyle.upColor": "rgb(8,153,129)"}}
