"""What a vendor's answer covers, and that a wrong one does not last."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.history_coverage import covered_by, covered_by_imports
from openbell.desk.bars.service import BarService
from openbell.market.bars import Bars, closed_at, resample
from openbell.market.clock import FixedClock
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.series_plan import Native, buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.desk.facts import made_of
from tests.desk.test_series import AAPL, ALL, BTC, DAY, NOW, Vendor, desk, run, vendor_bars
from tests.stores.samples import at, bars

M1, M15, H1, D1, W1 = (Timeframe[name] for name in ("M1", "M15", "H1", "D1", "W1"))
START, FRIDAY, SUNDAY = at("2025-01-06"), at("2025-03-08T01:00:00Z"), at("2025-03-09T12:00:00Z")
NONE = np.empty(0, dtype=np.int64)


def days(symbol: str, start: int, end: int, timeframe: Timeframe = D1) -> Bars:
    series = Series(parse(symbol), timeframe)
    return bars(series, buckets(series.instrument, timeframe, start, end)[0])


@pytest.mark.parametrize(("symbol", "timeframe"), [("AAPL", D1), ("BTC/USD", D1), ("BTC/USD", H1), ("EUR/USD", H1)])
@pytest.mark.parametrize("newest", [True, False])
def test_a_whole_answer_covers_its_span(symbol: str, timeframe: Timeframe, newest: bool) -> None:
    span = Span(START, FRIDAY)
    assert covered_by(days(symbol, START, FRIDAY, timeframe), NONE, span, newest) == [span]


def test_a_closed_market_is_no_silence() -> None:
    assert covered_by(days("AAPL", START, FRIDAY), NONE, Span(START, SUNDAY), True) == [Span(START, SUNDAY)]


def test_the_silent_end_of_an_answer_is_not_covered() -> None:
    short = days("AAPL", START, at("2025-02-01"))
    ended = at("2025-01-31T21:00:00Z")
    for newest in (True, False):
        assert covered_by(short, NONE, Span(START, FRIDAY), newest) == [Span(START, ended)]


def test_an_empty_answer_covers_the_time_before_a_history_begins_only() -> None:
    nothing, span = days("AAPL", START, START), Span(START, FRIDAY)
    assert covered_by(nothing, NONE, span, True) == []
    assert covered_by(nothing, NONE, span, False) == [span]
    quiet = days("BTC/USD", START, START, M1)
    assert covered_by(quiet, NONE, Span(START, START + 3600), False) == [Span(START, START + 3600)]


@pytest.mark.parametrize("late", [1, 3, 100])
def test_a_late_vendor_is_asked_again_about_the_latest_minutes(late: int) -> None:
    answer = days("BTC/USD", START, START + 3600 * 5, M1)
    end = START + 3600 * 5
    kept = answer.take(slice(0, -late))
    assert covered_by(kept, NONE, Span(START, end), True) == [Span(START, end - 60 * late)]
    assert covered_by(kept, NONE, Span(START, end), False) == [Span(START, end)]
    assert covered_by(answer.take(slice(0, 0)), NONE, Span(START, end), True) == []


def test_after_the_close_nothing_more_is_asked_for() -> None:
    last = bars("AAPL", [at("2025-01-11T00:59:00Z")])
    assert covered_by(last, NONE, Span(START, SUNDAY), True)[0].end == closed_at(last), "weeks are missing"
    weekend = Span(START, at("2025-01-12T12:00:00Z"))
    assert covered_by(last, NONE, weekend, True) == [weekend]


@pytest.mark.parametrize(
    ("symbol", "timeframe", "missing", "hole"),
    [
        ("AAPL", D1, 3, False),
        ("AAPL", D1, 4, True),
        ("BTC/USD", H1, 40, False),
        ("BTC/USD", H1, 41, True),
        ("BTC/USD", M1, 1500, False),
        ("BTC/USD", M1, 1501, True),
        ("AAPL", M1, 3 * 1440, True),
    ],
)
def test_a_file_covers_its_bars_but_not_a_long_silence(
    symbol: str, timeframe: Timeframe, missing: int, hole: bool
) -> None:
    whole = days(symbol, START, at("2025-01-18"), timeframe)
    rows = np.arange(len(whole))
    file = whole.take((rows < 4) | (rows >= 4 + missing))
    start, end, after = int(file.time[0]), closed_at(file), int(file.time[4])
    both = [Span(start, int(whole.time[4])), Span(after, end)]
    assert covered_by_imports(file, end) == (both if hole else [Span(start, end)])


def test_a_weekend_is_no_hole_in_a_file() -> None:
    file = days("AAPL", START, FRIDAY)
    assert covered_by_imports(file, FRIDAY) == [Span(int(file.time[0]), FRIDAY)]


def test_a_night_belongs_to_the_session_before_it_as_far_as_it_has_passed() -> None:
    file = days("AAPL", START, FRIDAY)
    monday = at("2025-03-10T13:30:00Z")
    assert covered_by_imports(file, SUNDAY)[-1].end == SUNDAY
    assert covered_by_imports(file, monday + 3600)[-1].end == monday


@pytest.mark.parametrize(
    ("timeframe", "before", "after", "hole"),
    [
        (H1, 0, 1, False),
        (H1, 1, 0, False),
        (H1, 20, 20, False),
        (H1, 20, 21, True),
        (M1, 0, 5, False),
        (M1, 750, 751, True),
    ],
)
def test_bars_that_lack_beside_a_weekend_of_forex_are_counted_without_it(
    timeframe: Timeframe, before: int, after: int, hole: bool
) -> None:
    """In the weekend in which New York changes its clocks."""
    close, reopen = at("2025-03-07T22:00:00Z"), at("2025-03-09T21:00:00Z")
    whole = days("EUR/USD", START, at("2025-03-14"), timeframe)
    edges = close - before * timeframe.seconds, reopen + after * timeframe.seconds
    file = whole.take((whole.time < edges[0]) | (whole.time >= edges[1]))
    span = Span(int(file.time[0]), closed_at(file))
    both = [Span(span.start, edges[0]), Span(edges[1], span.end)]
    assert covered_by_imports(file, span.end) == (both if hole else [span])


def test_refused_bars_are_left_out() -> None:
    found = days("BTC/USD", START, START + 10 * DAY)
    wrong = found.time[[3, 4, 9]]
    good = found.take(~np.isin(found.time, wrong))
    expected = [Span(START, START + 3 * DAY), Span(START + 5 * DAY, START + 9 * DAY)]
    assert covered_by(good, wrong, Span(START, START + 10 * DAY), True) == expected


class Spoilt(Vendor):
    """Answers about days with what `spoil` makes of them."""

    async def history(self, series: Series, start: int, end: int) -> Bars:
        found = await super().history(series, start, end)
        return self.spoil(found) if series.timeframe is D1 else found

    def spoil(self, found: Bars) -> Bars:
        return found.take(slice(0, 0))


class Short(Spoilt):
    def spoil(self, found: Bars) -> Bars:
        return found.take(slice(0, -90))


class Negative(Spoilt):
    def spoil(self, found: Bars) -> Bars:
        wrong = np.where(np.arange(len(found)) % 5 == 2, -found.low, found.low)
        return Bars(found.instrument, D1, found.time, found.open, found.high, wrong, found.close, found.volume)


@pytest.mark.parametrize("kind", [Spoilt, Short, Negative])
def test_a_wrong_answer_does_not_last(tmp_path: Path, kind: type[Spoilt]) -> None:
    async def work(store: ParquetStore) -> None:
        clock = FixedClock(NOW)
        spoilt = BarService(store, kind(clock, ALL), clock)
        got = await spoilt.newest(AAPL, D1, 200)
        whole = vendor_bars(Series(AAPL, D1), 0, int(at("2025-03-12T13:30:00Z"))).tail(199)
        assert not got.take(slice(0, -1)).same_as(whole)
        service, _ = desk(store, NOW, ALL)
        assert (await service.newest(AAPL, D1, 200)).take(slice(0, -1)).same_as(whole)
        weeks = await service.newest(AAPL, W1, 20)
        assert weeks.same_as(resample(vendor_bars(Series(AAPL, D1), 0, NOW), W1, NOW).tail(20))

    run(tmp_path, work)


def test_no_week_is_made_of_the_days_that_were_not_refused(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        clock = FixedClock(NOW)
        service = BarService(store, Negative(clock, {D1: ALL[D1]}), clock)
        found = await service.newest(AAPL, W1, 20)
        whole = resample(vendor_bars(Series(AAPL, D1), 0, NOW), W1, NOW)
        assert len(found) < 3, "most weeks have a refused day"
        assert found.same_as(whole.take(np.isin(whole.time, found.time)))

    run(tmp_path, work)


def test_another_base_that_was_asked_for_meanwhile_changes_no_answer(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        natives = {M1: Native(), M15: Native(delay=60.0), D1: Native(delay=7200.0)}
        service, _ = desk(store, NOW, natives)
        before = (await service.newest(AAPL, D1, 5)).copy()
        await service.newest(AAPL, M15, 300)
        again, _ = desk(store, NOW, natives)
        after = await again.newest(AAPL, D1, 5)
        assert after.same_as(before)
        assert await made_of(again, after) == "1d+1m"

    run(tmp_path, work)


def test_stored_bars_are_read_by_the_feeds_rule_if_no_start_is_given(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        natives = {M1: Native(reach=600 * 60.0), D1: Native()}
        service, _ = desk(store, NOW, natives)
        await service.newest(BTC, M1, 500)
        again, _ = desk(store, NOW, natives)
        assert len(await again.span(Series(BTC, D1), None, None)) == 0, "ten hours make no day"

    run(tmp_path, work)
