"""Layout: at every size, nothing leaves its panel and nothing covers anything else."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.panels import ChartPicture, Corner, heights, indicator_panel, price_panel
from openbell.charts.scene import Box, Boxes, Dot, Stroke
from openbell.charts.themes import THEMES
from openbell.charts.time_axis import time_ticks
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from tests.charts.pictures import axis, chart_scene, computed, edges, extent, hours, items, labels
from tests.market.walks import FOREX, at, walk

OVERLAYS: list[str | dict[str, object]] = ["bbands", "keltner", "donchian", "vwap_bands", "ema_stack", "sma", "wma"]
PANELS: list[str | dict[str, object]] = ["rsi", "macd", "stoch", "adx", "cci", "obv", "atr", "awesome"]
SIZES = [(200, 200), (300, 200), (400, 300), (640, 240), (1200, 675), (200, 1000)]


def apart(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[2] <= two[0] + 0.5 or two[2] <= one[0] + 0.5 or one[3] <= two[1] + 0.5 or two[3] <= one[1] + 0.5


@pytest.mark.parametrize("height", [3.0, 6.0, 12.0, 20.0, 25.0, 30.0, 60.0, 200.0])
def test_a_panel_is_never_upside_down_or_flat(height: float) -> None:
    for each in computed(hours(), ["rsi", "macd"], 100):
        panel = indicator_panel(Box(0, 10, 100, 10 + height), each)
        values = each.channels.lines[0].values
        top, bottom = panel.scale.at(float(np.nanmax(values))), panel.scale.at(float(np.nanmin(values)))
        assert 10 <= top < bottom <= 10 + height
        assert bottom - top > 0.1 * height


@pytest.mark.parametrize("height", [30.0, 45.0, 80.0, 300.0, 900.0])
def test_ticks_stay_within_a_declared_range(height: float) -> None:
    (rsi,) = computed(hours(), ["rsi"], 100)
    assert all(0 <= tick <= 100 for tick in indicator_panel(Box(0, 0, 100, height), rsi).ticks)


@pytest.mark.parametrize("count", [0, 1, 3, 8, 24])
def test_the_price_keeps_more_than_a_third(count: int) -> None:
    (top, bottom), *others = heights(400.0, count)
    assert bottom - top >= 0.37 * 400
    assert len(others) == count
    assert all(one[1] <= two[0] for one, two in pairwise([(top, bottom), *others]))
    assert not others or others[-1][1] == pytest.approx(400.0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("entries", [OVERLAYS, PANELS, OVERLAYS + PANELS, OVERLAYS[:1] + PANELS[:2]])
class TestEverySize:
    def test_legends_stay_in_their_panel_and_do_not_overlap(
        self, size: tuple[int, int], entries: list[str | dict[str, object]]
    ) -> None:
        scene = chart_scene(Look(width=size[0], height=size[1]), entries=entries)
        right, panels = edges(scene)
        shown = [extent(label) for label in labels(scene)[1:] if label.x <= right and label.y < panels[-1][1]]
        for left, top, end, bottom in shown:
            assert left >= 0
            assert end <= right + 0.5
            assert any(start - 0.5 <= top and bottom <= stop + 0.5 for start, stop in panels)
        for one, two in combinations(shown, 2):
            assert apart(one, two)

    def test_axis_labels_are_not_cut_and_do_not_overlap(
        self, size: tuple[int, int], entries: list[str | dict[str, object]]
    ) -> None:
        for scale in ("linear", "percent", "log"):
            scene = chart_scene(Look(width=size[0], height=size[1], price_scale=scale), entries=entries)
            shown = [extent(label) for panel in axis(scene) for label in panel]
            assert all(end <= size[0] - 4 for _, _, end, _ in shown), "not cut, and not at the very edge"
            for one, two in combinations(shown, 2):
                assert apart(one, two)

    def test_tags_do_not_overlap(self, size: tuple[int, int], entries: list[str | dict[str, object]]) -> None:
        scene = chart_scene(Look(width=size[0], height=size[1]), entries=entries)
        right, _ = edges(scene)
        tags = [box for box in items(scene, Boxes) if len(box.left) == 1 and box.left[0] == right + 1]
        spans = sorted((float(tag.top[0]), float(tag.bottom[0])) for tag in tags)
        assert all(one[1] <= two[0] + 1e-6 for one, two in pairwise(spans))
        assert spans


def test_overlays_without_room_are_counted() -> None:
    scene = chart_scene(Look(width=600, height=300), entries=OVERLAYS + PANELS[:3])
    assert any(label.text == "+7 more" for label in labels(scene))
    assert not any("more" in label.text for label in labels(chart_scene(entries=OVERLAYS)))


def test_only_the_row_beside_the_badge_is_shortened() -> None:
    look = Look(width=900, height=400)
    with_badge, plain = (chart_scene(look, entries=["ema_line", "pivot"], badge=badge) for badge in ("SIMULATED", ""))
    texts = [[label.text for label in labels(scene) if label.y == 52] for scene in (with_badge, plain)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 15, "its name and all seven values with their names"


def test_a_value_without_room_takes_its_name_with_it() -> None:
    scene = chart_scene(Look(width=500, height=400), entries=["pivot"])
    words = [label.text for label in labels(scene) if label.y == 34]
    assert 3 <= len(words) < 15
    assert len(words) % 2, "the indicator's name, then pairs"


def test_the_price_stays_clear_of_the_legend() -> None:
    bars = hours().tail(100)
    rising = bars.take(np.argsort(-bars.close, kind="stable"))  # the highest at the left, under the legend
    drawn = ChartPicture(
        rising, rising, "", Look(), THEMES["dark"], np.arange(100.0) * 10, 10.0, Box(0, 0, 1000, 400), []
    )
    panel = price_panel(Box(0, 0, 1000, 400), drawn, [], Corner(200.0, 120.0, 26.0))
    y = panel.scale.y(rising.high)
    assert y[:20].min() >= 120
    assert y.min() < 121, "and takes no more room than that"


class TestNarrow:
    def test_values_are_dropped_with_their_names_and_the_close_last(self) -> None:
        for width in range(200, 900, 50):
            texts = [label.text.strip() for label in labels(chart_scene(Look(width=width), entries=[]))]
            for name in ("O", "H", "L", "C", "Vol"):
                if name in texts:
                    assert texts[texts.index(name) + 1][0].isdigit()
            assert ("O" in texts) == ("H" in texts) == ("L" in texts)
            assert "C" in texts or "O" not in texts
        assert {"O", "H", "L", "C", "Vol"} <= {label.text.strip() for label in labels(chart_scene(entries=[]))}
        narrow = {label.text.strip() for label in labels(chart_scene(Look(width=400), entries=[]))}
        assert "C" in narrow
        assert "O" not in narrow


class TestBadge:
    @pytest.mark.parametrize("size", SIZES)
    def test_the_badge_hides_no_candle_of_a_usual_chart(self, size: tuple[int, int]) -> None:
        scene = chart_scene(Look(width=size[0], height=size[1], volume=False), entries=[])
        badge = [label for label in labels(scene) if label.text == "SIMULATED"][-1]
        left, _, right, bottom = extent(badge)
        assert scene.layers[-1].items[-1] is badge, "on top of everything"
        for boxes in items(scene, Boxes):
            if boxes.color in {THEMES["dark"].up, THEMES["dark"].down} and len(boxes.left) > 1:
                under = (boxes.right > left) & (boxes.left < right)
                assert not (boxes.top[under] < bottom - 1).any()


class TestFewBars:
    @pytest.mark.parametrize("style", ["line", "area", "baseline"])
    def test_one_bar_is_a_dot(self, style: str) -> None:
        (dot,) = items(chart_scene(Look(style=style), bars=hours().tail(1), entries=[]), Dot)
        assert 1060 < dot.x < 1080, "at the right"

    @pytest.mark.parametrize("count", [2, 3, 8, 20])
    def test_a_few_candles_fill_the_width_from_the_right(self, count: int) -> None:
        scene = chart_scene(Look(volume=False), bars=hours().tail(count), entries=[])
        right, _ = edges(scene)
        solid = [box for box in items(scene, Boxes) if box.color in {THEMES["dark"].up, THEMES["dark"].down}]
        lefts = np.concatenate([box.left for box in solid if len(box.left) > 0 and box.left[0] < right])
        rights = np.concatenate([box.right for box in solid if len(box.left) > 0 and box.left[0] < right])
        assert (rights - lefts).max() <= 56, "not wider than a candle may be"
        assert right - 15 > rights.max() > right - 60
        assert lefts.min() < 40

    def test_the_first_bar_has_a_date_if_there_is_room(self) -> None:
        one = hours().tail(1)
        assert [tick.text for tick in time_ticks(one, 48.0, 400.0)] == ["12 Nov"]
        assert not time_ticks(one, 5.0)

    @pytest.mark.parametrize("zone", [None, ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")])
    def test_a_day_of_a_currency_has_the_date_of_its_end(self, zone: ZoneInfo | None) -> None:
        """Monday's opens on Sunday, and the first day of March on the last of February."""
        opens, _ = buckets(FOREX, Timeframe.D1, at("2024-02-25T00:00Z"), at("2024-03-06T00:00Z"))
        days = walk(opens, 1, FOREX, Timeframe.D1)

        shown = [tick.text for tick in time_ticks(days, 100.0, 400.0, zone=zone)]

        assert shown == ["26 Feb", "27", "28", "29", "Mar", "4", "5"]

    def test_a_panel_without_values_shows_the_reason_and_no_axis(self) -> None:
        scene = chart_scene(bars=hours().tail(5), entries=["rsi", "macd"])
        assert sum(label.text == "needs more bars" for label in labels(scene)) == 2
        assert [len(panel) for panel in axis(scene)[1:]] == [0, 0]
        dashed = [stroke for stroke in items(scene, Stroke) if stroke.dash == (4.0, 4.0)]
        assert not dashed, "no levels without a scale"

    def test_a_legend_names_what_an_indicator_lacks(self) -> None:
        bars = hours()
        drawn = [replace(each, note="why") for each in computed(bars, ["vwap", "session_vp", "tpo"], 100)]
        shown = " ".join(
            label.text for label in labels(compose(bars.tail(100), drawn, Look(), "BTC/USD · 1h", "", bars))
        )
        assert "VWAP (minutes missing)" in shown
        assert "SVP(24) (finer bars missing)" in shown
        assert "TPO(32) (finer bars missing)" in shown


def test_a_histogram_alone_has_a_tag() -> None:
    (each,) = computed(hours(), ["awesome"], 200)
    assert not each.channels.lines
    scene = chart_scene(entries=["awesome"])
    last = each.channels.histogram[0].values[-1]
    assert axis(scene)[1][-1].text == f"{last:,.2f}".replace("-", "−")
    assert axis(scene)[1][-1].bold
