"""Charts of what there is: a fetch that fails is an error, never a chart of something else.

Stocks' bars of an hour and more hold more than regular hours; what rests on those is held against the minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.desk.bars.service import BarService
from openbell.desk.pictures.charts import ChartService
from openbell.desk.pictures.indicators import Evaluation, IndicatorService
from openbell.feeds.sim.feed import SimFeed
from openbell.indicators.evaluation import parse_requests
from openbell.indicators.registry import get
from openbell.market.bars import Bars, Values, resample
from openbell.market.clock import FixedClock
from openbell.market.errors import FeedUnavailable, InsufficientData, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.sessions import EXTENDED, REGULAR, SESSIONS
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.threads import Threads
from tests.desk.scripted import BTC, ScriptedFeed
from tests.indicators import references
from tests.market.new_york import oracle
from tests.market.walks import STOCK, at

NOW = 1_767_744_000


def service(folder: Path, feed: ScriptedFeed) -> tuple[IndicatorService, BarService, ParquetStore]:
    store = ParquetStore(folder)
    bars = BarService(store, feed, FixedClock(NOW))
    return IndicatorService(bars, feed), bars, store


@pytest.mark.parametrize(
    ("down", "known", "expected"),
    [(True, True, FeedUnavailable), (False, True, InsufficientData), (False, False, UnknownSymbol)],
)
def test_a_failed_fetch_is_an_error(tmp_path: Path, down: bool, known: bool, expected: type[Exception]) -> None:
    feed = ScriptedFeed(known=(BTC,) if known else ())
    feed.down = down
    indicators, bars, store = service(tmp_path, feed)

    async def ask() -> None:
        instrument = await bars.find("BTC/USD")
        await indicators.evaluate(instrument, Timeframe.H1, 200, parse_requests(["rsi"]))

    with pytest.raises(expected):
        asyncio.run(ask())
    store.close()


def test_pictures_asked_for_at_once_are_each_drawn(tmp_path: Path) -> None:
    feed = ScriptedFeed()
    feed.table[BTC] = {NOW - 60 * n: 100.0 + n % 9 for n in range(1, 600)}
    indicators, _, store = service(tmp_path, feed)
    charts = ChartService(Threads())

    async def ask() -> list[bytes]:
        chart = await indicators.evaluate(BTC, Timeframe.M5, 50, parse_requests(["rsi"]))
        looks = [Look(width=300 + 10 * n, height=300) for n in range(6)]
        return await asyncio.gather(*(charts.draw(chart, look, "BTC/USD", "") for look in looks))

    pictures = asyncio.run(ask())
    assert [int.from_bytes(data[16:20], "big") for data in pictures] == [300, 310, 320, 330, 340, 350]
    store.close()


class NotingStore(ParquetStore):
    """Remembers which minutes were read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[tuple[int, int]] = []

    def read(self, series: Series, start: int, end: int) -> Bars:
        if series.timeframe is Timeframe.M1:
            self.reads.append((start, end))
        return super().read(series, start, end)


class Simulated:
    """Charts of the simulator at a fixed time, and the minutes that they are made of."""

    def __init__(self, folder: Path, now: str, since: str) -> None:
        clock = FixedClock(at(now))
        feed = SimFeed(clock)
        self.store = NotingStore(folder)
        self.indicators = IndicatorService(BarService(self.store, feed, clock), feed)
        self.minutes = asyncio.run(feed.history(Series(STOCK), at(since), at(now)))
        pairs = zip(oracle().open.tolist(), oracle().close.tolist(), strict=True)
        self.hours = [pair for pair in pairs if at(since) <= pair[0] < at(now)]
        self.rows = list(zip(*(column.tolist() for column in self.minutes.columns()), strict=True))

    def chart(
        self,
        timeframe: Timeframe,
        count: int,
        *names: str | dict[str, object],
        instrument: Instrument = STOCK,
        session: str = EXTENDED,
    ) -> Evaluation:
        self.store.reads.clear()
        wanted = parse_requests(list(names))
        return asyncio.run(self.indicators.evaluate(instrument, timeframe, count, wanted, session))

    def regular_bars(self, timeframe: Timeframe, until: int) -> dict[int, list[float]]:
        """By open time: open, high, low, close and volume of the minutes of regular hours, of bars that closed by a time."""
        found: dict[int, list[float]] = {}
        for time, opened, high, low, close, volume in self.rows:
            start = time - time % timeframe.seconds
            if start + timeframe.seconds > until or not any(one <= time < two for one, two in self.hours):
                continue
            bar = found.setdefault(start, [opened, high, low, close, 0.0])
            bar[1:] = [max(bar[1], high), min(bar[2], low), close, bar[4] + volume]
        return found

    def close(self) -> None:
        self.store.close()


@pytest.fixture(
    scope="module",
    params=[
        ("2025-12-02T22:00Z", "2025-10-13T00:00Z"),  # a holiday, a half day
        ("2025-03-19T15:00Z", "2025-02-24T00:00Z"),  # the clocks go forward; a session under way
    ],
    ids=["autumn", "spring"],
)
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    found = Simulated(tmp_path_factory.mktemp("data"), *request.param)
    yield found
    found.close()


