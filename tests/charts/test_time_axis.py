"""The time axis: every month that fits, nothing that overlaps, the newest bar's date with its year, and the time zone."""

from __future__ import annotations

from datetime import UTC
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from openbell.charts.compose import compose
from openbell.charts.look import ChartOptions, Look
from openbell.charts.scene import Scene
from openbell.charts.time_axis import zone_called, zone_text
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import Instrument
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from tests.charts.pictures import extent, labels
from tests.market.walks import CRYPTO, FOREX, STOCK, at, walk

NEW_YORK = ZoneInfo("America/New_York")
SPANS = {
    Timeframe.M1: "2026-11-12T00:00Z",
    Timeframe.M15: "2026-10-20T00:00Z",
    Timeframe.H1: "2026-09-01T00:00Z",
    Timeframe.H4: "2026-05-01T00:00Z",
    Timeframe.D1: "2022-11-01T00:00Z",
    Timeframe.W1: "2006-11-01T00:00Z",
}


@cache
def bars_of(instrument: Instrument, timeframe: Timeframe, end: str = "2026-11-17T22:00Z") -> Bars:
    opens, _ = buckets(instrument, timeframe, at(SPANS[timeframe]), at(end))
    return walk(opens, 1, instrument, timeframe)


def scene_of(bars: Bars, width: int = 1200, zone: str | None = None) -> Scene:
    look = Look(width=width, height=300, volume=False)
    return compose(bars, [], look, "title", options=ChartOptions(zone=zone_called(zone) if zone else None))


def footer(scene: Scene) -> str:
    return max((label for label in labels(scene) if label.y > 272), key=lambda label: label.x).text


def ticks(scene: Scene) -> list[str]:
    found = sorted((label for label in labels(scene) if label.y > 272), key=lambda label: label.x)
    return [label.text for label in found[:-1]]


class TestNewest:
    @pytest.mark.parametrize(
        ("instrument", "timeframe", "zone", "text"),
        [
            (CRYPTO, Timeframe.H1, None, "17 Nov 2026 21:00 · UTC"),
            (STOCK, Timeframe.H1, None, "17 Nov 2026 16:00 · New York"),
            (FOREX, Timeframe.H1, None, "17 Nov 2026 21:00 · UTC"),
            (CRYPTO, Timeframe.H1, "Asia/Tokyo", "18 Nov 2026 06:00 · Tokyo"),
            (STOCK, Timeframe.M1, "etc/utc", "17 Nov 2026 21:59 · UTC"),
            (CRYPTO, Timeframe.D1, None, "16 Nov 2026 · UTC"),
            (STOCK, Timeframe.D1, None, "17 Nov 2026 · New York"),
            (STOCK, Timeframe.W1, None, "9 Nov 2026 · New York"),
            (STOCK, Timeframe.D1, "Asia/Tokyo", "17 Nov 2026 · New York days"),
            (STOCK, Timeframe.W1, "Etc/UTC", "9 Nov 2026 · New York days"),
            (STOCK, Timeframe.D1, "America/New_York", "17 Nov 2026 · New York"),
            (CRYPTO, Timeframe.D1, "Asia/Tokyo", "16 Nov 2026 · UTC days"),
            (FOREX, Timeframe.D1, None, "17 Nov 2026 · New York"),
        ],
    )
    def test_its_date_has_a_year_and_a_time_zone(
        self, instrument: Instrument, timeframe: Timeframe, zone: str | None, text: str
    ) -> None:
        assert footer(scene_of(bars_of(instrument, timeframe).tail(100), zone=zone)) == text

    @pytest.mark.parametrize("width", [200, 400])
    def test_narrow_pictures_leave_out_the_time_of_day(self, width: int) -> None:
        scene = scene_of(bars_of(STOCK, Timeframe.H1).tail(100), width)
        assert footer(scene) == "17 Nov 2026 · New York"
        assert ticks(scene)

    def test_an_empty_chart_has_none(self) -> None:
        assert not [label for label in labels(scene_of(bars_of(CRYPTO, Timeframe.H1).tail(0))) if label.y > 272]


