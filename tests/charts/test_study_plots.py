"""Studies of chart configs as requests for indicators."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from openbell.charts.compose import compose
from openbell.charts.config.looks import look_of, unsupported
from openbell.charts.config.model import ConfigStudy
from openbell.charts.config.plots import has_volume, line_labels, requests_of, smoothed_adx, undrawn
from openbell.charts.scene import Band, Boxes, Stroke
from openbell.charts.studies.catalogue import all_studies
from openbell.charts.studies.study import Input, Study
from openbell.charts.themes import THEMES
from openbell.indicators.channels import Channels
from openbell.indicators.evaluation import PRICE_SOURCES, SMOOTHED, IndicatorChanges, evaluate
from openbell.indicators.registry import get
from openbell.indicators.spec import Setting
from openbell.market.bars import Values
from tests.charts.configs import config, scene_of, study
from tests.charts.pictures import hours, items, labels

BARS = hours()
STUDIES = list(all_studies().values())


def extremes(each: Input) -> list[Setting]:
    """Returns the values of an input that are furthest from each other."""
    if each.choices:
        return list(each.choices)
    if isinstance(each.default, bool):
        return [False, True]
    return [type(each.default)(end) for end in (each.low, each.high)]


def values(asked: ConfigStudy, count: int = 300) -> list[Channels]:
    """Returns the computed channels of each plot."""
    requests = [each.request for each in requests_of(config(studies=(asked,)))]
    return [each.channels for each in evaluate(BARS, count, requests, {}, None)]


def average(prices: Values, length: int) -> Values:
    """Returns simple averages; NaN before there are enough values."""
    found = [float(np.mean(prices[at - length + 1 : at + 1])) for at in range(length - 1, len(prices))]
    return np.concatenate((np.full(length - 1, np.nan), found))


TRANSFORMED = frozenset(
    {"source", "offset", "method", "smoothingLine", "smoothingLength", "useEMA", "centered", "smoothing", "volume"}
    | {"vaVolume"}
)
"""The inputs that no parameter of an indicator stands for."""


def is_drawn(each: Study) -> bool:
    return not undrawn(config(studies=(ConfigStudy(each, {}),)))


class TestCatalogue:
    def test_every_input_is_used_by_a_plot_or_a_transformation_or_has_one_value_only(self) -> None:
        for each in STUDIES:
            used = {name for plot in each.plots for name in plot.uses.values()} | TRANSFORMED
            unused = [entry for entry in each.inputs if entry.name not in used]
            assert all(set(extremes(entry)) == {entry.default} for entry in unused), each.title

    def test_every_value_of_an_input_gives_another_request(self) -> None:
        for each in filter(is_drawn, STUDIES):
            usual = [(plot.request, plot.value_area) for plot in requests_of(config(studies=(ConfigStudy(each, {}),)))]
            for entry in each.inputs:
                for value in set(extremes(entry)) - {entry.default}:
                    plots = requests_of(config(studies=(ConfigStudy(each, {entry.name: value}),)))
                    found = [(plot.request, plot.value_area) for plot in plots]
                    assert found != usual, (each.title, entry.name, value)

    def test_the_bounds_of_inputs_are_within_those_of_the_indicators(self) -> None:
        """`requests_of` raises if a setting is out of an indicator's bounds."""
        for each in STUDIES:
            for entry in each.inputs:
                for value in extremes(entry):
                    requests_of(config(studies=(ConfigStudy(each, {entry.name: value}),)))

    def test_plots_name_lines_that_exist(self) -> None:
        for each in filter(is_drawn, STUDIES):
            for plot in each.plots:
                assert set(plot.lines) <= set(line_labels(plot.indicator))

    def test_studies_with_any_inputs_can_be_drawn(self) -> None:
        chance = random.Random(5)
        drawn = [each for each in STUDIES if is_drawn(each)]
        for _ in range(12):
            asked = [
                ConfigStudy(
                    each,
                    {entry.name: chance.choice(extremes(entry)) for entry in each.inputs if chance.random() < 0.5},
                    force_overlay=chance.random() < 0.3,
                )
                for each in chance.sample(drawn, 4)
            ]
            assert scene_of(config(studies=tuple(asked)), 90).layers


