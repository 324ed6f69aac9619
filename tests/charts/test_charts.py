"""Scenes, files and numbers of charts."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from openbell.charts.choices import STYLES
from openbell.charts.look import Look
from openbell.charts.payload import series, summary
from openbell.charts.picture import jpeg, picture, png, rgb
from openbell.charts.raster import render
from openbell.charts.scales import nice_ticks
from openbell.charts.scene import Boxes, Scene, Stroke
from openbell.charts.svg import svg
from openbell.charts.time_axis import time_ticks
from openbell.indicators.evaluation import parse_requests
from openbell.market.errors import InvalidParameter
from tests.charts.pictures import FIXTURE, chart_scene, computed, extent, hours, items, labels

SIZES = [(800, 600), (1200, 675), (1920, 1600), (400, 300)]


@pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL"])
@pytest.mark.parametrize("size", SIZES)
class TestLayout:
    def test_no_axis_label_is_cut_or_overlaps_another(self, size: tuple[int, int], symbol: str) -> None:
        scene = chart_scene(Look(width=size[0], height=size[1]), symbol)
        plot = max(layer.clip.right for layer in scene.layers if layer.clip.right < scene.width)
        bottom = max(layer.clip.bottom for layer in scene.layers if layer.clip.bottom < scene.height)
        axis = [label for label in labels(scene) if label.x > plot or label.y > bottom]
        assert len(axis) > 5
        for label in axis:
            left, top, right, low = extent(label)
            assert left >= 0
            assert top >= 0
            assert right <= scene.width, label
            assert low <= scene.height, label
        for one, two in combinations([extent(label) for label in axis], 2):
            apart = one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]
            assert apart, (one, two)

    def test_every_bar_has_its_candle(self, size: tuple[int, int], symbol: str) -> None:
        count = 120
        text = chart_scene(Look(width=size[0], height=size[1], volume=False), symbol, count, []).text()
        bodies = [line for line in text.splitlines() if line.startswith(("  boxes #0899", "  boxes #f236"))]
        drawn = sum(line.split("left=")[1].split(" ")[0].count(",") + 1 for line in bodies if "left= " not in line)
        assert drawn >= 2 * count


@pytest.mark.parametrize("style", STYLES)
def test_every_style_differs_from_candles(style: str) -> None:
    plain = render(chart_scene(Look(style="candles"), entries=[]))
    other = render(chart_scene(Look(style=style), entries=[]))
    assert style == "candles" or (plain != other).mean() > 0.002


def test_simulated_data_has_a_badge_and_real_data_has_none() -> None:
    assert sum(label.text == "SIMULATED" for label in labels(chart_scene())) == 2
    assert not any(label.text == "SIMULATED" for label in labels(chart_scene(badge="")))


def test_a_profile_has_the_requested_opacity() -> None:
    def opacity(**asked: object) -> set[int]:
        scene = chart_scene(entries=[{"name": "vpvr", **asked}], badge="")
        return {item.color[3] for item in items(scene, Boxes) if len(item.left) > 1 and item.color[3] != 255}

    assert opacity() == {102, 46}, "inside and outside the value area"
    assert opacity(opacity=0.2) == {51, 23}


class TestFiles:
    def test_a_reused_canvas_shows_nothing_of_the_previous_picture(self) -> None:
        large, small, light = chart_scene(), chart_scene(Look(width=400, height=300)), chart_scene(Look(theme="light"))
        expected = [png(render(scene)) for scene in (large, small, light)]
        for order in ((0, 1, 2), (2, 0, 0), (1, 1, 2)):
            scenes = (large, small, light)
            assert [picture(scenes[each]) for each in order] == [expected[each] for each in order]

    def test_a_png_holds_the_drawn_pixels(self) -> None:
        pixels = render(chart_scene())
        data = png(pixels)
        shown = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        assert shown.shape == (675, 1200, 3)
        assert np.abs(shown - rgb(pixels).astype(int)).mean() < 0.5
        assert len(data) <= 90_000

    @given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1), st.integers(1, 2000))
    @settings(deadline=None, max_examples=30)
    def test_any_pixels_make_a_png(self, width: int, height: int, seed: int, colors: int) -> None:
        chance = np.random.default_rng(seed)
        palette = chance.integers(0, 1 << 24, colors, dtype=np.uint32)
        pixels = palette[chance.integers(0, colors, (height, width))]
        shown = np.asarray(Image.open(io.BytesIO(png(pixels))).convert("RGB"))
        assert shown.shape == (height, width, 3)
        if colors <= 8:
            assert np.abs(shown.astype(int) - rgb(pixels).astype(int)).max() <= 8

    def test_a_picture_with_more_runs_than_are_kept_makes_a_png(self) -> None:
        palette = np.arange(8, dtype=np.uint32) * 0x1F1F1F
        pixels = palette[np.random.default_rng(3).integers(0, 8, (800, 900))]
        shown = np.asarray(Image.open(io.BytesIO(png(pixels))).convert("RGB"))
        assert (shown == rgb(pixels)).all()

    def test_many_tall_columns_are_drawn_completely(self) -> None:
        scene = Scene(400, 4000, (0, 0, 0, 255))
        left, top = np.arange(40.0) * 10, np.arange(40.0) * 7
        scene.layer().items.append(Boxes(left, top, left + 3, np.full(40, 3990.0), (255, 255, 255, 255)))
        lit = rgb(render(scene))[:, :, 0] == 255
        assert lit.sum() == 3 * (3990 * 40 - top.sum())
        for x, y in zip(left.astype(int).tolist(), top.astype(int).tolist(), strict=True):
            assert lit[y:3990, x : x + 3].all()

    def test_a_jpeg_can_be_opened(self) -> None:
        assert Image.open(io.BytesIO(jpeg(render(chart_scene())))).size == (1200, 675)

    def test_an_svg_holds_the_same_labels(self) -> None:
        scene = chart_scene()
        root = ET.fromstring(svg(scene))
        texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        assert texts == [label.text for label in labels(scene)]

    def test_an_svg_has_the_requested_size(self) -> None:
        root = ET.fromstring(svg(chart_scene(), 2.0))
        assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("2400", "1350", "0 0 1200 675")

    @pytest.mark.parametrize("scale", [1.0, 2.0])
    def test_the_scale_is_in_device_pixels(self, scale: float) -> None:
        assert render(chart_scene(Look(scale=scale)), scale).shape == (round(675 * scale), round(1200 * scale))


class TestNumbers:
    def test_the_series_is_aligned_with_the_bars(self) -> None:
        bars = hours().tail(200)
        shape = series("BTCUSD", "1h", bars, computed(hours(), FIXTURE, 200))
        assert (shape["symbol"], shape["interval"]) == ("BTCUSD", "1h")
        assert [bar["t"] for bar in shape["bars"]] == bars.time.tolist()
        assert set(shape["indicators"]) == {"bbands", "ema_line", "ema_line_2", "ema_line_3", "rsi", "macd"}
        for indicator in shape["indicators"].values():
            for channel in (*indicator.get("lines", []), *indicator.get("histogram", [])):
                assert len(channel["values"]) == 200
            for signal in indicator.get("signals", []):
                assert signal["t"] == shape["bars"][signal["x"]]["t"]

    def test_values_before_warm_up_are_null(self) -> None:
        bars = hours().tail(30)
        shape = series("BTCUSD", "1h", bars, computed(bars, ["rsi"], 30))
        values = shape["indicators"]["rsi"]["lines"][0]["values"]
        assert values[:14] == [None] * 14
        assert all(value is not None for value in values[14:])

    def test_channels_that_an_indicator_lacks_are_absent(self) -> None:
        bars = hours().tail(100)
        shape = series("X", "1h", bars, computed(bars, ["ema_line", "bbands"], 100))
        assert set(shape["indicators"]["ema_line"]) == {"label", "is_overlay", "lines"}
        assert set(shape["indicators"]["bbands"]) == {"label", "is_overlay", "lines", "fills"}

    def test_the_summary_is_the_end_of_the_series(self) -> None:
        bars = hours().tail(200)
        entries = computed(hours(), FIXTURE, 200)
        whole, short_form = series("X", "1h", bars, entries), summary("X", "1h", bars, entries, bars)
        for key, indicator in short_form["indicators"].items():
            for line, values in zip(indicator["lines"], whole["indicators"][key]["lines"], strict=True):
                assert line["last_value"] == values["values"][-1]
        assert short_form["price"]["bars"] == 200
        assert short_form["price"]["last"]["close"] == whole["bars"][-1]["c"]
        assert short_form["price"]["range"]["high"] == max(bar["h"] for bar in whole["bars"])


class TestRequests:
    def test_repeated_indicators_have_different_keys(self) -> None:
        wanted = parse_requests(["rsi", {"name": "rsi", "length": 21}, "rsi"])
        assert [each.key for each in wanted] == ["rsi", "rsi_2", "rsi_3"]
        assert [each.label for each in wanted] == ["RSI(14)", "RSI(21)", "RSI(14)"]

    @pytest.mark.parametrize(
        ("entries", "words"),
        [
            (["rsii"], "did you mean 'rsi'"),
            (["VPVRR"], "did you mean 'vpvr'"),
            ([{"name": "rsi", "lenght": 5}], "did you mean 'length'"),
            ([{"name": "vpvr", "side": "LEFTT"}], "did you mean 'left'"),
            ([{"name": "vpvr", "side": 3}], "side must be one of right, left, not 3"),
            ([{"name": "rsi", "length": 0}], "between"),
            ([{"length": 5}], "an indicator is a name"),
            (["rsi"] * 25, "at most 24"),
        ],
    )
    def test_bad_indicators_are_refused(self, entries: list[str | dict[str, object]], words: str) -> None:
        with pytest.raises(InvalidParameter, match=words):
            parse_requests(entries)

    @pytest.mark.parametrize(
        "look",
        [
            {"width": 199},
            {"height": 8193},
            {"width": 4097, "height": 200, "scale": 2.0},
            {"width": 4001, "height": 4000},
            {"width": 2400, "height": 1668, "scale": 2.0},
            {"style": "candle"},
            {"theme": "x"},
            {"scale": 0.1},
            {"width": 399, "scale": 0.5},
            {"height": 240, "scale": 0.8},
        ],
    )
    def test_bad_looks_are_refused(self, look: dict[str, object]) -> None:
        with pytest.raises(InvalidParameter):
            Look(**look)  # type: ignore[arg-type]

    def test_a_picture_has_up_to_16_million_pixels(self) -> None:
        Look(width=2400, height=1350, scale=2.0)
        Look(width=4000, height=4000)
        Look(width=8192, height=200)
        with pytest.raises(
            InvalidParameter, match="at most 16,000,000 pixels, scale included, not 2400×1668 × scale 2"
        ):
            Look(width=2400, height=1668, scale=2.0)

    def test_names_in_upper_case_get_a_suggestion(self) -> None:
        with pytest.raises(InvalidParameter, match="did you mean 'candles'"):
            Look(style="CANDLES")


class TestScales:
    @given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.integers(2, 20))
    def test_ticks_are_inside_the_range_and_not_too_many(self, low: float, span: float, most: int) -> None:
        span = max(span, abs(low) * 1e-9)  # a smaller span is below the precision of a float
        ticks = nice_ticks(low, low + span, most)
        assert len(ticks) <= most + 1
        assert all(low - span * 1e-6 <= tick <= low + span * (1 + 1e-6) for tick in ticks)

    def test_time_labels_show_the_starts_of_days_and_months(self) -> None:
        ticks = time_ticks(hours("BTC/USD").tail(500), 10.0)
        assert any(tick.text == "Nov" and tick.major for tick in ticks)
        assert all(later.index - earlier.index >= 9 for earlier, later in pairwise(ticks))


class TestPixels:
    def stroke(self, x: list[float], y: list[float], width: float) -> np.ndarray:
        scene = Scene(40, 40, (0, 0, 0, 255))
        scene.layer().items.append(Stroke(np.array(x), np.array(y), (255, 255, 255, 255), width))
        return rgb(render(scene))[:, :, 0].astype(float) / 255

    def test_a_flat_line_covers_its_width(self) -> None:
        assert self.stroke([0, 40], [20, 20], 2.0).sum() == pytest.approx(80, rel=0.01)
        assert self.stroke([0, 40], [20.25, 20.25], 1.0).sum() == pytest.approx(40, rel=0.02)

    def test_a_sloped_line_is_as_thick_as_a_flat_one(self) -> None:
        ink = self.stroke([0, 40], [0, 40], 2.0).sum()
        assert ink == pytest.approx(40 * 2**0.5 * 2, rel=0.05)

    def test_a_line_has_a_gap_at_nan(self) -> None:
        drawn = self.stroke([0, 10, 20, 30, 40], [5, 5, float("nan"), 5, 5], 2.0)
        assert drawn[:, 12:28].sum() == 0
        assert drawn[:, :9].sum() > 10