class TestTicks:
    @pytest.mark.parametrize("width", [200, 400, 1200, 2400])
    @pytest.mark.parametrize("timeframe", SPANS)
    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK, FOREX])
    def test_labels_never_overlap_and_are_never_cut(
        self, instrument: Instrument, timeframe: Timeframe, width: int
    ) -> None:
        for count in (3, 20, 100, 333, 1000):
            scene = scene_of(bars_of(instrument, timeframe).tail(count), width)
            found = sorted(extent(label) for label in labels(scene) if label.y > 272)
            assert found[0][0] >= 0
            assert found[-1][2] <= width
            assert all(one[2] + 4 <= two[0] for one, two in pairwise(found)), ticks(scene)
            assert count == 3 or width == 200 or len(found) > 2, "at least two beside the newest bar's time"

    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK])
    def test_every_month_that_fits_is_shown(self, instrument: Instrument) -> None:
        at_400 = ticks(scene_of(bars_of(instrument, Timeframe.D1).tail(200), 400))
        assert set("Jun Jul Aug Sep".split()) <= set(at_400)
        years = ticks(scene_of(bars_of(instrument, Timeframe.D1).tail(600), 1200))
        assert years[years.index("2026") - 2 :][:6] == ["Nov", "Dec", "2026", "Feb", "Mar", "Apr"]

    def test_months_that_do_not_fit_are_left_out_evenly(self) -> None:
        found = ticks(scene_of(bars_of(CRYPTO, Timeframe.D1).tail(1000), 400))
        assert found == ["Jul", "2025", "Jul", "2026"]

    @pytest.mark.parametrize(
        ("timeframe", "count", "expected"),
        [
            (Timeframe.M1, 30, ["21:35", "21:40", "21:45", "21:50"]),
            (Timeframe.H1, 30, ["18:00", "21:00", "17", "03:00", "06:00", "09:00", "12:00"]),
            (Timeframe.D1, 60, ["21", "28", "Oct", "5", "12", "19", "26", "Nov", "9"]),
            (Timeframe.W1, 60, ["Oct", "Nov", "Dec", "2026", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep"]),
        ],
    )
    def test_labels_are_at_round_times(self, timeframe: Timeframe, count: int, expected: list[str]) -> None:
        found = ticks(scene_of(bars_of(CRYPTO, timeframe).tail(count), 1000))
        assert found[: len(expected)] == expected

    def test_a_month_that_begins_within_a_week_is_named(self) -> None:
        found = ticks(scene_of(bars_of(STOCK, Timeframe.D1).tail(60), 900))
        assert "Oct" in found
        assert "Nov" in found

    def test_days_begin_at_midnight_of_the_zone(self) -> None:
        bars = bars_of(CRYPTO, Timeframe.H1).tail(100)
        places = [
            {label.text: label.x for label in labels(scene_of(bars, zone=zone)) if label.text == "16"}
            for zone in ("UTC", "Asia/Tokyo")
        ]
        slot = 1120 / 103
        assert places[0]["16"] - places[1]["16"] == pytest.approx(9 * slot, abs=slot)


class TestZones:
    def test_names_in_any_case(self) -> None:
        assert zone_called("america/new_york") == NEW_YORK
        assert zone_called("UTC") is zone_called("etc/utc") is UTC

    @pytest.mark.parametrize(
        ("name", "advice"),
        [("New York", "America/New_York"), ("tokyo", "Asia/Tokyo"), ("Europe/Berln", "Europe/Berlin")],
    )
    def test_an_unknown_name_suggests_the_closest(self, name: str, advice: str) -> None:
        with pytest.raises(InvalidParameter, match=f"not '{name}'; did you mean '{advice}'"):
            zone_called(name)

    def test_a_zone_is_written_as_its_city(self) -> None:
        assert [zone_text(each) for each in (UTC, NEW_YORK, ZoneInfo("Etc/UTC"))] == ["UTC", "New York", "UTC"]
