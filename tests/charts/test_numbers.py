"""Numbers on charts: as many digits as are needed to distinguish them, and the same format for a whole panel."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openbell.charts.look import Look
from openbell.charts.numbers import decimals_for, number, percent, price_format, short, value_format
from openbell.charts.scales import Scale, fit
from openbell.charts.scene import Box
from tests.charts.pictures import axis, chart_scene, hours, labels, rescaled

AREA = Box(0, 0, 100, 500)


def test_numbers_as_text() -> None:
    assert number(-1234.5, 2) == "−1,234.50"
    assert [short(v) for v in (0.5, 999, 1234, 5.6e6, -2e9, 3e12)] == [
        "0.50",
        "999",
        "1.23K",
        "5.60M",
        "−2.00B",
        "3.00T",
    ]
    assert [short(v) for v in (0.0, 0.0012, 999_999, 999.6)] == ["0.00", "0.0012", "1.00M", "1,000"]
    assert [percent(v) for v in (1.5, 0.0, -0.001, -2.0)] == ["+1.50%", "0.00%", "0.00%", "−2.00%"]


def test_a_zero_has_no_sign() -> None:
    assert number(-0.001, 2) == "0.00"
    assert number(-0.006, 2) == "−0.01"
    assert value_format(-1.0, 1.0, ()).text(-0.0001) == "0.00"


@pytest.mark.parametrize(
    ("prices", "decimals"),
    [
        ([1.5, 2.25], 2),
        ([0.00012345], 8),
        ([1.08432, 1.0812], 5),
        ([43251.5], 1),
        ([170000.0, 43251.0], 0),
        ([750000.25], 2),
        ([43251.123456], 2),
        ([1.234e-9, 1.3e-9], 12),
        ([0.0], 2),
        ([], 2),
    ],
)
def test_prices_have_the_decimals_that_they_are_quoted_with(prices: list[float], decimals: int) -> None:
    assert decimals_for(np.array(prices)) == decimals


@pytest.mark.parametrize(
    ("low", "high", "ticks", "texts"),
    [
        (0.0, 100.0, (20.0, 80.0, 100.0), ["20.00", "80.00", "100.00"]),
        (-1200.0, 800.0, (-1000.0, 0.0, 500.0), ["−1,000.00", "0.00", "500.00"]),
        (-0.002, 0.003, (-0.0025, 0.0, 0.0025), ["−0.00250", "0.00000", "0.00250"]),
        (-2.5e6, 1e6, (-2e6, 0.0, 5e5), ["−2.00M", "0.00", "0.50M"]),
        (1_000_000.0, 1_000_010.0, (1_000_000.0, 1_000_005.0), ["1,000,000.00", "1,000,005.00"]),
        (1e20, 3e20, (1e20, 2e20), ["1.00e+20", "2.00e+20"]),
    ],
)
def test_the_values_of_a_panel_have_the_same_format(
    low: float, high: float, ticks: tuple[float, ...], texts: list[str]
) -> None:
    number_format = value_format(low, high, ticks)
    assert [number_format.text(tick) for tick in ticks] == texts


def test_large_ticks_have_no_decimals_that_they_do_not_need() -> None:
    scene = chart_scene(Look(height=900), bars=rescaled(hours(), 170_000.0), entries=["sma"])
    texts = {label.text for label in axis(scene)[0] if not label.bold}
    assert {"160,000", "165,000"} <= texts
    assert not any("." in text for text in texts)
    assert all(re.fullmatch(r"1\d\d,\d{3}\.\d\d", label.text) for label in axis(scene)[0] if label.bold), "as quoted"
    assert price_format(2, (100_000.0, 100_000.5), None).tick(100_000.5) == "100,000.5"
    assert price_format(2, (260.0, 280.0), None).tick(280.0) == "280.00"


def test_close_ticks_get_more_decimals_than_the_prices() -> None:
    number_format = price_format(2, (100.0, 100.0025, 100.005), None)
    assert [number_format.text(v) for v in (100.0, 100.0025)] == ["100.0000", "100.0025"]


@pytest.mark.parametrize("factor", [1.08432, 1e-4, 1e-9])
def test_small_prices_are_readable_in_every_panel(factor: float) -> None:
    scene = chart_scene(bars=rescaled(hours(), factor), entries=["macd", "atr", "awesome", "rsi"])
    for panel in axis(scene):
        texts = [label.text for label in panel]
        assert len(set(texts)) == len(texts), "two labels of one panel read the same"
        assert not any(text.strip("0.") == "" and len(texts) == 1 for text in texts)
        assert not any(text.startswith("−") and not text.strip("−0.,KMBT") for text in texts)
    values = [label.text.strip() for label in labels(scene) if re.fullmatch(r"−?0\.0+", label.text.strip())]
    assert not values, "a value that is not zero reads as zero"


@pytest.mark.parametrize("entries", [["macd"], ["rsi"], ["obv"], ["cci"], ["force"]])
def test_all_ticks_of_a_panel_have_the_same_decimals(entries: list[str | dict[str, object]]) -> None:
    for panel in axis(chart_scene(Look(height=900), entries=entries)):
        decimals = {len(label.text.rstrip("KMBT%").partition(".")[2]) for label in panel if not label.bold}
        assert len(decimals) == 1, [label.text for label in panel]


class TestLog:
    def test_ticks_are_1_2_5_over_decades(self) -> None:
        ticks = Scale(0.08, 1200.0, AREA, "log").ticks(44.0)
        assert ticks == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])

    @pytest.mark.parametrize("ratio", [1.01, 1.5, 2.9, 3.1, 8, 30, 1e3, 1e6, 1e12])
    def test_there_are_at_least_three_labels_that_do_not_touch(self, ratio: float) -> None:
        bars = rescaled(hours(), 100.0)
        spread = (bars.high.max() / bars.low.min()).item()
        power = np.log(ratio) / np.log(spread)
        scene = chart_scene(Look(price_scale="log"), bars=rescaled(hours(), 100.0, float(power)), entries=[], count=960)
        ys = sorted(label.y for label in axis(scene)[0][:-1])
        assert len(ys) >= (3 if ratio < 3 else 8)
        assert min(np.diff(ys)) >= 18
        assert max(np.diff(ys)) < 130, "no large gaps"

    def test_a_log_scale_stays_logarithmic_with_an_overlay_below_zero(self) -> None:
        prices, overlay = np.array([1.0, 10.0]), np.array([-5.0, 8.0])
        scale = fit([prices], AREA, "log", [overlay])
        assert scale.kind == "log"
        assert scale.at(1.0) - scale.at(10.0) > 0.5 * AREA.height
        assert scale.at(-5.0) > AREA.bottom
        assert scale.y(overlay)[0] > AREA.bottom

    def test_prices_that_are_not_positive_get_a_linear_scale(self) -> None:
        assert fit([np.array([-1.0, 5.0])], AREA, "log").kind == "linear"
