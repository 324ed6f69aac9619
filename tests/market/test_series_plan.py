"""The rule of what a question is answered from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import bucket_bounds, resample
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.series import Series, bases, makes, series_of
from openbell.market.series_plan import (
    Native,
    PlanPart,
    base_of,
    buckets,
    missing,
    next_close,
    parts_of,
    published,
    to_fetch,
)
from openbell.market.timeframes import Timeframe
from tests.stores.samples import bars

SYMBOLS = ("AAPL", "BTC/USD", "EUR/USD")
START, END = int(parse_time("2025-03-03")), int(parse_time("2025-04-14"))
"""Six weeks, in which the clocks of New York change."""
timeframes = st.sampled_from([each for each in Timeframe if each.seconds >= Timeframe.M30.seconds])
spans = st.lists(st.tuples(st.integers(START, END), st.integers(START, END)), max_size=4)
symbols = st.sampled_from(SYMBOLS)


def joined(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted spans that neither touch nor overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((min(pair), max(pair)) for pair in pairs):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif start < end:
            found.append((start, end))
    return found


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("timeframe", Timeframe)
@pytest.mark.parametrize(
    ("since", "until"),
    [
        (START + 4000, END - 4000),
        (int(parse_time("2025-12-15")), int(parse_time("2025-12-31T23:00Z"))),  # the week ends on 2 January
        (int(parse_time("2025-01-02T14:30Z")), int(parse_time("2025-01-20"))),  # the week has begun on 30 December
    ],
)
def test_buckets_are_those_that_bars_have(symbol: str, timeframe: Timeframe, since: int, until: int) -> None:
    instrument = parse(symbol)
    starts, ends = buckets(instrument, timeframe, since, until)
    minutes = np.arange(since // 60 * 60 - 7 * 86400, until + 7 * 86400, 60)
    first, last = bucket_bounds(instrument, timeframe, minutes)
    inside = (first >= since) & (last <= until)
    assert sorted(set(zip(first[inside].tolist(), last[inside].tolist(), strict=True))) == list(
        zip(starts.tolist(), ends.tolist(), strict=True)
    )


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("timeframe", Timeframe)
def test_the_next_close_is_the_first_end_of_a_bucket(symbol: str, timeframe: Timeframe) -> None:
    instrument = parse(symbol)
    first, last = int(parse_time("2025-12-19")), int(parse_time("2026-01-23"))
    if timeframe.months:
        last += 2 * timeframe.seconds
    reach = max(14 * 86400, 2 * timeframe.seconds)
    ends = sorted(set(buckets(instrument, timeframe, first - reach, last)[1].tolist()))
    for after in (first, first + 0.5, *ends[:-1][:200], *(end - 1 for end in ends[1:200])):
        if ends[0] <= after:
            assert next_close(instrument, timeframe, after) == next(end for end in ends if end > after)
    assert len(ends) > 2


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("timeframe", Timeframe)
def test_a_base_makes_the_same_bars_as_minutes_do(symbol: str, timeframe: Timeframe) -> None:
    instrument = parse(symbol)
    # Of longer bars three years, with fewer minutes.
    start = END - 1200 * 86400 if timeframe.months else START
    minutes = bars(Series(instrument), np.arange(start, END, 1800 if timeframe.months else 60))
    expected = resample(minutes, timeframe, END)
    assert len(expected)
    for base in Timeframe:
        if timeframe.months and (base.months or base.seconds < Timeframe.M30.seconds):
            continue  # quarters of months would be the same, but are not needed
        made = resample(resample(minutes, base, END), timeframe, END) if timeframe.seconds >= base.seconds else None
        same = made is not None and all(
            np.allclose(a, b, rtol=1e-12) if len(a) == len(b) else False
            for a, b in zip(made.columns(), expected.columns(), strict=True)
        )
        assert same == makes(instrument.asset_class, base, timeframe), base
    assert bases(instrument, timeframe)[0] is timeframe
    assert bases(instrument, timeframe)[-1] is Timeframe.M1


@settings(deadline=None, max_examples=40)
@given(
    symbol=symbols,
    timeframe=timeframes,
    covered=st.dictionaries(st.sampled_from(list(Timeframe)), spans),
    whole_from=st.none() | st.integers(START, END),
)
def test_every_bar_is_made_of_one_base_the_first_that_covers_it(
    symbol: str, timeframe: Timeframe, covered: dict[Timeframe, list[tuple[int, int]]], whole_from: int | None
) -> None:
    instrument = parse(symbol)
    known = {base: joined(pairs) for base, pairs in covered.items()}
    parts = parts_of(Series(instrument, timeframe), START, END, known, whole_from)
    for start, end in zip(*(each.tolist() for each in buckets(instrument, timeframe, START, END)), strict=True):
        made_of = [part.base for part in parts if part.start <= start < part.end]
        assert all(end <= part.end for part in parts if part.start <= start < part.end), "no part ends inside a bar"
        covers = [
            base
            for base in bases(instrument, timeframe)
            if any(a <= start and end <= b for a, b in known.get(base, ()))
        ]
        longer = [base for base in bases(instrument, timeframe) if base is not Timeframe.M1]
        touched = any(a < end and start < b for base in longer for a, b in known.get(base, ()))
        whole = not touched if whole_from is None else start >= whole_from
        expected = covers[:1] or ([Timeframe.M1] if whole or timeframe is Timeframe.M1 else [])
        assert made_of == expected


@settings(deadline=None, max_examples=60)
@given(symbol=symbols, timeframe=timeframes, natives=spans, minutes=spans, more=spans)
def test_more_minutes_change_nothing_that_native_bars_give(
    symbol: str,
    timeframe: Timeframe,
    natives: list[tuple[int, int]],
    minutes: list[tuple[int, int]],
    more: list[tuple[int, int]],
) -> None:
    instrument = parse(symbol)
    series = Series(instrument, timeframe)
    before, after = (
        parts_of(series, START, END, {timeframe: joined(natives), Timeframe.M1: joined(some)}, START)
        for some in (minutes, [*minutes, *more])
    )
    assert before == after
    without_feed, with_more = (
        parts_of(series, START, END, {timeframe: joined(natives), Timeframe.M1: joined(some)})
        for some in (minutes, [*minutes, *more])
    )
    native = [part for part in without_feed if part.base is not Timeframe.M1]
    assert native == [part for part in with_more if part.base is not Timeframe.M1]


@settings(deadline=None, max_examples=40)
@given(
    symbol=symbols,
    timeframe=timeframes.filter(lambda each: not each.months),
    offered=st.sets(st.sampled_from(list(Timeframe))),
    now=st.integers(START, END),
    delay=st.sampled_from([0.0, 60.0, 16_200.0]),
    length=st.integers(0, 40 * 86400),
)
def test_what_is_fetched_covers_every_closed_bar_once(
    symbol: str, timeframe: Timeframe, offered: set[Timeframe], now: int, delay: float, length: int
) -> None:
    instrument = parse(symbol)
    natives = {each: Native(delay=delay if each is not Timeframe.M1 else 0.0) for each in {*offered, Timeframe.M1}}
    end = now // 60 * 60
    found = to_fetch(Series(instrument, timeframe), end - length, end, natives, now)
    for start, stop in zip(*(each.tolist() for each in buckets(instrument, timeframe, end - length, end)), strict=True):
        holding = [part for part in found if part.start <= start and stop <= part.end]
        assert len(holding) == 1
        base = holding[0].base
        assert makes(instrument.asset_class, base, timeframe)
        if base is not Timeframe.M1:
            assert stop <= published(instrument, base, natives[base], now) <= now - delay + base.seconds
            assert base is base_of(instrument, timeframe, natives)


def test_an_unpublished_day_is_made_of_minutes_as_a_whole() -> None:
    apple = parse("AAPL")
    natives = {Timeframe.M1: Native(), Timeframe.D1: Native(delay=3600.0)}
    monday, tuesday = (int(parse_time(f"2025-03-{day:02}T13:30:00Z")) for day in (10, 11))
    close = tuesday + 23_400

    def fetched(now: int) -> list[PlanPart]:
        return to_fetch(Series(apple, Timeframe.D1), monday, now, natives, now)

    assert fetched(close + 1800) == [
        PlanPart(Timeframe.D1, monday, tuesday),
        PlanPart(Timeframe.M1, tuesday, close + 1800),
    ]
    assert fetched(close - 60) == [PlanPart(Timeframe.D1, monday, tuesday)], "a day under way is not asked for"
    (whole,) = fetched(close + 3600)
    assert whole.base is Timeframe.D1
    assert whole.end >= close


def test_a_month_waits_until_its_last_day_is_published() -> None:
    """Otherwise a year of minutes would be asked for, for some hours."""
    apple = parse("AAPL")
    natives = {Timeframe.M1: Native(), Timeframe.D1: Native(delay=16_200.0)}
    february, march = (int(parse_time(f"2025-{month:02}-03T14:30:00Z")) for month in (2, 3))
    close = int(parse_time("2025-03-31T20:00:00Z"))

    def fetched(now: int) -> list[PlanPart]:
        return to_fetch(Series(apple, Timeframe.MONTH), february, now, natives, now)

    assert fetched(close + 60) == [PlanPart(Timeframe.D1, february, march)]
    (whole,) = fetched(close + 16_200)
    assert whole.base is Timeframe.D1
    assert whole.end >= close


def test_names_of_series_are_read_back() -> None:
    for symbol in SYMBOLS:
        for timeframe in Timeframe:
            series = Series(parse(symbol), timeframe)
            assert series_of(series.name) == series
    assert (Series(parse("AAPL")).name, str(Series(parse("BTC/USD"), Timeframe.D1))) == ("AAPL", "BTC/USD 1d")


@pytest.mark.parametrize(
    ("symbol", "timeframe"), [("BTC/USD", Timeframe.M15), ("BTC/USD", Timeframe.D1), ("AAPL", Timeframe.D1)]
)
def test_missing_bars_are_counted_where_they_can_be_known(symbol: str, timeframe: Timeframe) -> None:
    series = Series(parse(symbol), timeframe)
    whole = bars(series, buckets(series.instrument, timeframe, START, END)[0])
    assert missing(whole) == missing(whole.take(slice(0, 0))) == 0
    assert missing(whole.take(np.arange(len(whole)) % 5 != 3)) == int((np.arange(len(whole)) % 5 == 3).sum())
    assert missing(bars(Series(parse("AAPL"), Timeframe.H1), [START + 14 * 3600, START + 20 * 3600])) is None