class TestTransformations:
    @pytest.mark.parametrize("source", PRICE_SOURCES)
    def test_an_average_of_each_source(self, source: str) -> None:
        (found,) = values(study("MA", length=5, source=source))
        expected = {
            "close": BARS.close,
            "open": BARS.open,
            "high": BARS.high,
            "low": BARS.low,
            "hl2": (BARS.high + BARS.low) / 2,
            "hlc3": (BARS.high + BARS.low + BARS.close) / 3,
            "ohlc4": (BARS.open + BARS.high + BARS.low + BARS.close) / 4,
        }[source]
        np.testing.assert_allclose(found.lines[0].values, average(expected, 5)[-300:])

    @pytest.mark.parametrize("by", [7, -7])
    def test_an_offset_moves_lines(self, by: int) -> None:
        plain, moved = (values(study("MA", length=5, offset=each))[0].lines[0].values for each in (0, by))
        expected = plain[-by:] if by < 0 else plain[:-by]
        np.testing.assert_array_equal(moved[:-7] if by < 0 else moved[7:], expected)
        if by > 0:  # computed on bars before the first one shown
            assert np.isfinite(moved).all()
        else:
            assert np.isnan(moved[-7:]).all()

    def test_an_offset_moves_areas_signals_and_segments(self) -> None:
        bands = get("bbands").run(BARS)
        (fill,), (moved,) = bands.fills, IndicatorChanges(offset=3).after(bands, len(BARS)).fills
        np.testing.assert_array_equal(moved.upper[3:], fill.upper[:-3])
        signals = IndicatorChanges(offset=3).after(get("rsi").run(BARS), len(BARS)).signals
        assert [each.index - 3 for each in signals] == [each.index for each in get("rsi").run(BARS).signals][
            : len(signals)
        ]
        assert max(each.index for each in signals) < len(BARS)
        divergences = get("cipher_b").run(BARS).divlines
        later = IndicatorChanges(offset=3).after(get("cipher_b").run(BARS), len(BARS)).divlines
        assert divergences
        assert {(each.x1 + 3, each.x2 + 3) for each in divergences if each.x2 + 3 < len(BARS)} == {
            (each.x1, each.x2) for each in later
        }

    def test_a_smoothing_line_is_drawn_only_if_asked_for(self) -> None:
        assert [line.label for line in values(study("RSI"))[0].lines] == ["RSI"]
        (found,) = values(study("RSI", smoothingLength=5), len(BARS))
        assert [line.label for line in found.lines] == ["RSI", SMOOTHED]
        rsi, smooth = (line.values for line in found.lines)
        np.testing.assert_allclose(smooth[18:], average(rsi[14:], 5)[4:])
        lines = {kind: values(study("RSI", smoothingLine=kind))[0].lines[1].values for kind in ("SMA", "EMA", "WMA")}
        assert lines["SMA"][-1] != lines["EMA"][-1] != lines["WMA"][-1]

    def test_several_averages_of_each_method(self) -> None:
        names = {"Simple": "sma", "Exponential": "ema_line", "Weighted": "wma"}
        for method, name in names.items():
            plots = requests_of(config(studies=(study("MADouble", method=method, firstPeriods=3),)))
            assert [(each.request.indicator.name, each.request.settings["length"]) for each in plots] == [
                (name, 3),
                (name, 21),
            ]
            assert [each.study for each in plots] == [0, 0]

    def test_keltner_channels_around_a_simple_average(self) -> None:
        (found,) = values(study("KeltnerChannels", useEMA=False, length=10))
        (usual,) = values(study("KeltnerChannels", length=10))
        np.testing.assert_allclose(found.lines[1].values, average(BARS.close, 10)[-300:])
        np.testing.assert_allclose(
            found.lines[0].values - found.lines[2].values, usual.lines[0].values - usual.lines[2].values
        )

    def test_a_centred_oscillator_compares_with_later_closes(self) -> None:
        (found,) = values(study("DetrendedPriceOscillator", centered=True, length=10))
        line = found.lines[0].values
        expected = BARS.close[-300:-6] - average(BARS.close, 10)[-294:]
        np.testing.assert_allclose(line[:-6], expected)
        assert np.isnan(line[-6:]).all()

    def test_directional_movement_with_another_smoothing(self) -> None:
        (found,) = values(study("DirectionalMovement", smoothing=5))
        (usual,) = values(study("DirectionalMovement"))
        assert [line.label for line in found.lines] == ["ADX", "+DI", "-DI"]
        np.testing.assert_array_equal(found.lines[1].values, usual.lines[1].values)
        assert (found.lines[0].values != usual.lines[0].values).all()
        same = smoothed_adx().run(BARS, length=14, smoothing=14).lines[0].values
        np.testing.assert_allclose(same, get("adx").run(BARS).lines[0].values)

    def test_only_the_lines_of_the_study_are_kept(self) -> None:
        (adx,), (ppo,) = values(study("ADX")), values(study("PriceOscillator"))
        assert [line.label for line in adx.lines] == ["ADX"]
        assert ([line.label for line in ppo.lines], ppo.histogram) == (["PPO"], ())

    def test_a_profile_is_split_unless_the_total_is_asked_for(self) -> None:
        plots = requests_of(config(studies=(study("vpvr"), study("vpvr", volume="Total", vaVolume=50.0))))
        assert [each.request.settings["split_up_down"] for each in plots] == [True, False]
        assert [each.value_area for each in plots] == [0.7, 0.5]

    def test_rows_outside_the_value_area_are_paler(self) -> None:
        asked = config(theme="light", studies=(study("vpvr", volume="Total", vaVolume=60.0),))
        inner, outer = (
            next(
                item
                for item in items(scene_of(asked), Boxes)
                if item.color == (*THEMES["light"].hues["cyan"][:3], alpha)
            )
            for alpha in (102, 46)
        )
        assert len(inner.left) + len(outer.left) == 24
        inside, beyond = (float((each.right - each.left).sum()) for each in (inner, outer))
        assert 0.6 <= inside / (inside + beyond) < 0.75
        assert (inner.right - inner.left).max() > (outer.right - outer.left).max()

    def test_the_warm_up_includes_the_smoothing_and_the_offset(self) -> None:
        (plot,) = requests_of(config(studies=(study("MA", length=5, smoothingLength=7, offset=3),)))
        assert plot.request.warmup == 5 + 7 + 3

    def test_keys_are_unique_and_sources_are_in_the_legend(self) -> None:
        plots = requests_of(config(studies=(study("MA", source="hl2"), study("MA"), study("MACross"))))
        assert [each.request.key for each in plots] == ["sma", "sma_2", "sma_3", "sma_4"]
        assert [each.request.label for each in plots][:2] == ["SMA(9) hl2", "SMA(9)"]