def lines(chart: Evaluation, number: int = 0) -> dict[str, Values]:
    return {line.label: line.values for line in chart.indicators[number].channels.lines}


def agree(found: Values, expected: list[float]) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-11, atol=0.0, equal_nan=True))


CUT = [(Timeframe.H1, 190), (Timeframe.H2, 100), (Timeframe.H4, 60), (Timeframe.H6, 40), (Timeframe.H12, 24)]
"""Timeframes whose bars hold more than regular hours, and bars for about twelve sessions."""
BY_SESSION: dict[str, object] = {"name": "pivot", "period": "session"}
WHOLE = [(Timeframe.M1, 1000), (Timeframe.M5, 1000), (Timeframe.M15, 700), (Timeframe.M30, 350)]


class TestRegularHours:
    @pytest.mark.parametrize(("timeframe", "count"), CUT)
    def test_vwap_and_bands_are_those_of_the_minutes(
        self, simulated: Simulated, timeframe: Timeframe, count: int
    ) -> None:
        chart = simulated.chart(timeframe, count, "vwap", "vwap_bands")
        starts = chart.bars.time.tolist()
        whole = sorted({row[0] - row[0] % timeframe.seconds for row in simulated.rows})
        mean, deviation = references.session_vwap(whole, simulated.rows, simulated.hours, timeframe.seconds)
        expected = {start: pair for start, *pair in zip(whole, mean, deviation, strict=True)}

        vwap, bands = lines(chart)["VWAP"], lines(chart, 1)

        assert len(starts) == count
        assert agree(vwap, [expected[start][0] for start in starts])
        assert agree(bands["middle"], [expected[start][0] for start in starts])
        assert np.allclose(
            bands["upper"] - bands["middle"], [2 * expected[start][1] for start in starts], atol=1e-8, equal_nan=True
        )
        inside = [
            references.session_at(start, start + timeframe.seconds, simulated.hours) is not None for start in starts
        ]
        assert (~np.isnan(vwap)).tolist() == inside
        assert sum(inside) >= 10

    @pytest.mark.parametrize(("timeframe", "count"), WHOLE + CUT)
    def test_pivots_are_those_of_the_daily_bars(self, simulated: Simulated, timeframe: Timeframe, count: int) -> None:
        chart = simulated.chart(timeframe, count, BY_SESSION)
        daily = resample(simulated.minutes, Timeframe.D1, float(simulated.minutes.time[-1]) + 60)
        middles = dict(zip(daily.time.tolist(), ((daily.high + daily.low + daily.close) / 3).tolist(), strict=True))
        closes = dict(simulated.hours)
        before = [max(day for day in middles if closes[day] <= start) for start in chart.bars.time.tolist()]

        found = lines(chart)["P"]

        assert len(found) == count
        assert agree(found, [middles[day] for day in before])
        assert len(set(before)) > 1

    def test_the_daily_chart_shows_the_session_before(self, simulated: Simulated) -> None:
        daily = resample(simulated.minutes, Timeframe.D1, float(simulated.minutes.time[-1]) + 60)
        expected = ((daily.high + daily.low + daily.close) / 3).tolist()

        assert agree(lines(simulated.chart(Timeframe.D1, 8, BY_SESSION))["P"], expected[-9:-1])

    @pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 60])
    def test_how_many_bars_are_shown_changes_no_number(self, simulated: Simulated, count: int) -> None:
        names = ("vwap", "vwap_bands", "pivot", "histvol")
        whole, part = (simulated.chart(Timeframe.H4, shown, *names) for shown in (120, count))

        for number in range(len(names)):
            for label, values in lines(part, number).items():
                known = lines(whole, number)[label][-count:]
                # A deviation is added up in blocks that begin with the bars: its last digits depend on where that is.
                close = np.isclose(values, known, rtol=1e-13, atol=0, equal_nan=True)
                assert close.all() if label == "HV" else np.array_equal(values, known, equal_nan=True), label

    def test_minutes_are_read_from_the_session_before_the_first_bar_on(self, simulated: Simulated) -> None:
        chart = simulated.chart(Timeframe.H4, 60, "vwap", BY_SESSION)

        first = int(chart.bars.time[0])
        start = [opened for opened, _ in simulated.hours if opened < first + Timeframe.H4.seconds][-2]
        assert simulated.store.reads[0][0] == start - start % Timeframe.H4.seconds
        assert simulated.store.reads[-1][1] == int(chart.bars.time[-1]) + Timeframe.H4.seconds

    def test_minutes_of_two_weeks_are_read_for_pivots_of_weeks(self, simulated: Simulated) -> None:
        chart = simulated.chart(Timeframe.H4, 10, "pivot")

        assert simulated.store.reads[0][0] == int(chart.bars.time[0]) - 14 * 86400
        assert not np.isnan(lines(chart)["P"]).any()

    def test_profiles_of_daily_bars_come_from_finer_ones(self, simulated: Simulated) -> None:
        chart = simulated.chart(Timeframe.D1, 5, "session_vp", "naked_poc")
        profile = chart.indicators[0]
        daily = chart.bars

        assert profile.note is None
        assert [each.x1 for each in profile.channels.divlines] == [day for day in range(5) for _ in range(3)]
        for number, level in enumerate(profile.channels.divlines):
            assert daily.low[number // 3] <= level.y1 <= daily.high[number // 3]
        half_hours = resample(simulated.minutes, Timeframe.M30, float(simulated.minutes.time[-1]) + 60)
        for day, (opened, closed) in enumerate(simulated.hours[-len(daily) :][: len(daily)]):
            if opened != daily.time[day]:
                continue  # the session under way
            part = half_hours.between(opened, closed)
            expected = get("volume_profile").run(part, bins=24).hlines
            found = [each.y1 for each in profile.channels.divlines[3 * day : 3 * day + 3]]
            assert found == pytest.approx(expected, rel=1e-9)

    def test_a_long_chart_is_read_in_pieces_that_cut_no_bar(self, simulated: Simulated) -> None:
        simulated.chart(Timeframe.H4, 500, "vwap")

        pieces = simulated.store.reads
        assert len(pieces) > 3
        assert all(before[1] == after[0] for before, after in pairwise(pieces))
        assert all(end % 86400 == 0 for _, end in pieces[:-1])
        assert all(end - start <= 30 * 86400 for start, end in pieces)

    @pytest.mark.parametrize(
        ("instrument", "timeframe", "name"),
        [
            (STOCK, Timeframe.M30, "vwap"),
            (STOCK, Timeframe.D1, "pivot"),
            (STOCK, Timeframe.H4, "rsi"),
            (BTC, Timeframe.H4, "vwap"),
        ],
    )
    def test_no_minutes_are_read_where_the_bars_tell(
        self, simulated: Simulated, instrument: Instrument, timeframe: Timeframe, name: str
    ) -> None:
        simulated.chart(timeframe, 50, name, instrument=instrument)

        assert simulated.store.reads == []


class TestRegularSession:
    @pytest.mark.parametrize(("timeframe", "count"), [CUT[0], CUT[2], (Timeframe.M15, 200)])
    def test_bars_and_indicators_are_those_of_the_minutes_of_regular_hours(
        self, simulated: Simulated, timeframe: Timeframe, count: int
    ) -> None:
        chart = simulated.chart(timeframe, count // 3, {"name": "sma", "length": 20}, "vwap", session=REGULAR)

        rows = simulated.regular_bars(timeframe, int(simulated.minutes.time[-1]) + 60)
        expected = list(rows.items())[-(count // 3) :]
        assert chart.bars.time.tolist() == [start for start, _ in expected]
        for column, values in zip(
            chart.bars.columns()[1:], zip(*(row for _, row in expected), strict=True), strict=True
        ):
            assert agree(column, list(values))
        averages = references.sma([row[3] for row in rows.values()], 20)[-(count // 3) :]
        assert agree(next(iter(lines(chart).values())), averages)
        # VWAP counts regular hours only, whatever is shown.
        extended = simulated.chart(timeframe, count, "vwap")
        usual = dict(zip(extended.bars.time.tolist(), lines(extended)["VWAP"].tolist(), strict=True))
        assert agree(lines(chart, 1)["VWAP"], [usual[start] for start, _ in expected])
        assert (chart.hours, chart.note) == ("regular", None)

    def test_daily_bars_are_regular_already(self, simulated: Simulated) -> None:
        usual, regular = (simulated.chart(Timeframe.D1, 20, "rsi", session=each) for each in (EXTENDED, REGULAR))
        assert usual.bars.close.tolist() == regular.bars.close.tolist()
        assert np.array_equal(lines(usual)["RSI"], lines(regular)["RSI"])
        assert (usual.hours, regular.hours, regular.note) == (None, "regular", None)

    def test_instruments_without_extended_hours_are_unchanged_and_the_note_says_so(self, simulated: Simulated) -> None:
        usual, regular = (simulated.chart(Timeframe.H1, 30, instrument=BTC, session=each) for each in SESSIONS)
        assert usual.bars.time.tolist() == regular.bars.time.tolist()
        assert regular.hours is None
        assert regular.note == "session regular changes nothing: BTC/USD has no extended hours"


def test_averaged_candles_begin_before_the_first_shown_bar(tmp_path: Path) -> None:
    """The picture of a few bars shows the same candles as that of many."""
    feed = ScriptedFeed()
    feed.table[BTC] = {NOW - 60 * n: 100.0 + n % 9 for n in range(1, 600)}
    indicators, _, store = service(tmp_path, feed)
    chart = asyncio.run(indicators.evaluate(BTC, Timeframe.M5, 4, parse_requests([])))
    assert len(chart.bars) == 4
    assert len(chart.whole) == 120
    look = Look(style="heikin_ashi", volume=False)
    drawn = compose(chart.bars, [], look, "BTC/USD", "", chart.whole).text()
    assert drawn != compose(chart.bars, [], look, "BTC/USD", "").text()
    store.close()
