"""The simulator: deterministic in every process, and with the statistics of real markets."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.bars.watchlist import in_event_loop
from openbell.feeds.port import Batch, Feed
from openbell.feeds.sim.bars import bar_count, bars_of, minute_bars
from openbell.feeds.sim.days import days_between
from openbell.feeds.sim.feed import SimFeed
from openbell.feeds.sim.paths import trace
from openbell.feeds.sim.universe import LISTINGS
from openbell.market.bars import Bars, Values, faults, merge, resample
from openbell.market.clock import Clock, FixedClock, ReplayClock, parse_time
from openbell.market.errors import UnknownSymbol
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.session_table import table_for
from openbell.market.sessions import forex_open
from openbell.market.timeframes import Timeframe
from tests.waiting import PATIENCE

STOCKS = "SPY QQQ IWM AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV ACHR BITQ UEC".split()
CRYPTO = ["BTC/USD", "ETH/USD", "BTC/USDT", "ETH/USDT", "SOL/USDT"]
FOREX = ["EUR/USD", "GBP/USD", "USD/JPY", "AUD/USD", "USD/CHF"]
DAY = 86400


def at(text: str) -> int:
    return int(parse_time(text))


NOW = at("2025-11-30T12:00:00Z")
SOME = [parse(symbol) for symbol in ("SPY", "BITQ", "NVDX", "BTC/USD", "ETH/USDT", "EUR/USD", "USD/JPY")]


def history(symbol: str, start: str | int, end: str | int, now: float = NOW, seed: int = 7) -> Bars:
    first, last = (at(time) if isinstance(time, str) else time for time in (start, end))
    return asyncio.run(SimFeed(FixedClock(now), seed).history(Series(parse(symbol)), first, last))


@lru_cache(maxsize=16)
def year(symbol: str) -> Bars:
    return history(symbol, 0, NOW)


def years(symbol: str, timeframe: Timeframe, first: int) -> Bars:
    """Returns larger bars from the year `first` to the end of 2025; the feed itself has one year only."""
    spans = ((at(f"{y}-01-01"), at(f"{y + 1}-01-01")) for y in range(first, 2026))
    return merge(*(resample(minute_bars(parse(symbol), 7, *span), timeframe, span[1]) for span in spans))


def digest(symbols: Sequence[str], seed: int = 7) -> str:
    total = hashlib.sha256()
    for symbol in symbols:
        for column in history(symbol, "2025-09-18", "2025-09-20", seed=seed).columns():
            total.update(column.tobytes())
    return total.hexdigest()


def returns(bars: Bars) -> Values:
    moves: Values = np.diff(np.log(bars.close))
    return moves


def correlation(one: str, other: str) -> float:
    """Returns the correlation of the moves in minutes in which both symbols have bars."""
    a, b = year(one), year(other)
    _, in_a, in_b = np.intersect1d(a.time, b.time, return_indices=True)
    a, b = a.take(in_a), b.take(in_b)
    neighbours = np.diff(a.time) == 60
    return float(np.corrcoef(returns(a)[neighbours], returns(b)[neighbours])[0, 1])


def autocorrelation(values: Values, lag: int) -> float:
    return float(np.corrcoef(values[lag:], values[:-lag])[0, 1])


def test_implements_the_port() -> None:
    feed: Feed = SimFeed(FixedClock(NOW))
    assert (feed.name, feed.origin, feed.source) == ("sim", Origin.SIMULATED, Source(Origin.SIMULATED, "sim"))
    assert feed.watermark(NOW + 0.5) == NOW + 0.5
    natives = asyncio.run(feed.natives(parse("AAPL")))
    days = {timeframe: native.reach / DAY for timeframe, native in natives.items()}
    assert days == {Timeframe.M1: 366, Timeframe.H1: 3653, Timeframe.D1: 3653}


def test_supports_the_listed_instruments_only() -> None:
    feed = SimFeed(FixedClock(NOW))
    assert {instrument.symbol for instrument in LISTINGS} == {*STOCKS, *CRYPTO, *FOREX}
    assert all(feed.supports(parse(symbol)) for symbol in (*STOCKS, *CRYPTO, *FOREX))
    assert not feed.supports(parse("GME"))
    assert not feed.supports(Instrument("AAPL", AssetClass.CRYPTO))


def test_an_unknown_symbol_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownSymbol, match=r"Unknown symbol GME: .*AAPL.*BTC/USD"):
        history("GME", NOW - 60, NOW)

    async def first() -> Batch:
        return await anext(SimFeed(FixedClock(NOW)).stream([parse("SPY"), parse("GME")], NOW - 60))

    with pytest.raises(UnknownSymbol, match="GME"):
        asyncio.run(first())


def test_every_row_of_the_universe_is_consistent() -> None:
    for instrument, row in LISTINGS.items():
        assert row.own_volatility > 0, row.symbol
        assert 0 < row.extended <= 1, row.symbol
        assert not row.twin_of or LISTINGS[parse(row.twin_of)].own == row.twin_of, row.symbol
        assert not row.twin_of or parse(row.twin_of).asset_class is instrument.asset_class, row.symbol


def test_two_processes_compute_the_same_bars() -> None:
    symbols = ["AAPL", "SERV", "BTC/USD", "BTC/USDT", "EUR/USD"]
    program = f"from test_sim import digest; print(digest({symbols}))"
    folder = os.path.dirname(__file__)  # noqa: PTH120
    paths = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(symbols)


def test_every_machine_and_version_computes_these_bars() -> None:
    # Other bars would not match those stored in existing homes: change this digest only on purpose.
    assert (
        digest(sorted(i.symbol for i in LISTINGS)) == "7bb9781017a6fa1316518e3bf7ba2bd1ed3decbf94a971051cc5bfed7ac42daf"
    )


def test_another_seed_gives_other_values() -> None:
    assert digest(["SPY"], seed=8) != digest(["SPY"])


@settings(deadline=None, max_examples=60)
@given(
    instrument=st.sampled_from(SOME),
    times=st.lists(st.integers(NOW - 100 * DAY, NOW), min_size=3, max_size=3).map(sorted),
)
def test_parts_of_a_range_merge_to_the_range(instrument: Instrument, times: list[int]) -> None:
    a, b, c = times
    left, right = history(instrument.symbol, a, b), history(instrument.symbol, b, c)
    assert history(instrument.symbol, a, c).same_as(merge(left, right))


@settings(deadline=None, max_examples=60)
@given(instrument=st.sampled_from(SOME), start=st.integers(NOW - 300 * DAY, NOW), length=st.integers(0, 3 * DAY))
def test_a_short_range_equals_its_part_of_the_year(instrument: Instrument, start: int, length: int) -> None:
    part = history(instrument.symbol, start, start + length)
    assert part.same_as(year(instrument.symbol).between(start, start + length))


@settings(deadline=None, max_examples=40)
@given(
    instrument=st.sampled_from(SOME),
    timeframe=st.sampled_from([Timeframe.H1, Timeframe.D1]),
    start=st.integers(NOW - 300 * DAY, NOW),
    length=st.integers(0, 60 * DAY),
    passed=st.integers(0, 10 * DAY),
)
def test_hours_and_days_of_any_range_are_those_of_its_minutes(
    instrument: Instrument, timeframe: Timeframe, start: int, length: int, passed: int
) -> None:
    end = start + length
    around = minute_bars(instrument, 7, start - 10 * DAY, end + 10 * DAY)
    wanted = resample(around, timeframe, end + passed).between(start, end)
    found = bars_of(Series(instrument, timeframe), 7, start, end, end + passed)
    assert found.same_as(wanted)
    found.close[:] = 0
    assert bars_of(Series(instrument, timeframe), 7, start, end, end + passed).same_as(wanted)


def test_changing_returned_bars_does_not_change_later_results() -> None:
    first = history("BTC/USD", NOW - 600, NOW)
    expected = first.copy()
    first.close[:] = 0
    assert history("BTC/USD", NOW - 600, NOW).same_as(expected)


@pytest.mark.parametrize("symbol", [*STOCKS, *CRYPTO, *FOREX])
def test_every_bar_of_a_year_is_possible(symbol: str) -> None:
    bars = history(symbol, 0, NOW)
    listing = LISTINGS[parse(symbol)]
    assert len(bars) > 90_000
    assert faults(bars, NOW) == []
    assert (np.diff(bars.time) > 0).all()
    for column in bars.columns()[1:5]:
        assert np.array_equal(column, np.round(column, listing.decimals))
    if symbol in CRYPTO:
        assert (bars.volume > 0).all()
        assert (bars.volume % 1 != 0).any()
    else:
        assert (bars.volume >= 1).all()
        assert (bars.volume % 1 == 0).all()


def test_there_are_no_bars_after_the_clock_or_before_the_year() -> None:
    feed = SimFeed(FixedClock(NOW + 59.9))
    bars = asyncio.run(feed.history(Series(parse("BTC/USD")), 0, NOW + DAY))
    assert bars.time[-1] == NOW - 60
    assert bars.time[0] == NOW - 366 * DAY
    assert history("BTC/USD", 0, NOW + DAY, now=NOW + 60).time[-1] == NOW


def test_a_range_without_minutes_is_empty() -> None:
    assert len(history("BTC/USD", NOW, NOW + 600)) == 0
    assert len(history("BTC/USD", NOW - 600, NOW - 900)) == 0
    assert len(history("BTC/USD", NOW - 59, NOW)) == 0
    assert len(history("SPY", "2025-11-22T01:00:00Z", "2025-11-24T09:00:00Z")) == 0


def test_a_year_takes_little_memory() -> None:
    tracemalloc.start()
    minute_bars(parse("BTC/USD"), 7, NOW - 366 * DAY, NOW)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize("symbol", ["SPY", "AAPL", "SERV", "BITQ"])
def test_stocks_trade_inside_sessions_only(symbol: str) -> None:
    bars = year(symbol)
    table = table_for(int(bars.time[0]), int(bars.time[-1]))
    assert (table.extended(bars.time) >= 0).all()


@pytest.mark.parametrize(
    ("day", "first", "count"),
    [
        ("2025-11-28", "09:00", 780),  # the day after Thanksgiving: a half day
        ("2025-07-03", "08:00", 780),
        ("2025-03-07", "09:00", 960),  # the Friday before and the Monday after each change of the clocks
        ("2025-03-10", "08:00", 960),
        ("2025-10-31", "08:00", 960),
        ("2025-11-03", "09:00", 960),
    ],
)
def test_a_session_has_the_hours_of_its_date(day: str, first: str, count: int) -> None:
    start = at(f"{day}T{first}:00Z")
    bars = history("SPY", f"{day}T06:00:00Z", at(day) + DAY + 6 * 3600)
    assert bars.time.tolist() == list(range(start, start + count * 60, 60))


@pytest.mark.parametrize("day", ["2025-01-01", "2025-07-04", "2025-09-01", "2025-11-27", "2025-09-20", "2025-09-21"])
def test_stocks_have_no_bars_on_holidays_and_weekends(day: str) -> None:
    assert len(history("SPY", f"{day}T06:00:00Z", at(day) + DAY + 6 * 3600)) == 0


def test_thin_stocks_skip_extended_minutes_but_no_regular_one() -> None:
    table = table_for(NOW - 366 * DAY, NOW)
    for symbol in ("SPY", "SERV", "BITQ"):
        bars = year(symbol)
        regular = table.regular(bars.time) >= 0
        rows = np.unique(table.regular(bars.time[regular]))
        assert regular.sum() == ((table.close - table.open)[rows] // 60).sum()
        possible = ((table.end - table.premarket - table.close + table.open)[rows] // 60).sum()
        assert (~regular).sum() / possible == pytest.approx(LISTINGS[parse(symbol)].extended, abs=0.01)


def test_crypto_trades_every_minute_of_the_week() -> None:
    bars = year("BTC/USD")
    assert len(bars) == 366 * 1440
    assert (np.diff(bars.time) == 60).all()


@pytest.mark.parametrize("week", ["2025-03-05", "2025-07-09", "2025-10-29", "2025-11-12"])
def test_forex_has_no_bars_from_friday_to_sunday_evening_in_new_york(week: str) -> None:
    start = at(week)
    expected = [minute for minute in range(start, start + 7 * DAY, 60) if forex_open(minute)]
    assert history("EUR/USD", start, start + 7 * DAY).time.tolist() == expected


def test_symbols_move_together() -> None:
    assert correlation("SPY", "QQQ") > 0.75
    assert correlation("AAPL", "MSFT") > 0.3
    assert correlation("BTC/USD", "ETH/USD") > 0.5
    assert correlation("EUR/USD", "USD/CHF") < -0.4
    assert 0.05 < correlation("SPY", "BTC/USD") < 0.5
    assert abs(correlation("SPY", "EUR/USD")) < 0.05
    assert correlation("NVDA", "NVDX") > 0.95


def test_bitcoin_in_usd_and_usdt_is_similar_but_not_equal() -> None:
    dollar, twin = year("BTC/USD"), year("BTC/USDT")
    assert correlation("BTC/USD", "BTC/USDT") > 0.99
    assert np.abs(dollar.close / twin.close - 1).max() < 0.002
    assert (dollar.close != twin.close).mean() > 0.9
    assert not np.array_equal(dollar.volume, twin.volume)


def test_a_minute_opens_where_the_last_closed() -> None:
    for symbol in ("SPY", "SERV", "BTC/USD", "BTC/USDT", "EUR/USD"):
        bars = year(symbol)
        next_to = np.flatnonzero(np.diff(bars.time) == 60)
        tick = 10.0 ** -LISTINGS[parse(symbol)].decimals
        assert np.abs(bars.open[next_to + 1] - bars.close[next_to]).max() < 1.01 * tick


def test_stocks_gap_overnight() -> None:
    bars = year("AAPL")
    night = np.flatnonzero(np.diff(bars.time) > 3600)
    gaps = np.abs(np.log(bars.open[night + 1] / bars.close[night]))
    assert len(gaps) > 240
    assert np.median(gaps) > 0.003
    assert np.median(gaps) > 5 * np.median(np.abs(returns(bars)))


def test_volatility_comes_in_clusters() -> None:
    days, hours = (returns(years("BTC/USD", timeframe, 2018)) for timeframe in (Timeframe.D1, Timeframe.H1))
    assert np.mean([autocorrelation(np.abs(days), lag) for lag in range(1, 6)]) > 0.1
    assert autocorrelation(np.abs(hours), 1) > 0.15
    assert abs(autocorrelation(days, 1)) < 0.06


@pytest.mark.parametrize("symbol", ["SPY", "AAPL", "BBAI", "BTC/USD", "EUR/USD"])
def test_the_daily_volatility_is_that_of_the_universe(symbol: str) -> None:
    days = returns(years(symbol, Timeframe.D1, 2021))
    assert days.std() == pytest.approx(LISTINGS[parse(symbol)].volatility, rel=0.35)


def test_volume_is_u_shaped_in_stocks_and_follows_the_moves() -> None:
    bars = year("AAPL")
    table = table_for(int(bars.time[0]), int(bars.time[-1]))
    row = table.regular(bars.time)
    regular = bars.take(row >= 0)
    minute = (regular.time - table.open[row[row >= 0]]) // 60

    def typical(first: int, last: int) -> float:
        return float(np.median(regular.volume[(minute >= first) & (minute < last)]))

    assert typical(0, 30) > 2 * typical(180, 210)
    assert typical(360, 390) > 1.5 * typical(180, 210)
    assert np.median(bars.volume[row < 0]) < typical(180, 210) / 5
    noon = (minute >= 180) & (minute < 210)
    moves = np.abs(np.log(regular.close / regular.open))[noon]
    assert np.corrcoef(moves, regular.volume[noon])[0, 1] > 0.2


def test_crypto_volume_has_a_mild_daily_wave() -> None:
    bars = year("BTC/USD")
    hour = bars.time // 3600 % 24
    by_hour = [float(np.median(bars.volume[hour == h])) for h in range(24)]
    assert 1.3 < max(by_hour) / min(by_hour) < 4
    assert by_hour.index(max(by_hour)) in range(12, 19)


@pytest.mark.parametrize("seed", [7, 1])
def test_prices_stay_near_their_anchor_for_a_decade(seed: int) -> None:
    start, end = at("2016-01-01"), at("2027-01-01")
    for instrument, listing in LISTINGS.items():
        every_ninth = days_between(instrument.asset_class, start, end).take(slice(None, None, 9))
        close = trace(listing, instrument.asset_class, seed, every_ninth).close
        assert 1 / 4 < close.min() / listing.anchor < close.max() / listing.anchor < 4, listing.symbol


def test_every_minute_of_the_wildest_stock_is_near_its_anchor() -> None:
    days = years("SERV", Timeframe.D1, 2016)
    anchor = LISTINGS[parse("SERV")].anchor
    assert anchor / 4 < days.low.min() < days.high.max() < anchor * 4


class StepClock:
    """Jumps to the next of the given times whenever a caller waits."""

    moving = True

    def __init__(self, start: float, *moments: float) -> None:
        self._now = start
        self._moments = list(moments)

    def epoch(self) -> float:
        return self._now

    async def sleep_until(self, epoch: float) -> None:
        while self._now < epoch:
            if not self._moments:
                await asyncio.Event().wait()
            self._now = self._moments.pop(0)


def collect(clock: Clock, symbols: Sequence[str], since: int, until: int) -> list[Batch]:
    """Returns the batches of a stream until one is complete up to `until`."""

    async def run() -> list[Batch]:
        stream = SimFeed(clock).stream([parse(s) for s in symbols], since)
        found: list[Batch] = []
        async with asyncio.timeout(20):
            while not found or found[-1].complete_until < until:
                found.append(await anext(stream))
        await stream.aclose()
        return found

    return asyncio.run(run())


def streamed(batches: list[Batch], symbol: str) -> Bars:
    return merge(*(bars for batch in batches for bars in batch.bars if bars.instrument.symbol == symbol))


def test_a_stream_under_a_running_clock_equals_history() -> None:
    start = at("2025-09-19T19:40:30Z")  # across the close of the regular session
    symbols = ["SPY", "BTC/USD", "EUR/USD", "SERV"]
    since, until = start - 3 * DAY - 30, start - 30 + 30 * 60
    batches = collect(ReplayClock(start, 1200), symbols, since, until)
    ends = [batch.complete_until for batch in batches]
    assert ends == sorted(set(ends))
    assert all(end % 60 == 0 for end in ends)
    for symbol in symbols:
        assert streamed(batches, symbol).same_as(history(symbol, since, ends[-1]))


def test_each_minute_is_one_batch_with_a_bar_of_each_traded_symbol() -> None:
    start = at("2025-09-19T19:00:00Z")
    clock = StepClock(start + 5.0, start + 60.0, start + 120.5, start + 180.2)
    batches = collect(clock, ["SPY", "BTC/USD"], start, start + 180)
    assert [batch.complete_until for batch in batches] == [start + 60, start + 120, start + 180]
    for batch in batches:
        assert [bars.instrument.symbol for bars in batch.bars] == ["SPY", "BTC/USD"]
        assert all(bars.time.tolist() == [batch.complete_until - 60] for bars in batch.bars)


def test_a_jump_of_the_clock_is_one_batch() -> None:
    start = at("2025-09-19T19:00:00Z")
    batches = collect(StepClock(start, start + 7 * 60 + 1), ["SPY"], start, start + 60)
    assert [batch.complete_until for batch in batches] == [start + 420]
    assert len(batches[0].bars[0]) == 7


def test_a_stream_first_catches_up_at_most_a_day_at_a_time() -> None:
    since = NOW - 3 * DAY - 7 * 3600
    batches = collect(FixedClock(NOW + 30), ["BTC/USD", "AAPL"], since, NOW)
    assert [batch.complete_until for batch in batches] == [since + n * DAY for n in (1, 2, 3)] + [NOW]
    assert streamed(batches, "BTC/USD").same_as(history("BTC/USD", since, NOW))
    assert streamed(batches, "AAPL").same_as(history("AAPL", since, NOW))


def test_a_stream_reaches_back_no_further_than_history() -> None:
    first = collect(FixedClock(NOW), ["BTC/USD"], 0, 0)[0]
    assert first.bars[0].time[0] == NOW - 366 * DAY


def test_a_stream_delivers_no_minute_that_opened_before_its_start() -> None:
    batches = collect(FixedClock(NOW), ["BTC/USD"], NOW - 119, NOW)
    assert [bars.time.tolist() for bars in batches[0].bars] == [[NOW - 60]]


def test_complete_until_increases_when_nothing_trades() -> None:
    saturday = at("2025-09-20T12:00:00Z")
    clock = StepClock(saturday, *(saturday + 60.0 * n for n in range(1, 4)))
    batches = collect(clock, ["AAPL", "EUR/USD"], saturday, saturday + 180)
    assert batches == [Batch((), saturday + 60 * n) for n in range(1, 4)]


def test_a_stream_since_a_later_time_waits_for_it() -> None:
    start = at("2025-09-19T19:00:00Z")
    clock = StepClock(start, start + 60.0, start + 300.0, start + 360.0)
    batches = collect(clock, ["SPY"], start + 300, start + 360)
    assert [bars.time.tolist() for batch in batches for bars in batch.bars] == [[start + 300]]


def test_a_waiting_stream_can_be_cancelled_and_closed() -> None:
    async def run() -> bool:
        stream = SimFeed(FixedClock(NOW)).stream([parse("SPY")], NOW)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stream.aclose()
        return waiting.cancelled()

    assert asyncio.run(run())


def test_a_closed_simulator_has_no_threads() -> None:
    async def main() -> None:
        before = set(threading.enumerate())
        feed = SimFeed(FixedClock(NOW))
        await feed.history(Series(parse("BTC/USD")), NOW - 30 * 86400, NOW)
        begun = [each for each in set(threading.enumerate()) - before if each.name.startswith("simulator")]
        assert begun
        await feed.close()
        for each in begun:
            await asyncio.to_thread(each.join, PATIENCE)
            assert not each.is_alive()

    asyncio.run(main())


def test_bars_are_counted_in_a_thread_once_and_then_from_the_kept_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first count of ten years takes up to 0.3 s, in which an event loop would answer nobody."""
    now, series = at("2026-07-15T15:30"), Series(parse("AAPL"), Timeframe.D1)
    counting: list[bool] = []

    def count(*given: Any) -> int:
        counting.append(in_event_loop())
        return bar_count(*given)

    monkeypatch.setattr("openbell.feeds.sim.bars._past_counts", {})
    monkeypatch.setattr("openbell.feeds.sim.feed.bar_count", count)
    feed = SimFeed(FixedClock(now))

    async def counts() -> list[int | None]:
        first = at("2017-07-17T00:00")
        return [await feed.count(series.instrument, series.timeframe, first, now) for _ in range(2)]

    found = asyncio.run(counts())
    assert found[0] == found[1] == len(asyncio.run(feed.history(series, at("2017-07-17T00:00"), now)))
    assert counting == [False, True]