class TestPanels:
    def test_a_study_forced_over_the_price_does_not_change_the_price_scale(self) -> None:
        plain, forced, below = (
            scene_of(config(studies=studies)) for studies in ((), (study("RSI", over=True),), (study("RSI"),))
        )
        ticks = [layer for layer in plain.layers if layer.clip == forced.layers[0].clip]
        assert ticks
        assert len({layer.clip.top for layer in forced.layers}) == 1
        assert len({layer.clip.top for layer in below.layers}) == 2
        assert sum(len(item.x) == 120 for item in items(forced, Stroke)) == 1

    def test_plots_of_one_study_share_a_panel(self) -> None:
        asked = config(studies=(study("RSI"), study("RSI", length=21)))
        one, two = requests_of(asked)
        computed = evaluate(BARS, 120, [one.request, two.request], {}, None)
        for plots, count in (((one, two), 2), ((one, replace(two, study=one.study)), 1)):
            scene = compose(BARS.tail(120), computed, look_of(asked), "", plots=plots)
            assert len({layer.clip.top for layer in scene.layers}) == 1 + count
            lines = [item for item in items(scene, Stroke) if len(item.x) == 120]
            assert len({line.color for line in lines}) == 3 - count
            assert any("RSI(21)" in label.text for label in labels(scene))

    def test_volume_is_drawn_only_if_the_config_has_it(self) -> None:
        assert not has_volume(config(studies=(study("RSI"),)))
        with_volume, without = (scene_of(config(studies=studies)).text() for studies in ((study("Volume"),), ()))
        assert len(with_volume) > len(without)


class TestOverrides:
    def test_lines_have_the_colours_and_widths_of_the_overrides(self) -> None:
        override = {"Upper.color": "rgb(1, 2, 3)", "Median.linewidth": 4, "Lower.visible": False}
        scene = scene_of(config(studies=(study("BollingerBands", override),)))
        lines = [item for item in items(scene, Stroke) if len(item.x) == 120]
        assert [(line.color[:3], line.width) for line in lines] == [((1, 2, 3), 1.5), ((105, 145, 255), 4.0)]
        assert [band.color for band in items(scene, Band)] == [(1, 2, 3, 26)]
        assert unsupported(config(studies=(study("BollingerBands", override),))) == []

    def test_plot_is_the_first_line(self) -> None:
        scene = scene_of(config(studies=(study("RSI", {"Plot.color": "#010203"}),)))
        assert [item.color for item in items(scene, Stroke) if len(item.x) == 120] == [(1, 2, 3, 255)]
        scene = scene_of(config(studies=(study("MADouble", {"Plot2.color": "#010203"}),)))
        colors = [item.color for item in items(scene, Stroke) if len(item.x) == 120]
        assert colors[1] == (1, 2, 3, 255) != colors[0]

    def test_bars_of_a_histogram_have_the_colours_of_the_overrides(self) -> None:
        override = {f"Histogram.color.{at}": f"#0000{at + 1:02x}" for at in range(4)}
        text = scene_of(config(studies=(study("MACD", override),))).text()
        assert all(f"boxes #0000{at + 1:02x}ff" in text for at in range(4))

    def test_what_has_no_effect_is_reported(self) -> None:
        override = {"Plot.plottype": "line", "Nobody.color": "#fff", "Plot.color": "blue", "Histogram.color.0": "#fff"}
        assert unsupported(config(studies=(study("Volume"), study("RSI", override)))) == [
            "studies[1].override.Plot.plottype is not supported",
            "studies[1].override.Nobody.color is not supported",
            "studies[1].override.Plot.color cannot be 'blue'",
            "studies[1].override.Histogram.color.0 is not supported",
        ]

    def test_studies_without_an_indicator_are_named_once(self) -> None:
        none = Study("Nothing", "Nothing at all", STUDIES[0].category)
        asked = config(studies=(study("RSI"), ConfigStudy(none, {}), ConfigStudy(none, {}), study("Volume")))
        assert undrawn(asked) == ["Nothing at all"]
        assert len(requests_of(asked)) == 1
