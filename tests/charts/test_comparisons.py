"""The comparisons of a chart's numbers, against plain calculations."""

from __future__ import annotations

import pytest

from openbell.charts.comparisons import largest_fall, price_range, significant_change
from openbell.charts.payload import last_values, summary
from openbell.indicators.evaluation import evaluate, parse_requests
from openbell.indicators.registry import all_indicators
from openbell.market.clock import iso
from tests.charts.pictures import hours


def test_the_range_names_its_bars_and_the_distance_of_the_last_close() -> None:
    bars = hours().tail(200)
    rows = list(zip(*(column.tolist() for column in bars.columns()), strict=True))
    high, low, close = max(row[2] for row in rows), min(row[3] for row in rows), rows[-1][4]
    assert price_range(bars) == {
        "high": high,
        "high_date": iso([row[0] for row in rows if row[2] == high][-1]),
        "low": low,
        "low_date": iso([row[0] for row in rows if row[3] == low][-1]),
        "from_high_pct": pytest.approx(100 * (close - high) / high, rel=1e-9),
        "from_low_pct": pytest.approx(100 * (close - low) / low, rel=1e-9),
    }


def test_the_largest_fall_is_that_of_all_pairs_of_closes() -> None:
    bars = hours().tail(120)
    closes, times = bars.close.tolist(), bars.time.tolist()
    pairs = [(two / one - 1, times[first], times[first + later + 1])
             for first, one in enumerate(closes) for later, two in enumerate(closes[first + 1:])]  # fmt: skip
    fall, begun, ended = min(pairs)
    assert largest_fall(bars) == {"pct": pytest.approx(fall * 100, rel=1e-9), "from": iso(begun), "to": iso(ended)}
    rising = bars.copy()
    rising.close[:] = range(1, 121)
    assert largest_fall(rising) is None


def test_of_equal_highs_the_newest_is_named() -> None:
    bars = hours().tail(4).copy()
    bars.high[:] = 9e9
    assert price_range(bars)["high_date"] == iso(int(bars.time[-1]))


@pytest.mark.parametrize(("base", "value", "expected"), [(200.0, 210.0, 5.0), (200.0, 190.0, -5.0), (80.0, 80.0, 0.0)])
def test_a_distance_is_in_per_cent_of_the_base(base: float, value: float, expected: float) -> None:
    assert significant_change(base, value) == expected


@pytest.mark.parametrize("base", [0.0, -3.0, float("nan"), float("inf"), 5e-324])
def test_there_is_no_distance_from_what_is_no_price(base: float) -> None:
    assert significant_change(base, 5.0) is None


def test_lines_have_the_value_before_and_prices_the_distance_of_the_close() -> None:
    whole = hours()
    bars = whole.tail(200)
    names = [name for name, each in all_indicators().items() if not each.needs and not each.finer]
    close, distances = float(bars.close[-1]), 0
    for name in names:
        (computed,) = evaluate(whole, 200, parse_requests([name]), {}, None)
        shape = last_values(computed, bars)
        for line, source in zip(shape.get("lines", []), computed.channels.lines, strict=True):
            before, now = (float(source.values[index]) for index in (-2, -1))
            assert line["previous_value"] == (pytest.approx(before, rel=1e-9) if before == before else None), name
            if "close_vs_line_pct" in line:
                distances += 1
                assert shape["is_overlay"]
                assert line["close_vs_line_pct"] == pytest.approx((close / now - 1) * 100, rel=1e-6, abs=1e-8), name
                # A direction of 1 or a count is no price: every line with a distance is near the price.
                assert abs(line["close_vs_line_pct"]) < 50, (name, line)
            else:
                assert not shape["is_overlay"] or now != now or line["label"] in HIDDEN, (name, line)
    assert distances > 60


HIDDEN = {"direction", "slope", "pattern", "bricks", "count", "gap", "up", "down"}


def test_an_old_cross_is_in_the_summary_of_few_bars() -> None:
    whole = hours()
    bars = whole.tail(2)
    computed = evaluate(whole, 2, parse_requests([{"name": "sma", "length": 20}]), {}, None)
    (crossing,) = summary("BTC/USD", "1h", bars, computed, whole)["crossings"]
    averages = [float(whole.close[index - 19 : index + 1].mean()) for index in range(19, len(whole))]
    higher = [close > average for close, average in zip(whole.close[19:].tolist(), averages, strict=True)]
    last = max(index for index in range(1, len(higher)) if higher[index] != higher[index - 1])
    assert crossing == {
        "a": "close",
        "b": "SMA(20)",
        "a_is": "above" if higher[-1] else "below",
        "last_cross": {
            "direction": "up" if higher[last] else "down",
            "time": iso(int(whole.time[19 + last])),
            "bars_ago": len(higher) - 1 - last,
        },
    }
