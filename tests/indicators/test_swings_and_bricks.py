"""Stops, bricks, swings, patterns and gaps, held against plain loops from their definitions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import nan

import numpy as np
import pytest

from openbell.indicators.channels import Channels
from openbell.indicators.registry import get
from openbell.market.bars import Bars, make
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.indicators.test_panels import columns
from tests.indicators.test_references import agree, lines
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, STOCK, at, closes, minutes, walk

PRICES = [0.0000123, 4.2, 245.5, 98234.5]
Rows = list[tuple[float, ...]]


@pytest.fixture(params=range(len(PRICES)))
def bars(request: pytest.FixtureRequest) -> Bars:
    return walk(
        minutes("2025-03-04T16:00Z", "2025-03-05T02:00Z"), request.param, price=PRICES[request.param], step=0.004
    )


def assert_lines(name: str, bars: Bars, expected: Rows, /, **chosen: object) -> None:
    found = lines(name, bars, **chosen)
    for (label, values), column in zip(found.items(), zip(*expected, strict=True), strict=True):
        assert agree(values, column), label


def signals(result: Channels) -> list[tuple[int, str]]:
    return [(signal.index, signal.label) for signal in result.signals]


def turns(way: list[float], up: str, down: str) -> list[tuple[int, str]]:
    """The bars at which a direction of −1 becomes 1, and the other way round."""
    pairs = [(i, way[i - 1], way[i]) for i in range(1, len(way))]
    return [(i, up if now > 0 else down) for i, before, now in pairs if before * now < 0]


# Stops and bricks


def volatility_stop_of(bars: Bars, length: int, multiplier: float) -> Rows:
    """TradingView's built-in volStop(), which follows the highest and the lowest close; it starts with the first ATR."""
    high, low, close = columns(bars, "high", "low", "close")
    out: Rows = []
    top = bottom = stop = nan
    rising = True
    for price, reach in zip(close, references.atr(high, low, close, length), strict=True):
        room = multiplier * reach
        if room != room:
            out.append((nan, nan))
            continue
        top, bottom = (price, price) if top != top else (max(top, price), min(bottom, price))
        limit = top - room if rising else bottom + room
        stop = limit if stop != stop else max(stop, limit) if rising else min(stop, limit)
        before, rising = rising, price - stop >= 0.0
        if rising != before:
            top = bottom = price
            stop = top - room if rising else bottom + room
        out.append((stop, 1.0 if rising else -1.0))
    return out


def renko_of(bars: Bars, length: int, multiplier: float) -> Rows:
    """Brick by brick, in exact fractions."""
    high, low, close = columns(bars, "high", "low", "close")
    out: Rows = []
    level = height = Fraction(0)
    way = bricks = 0
    for price, reach in zip(map(Fraction, close), references.atr(high, low, close, length), strict=True):
        if reach != reach:
            out.append((nan, nan, nan))
            continue
        now = Fraction(multiplier * reach)
        if not level:
            level, height = price, now
        while True:
            up, down = level + height * (2 if way < 0 else 1), level - height * (2 if way > 0 else 1)
            if price >= up:
                level, way, bricks = up, 1, bricks + 1 if way > 0 else 1
            elif price <= down:
                level, way, bricks = down, -1, bricks + 1 if way < 0 else 1
            else:
                break
            height = now
        out.append((float(level), float(way), float(bricks)))
    return out


def range_bars_of(bars: Bars, percentage: float) -> Rows:
    """Bar by bar, with 28 digits: each has the prices that it has seen."""
    share = Decimal(percentage) / 100
    out: Rows = []
    seen: list[Decimal] = []
    way = count = 0
    for price in map(Decimal, bars.close.tolist()):
        seen = seen or [price]
        while True:
            height = share * seen[0]
            if price >= min(seen) + height:
                seen, count, way = [min(seen) + height], count + 1 if way > 0 else 1, 1
            elif price <= max(seen) - height:
                seen, count, way = [max(seen) - height], count + 1 if way < 0 else 1, -1
            else:
                break
        out.append((float(seen[0]), float(way), float(count)))
        seen.append(price)
    return out


class TestStopsAndBricks:
    @pytest.mark.parametrize(("length", "multiplier"), [(20, 2.0), (5, 0.5), (1, 1.0), (14, 6.0)])
    def test_volatility_stop(self, bars: Bars, length: int, multiplier: float) -> None:
        expected = volatility_stop_of(bars, length, multiplier)

        assert_lines("volatility_stop", bars, expected, length=length, multiplier=multiplier)
        found = get("volatility_stop").run(bars, length=length, multiplier=multiplier)
        assert signals(found) == turns([way for _, way in expected], "flip_up", "flip_down")
        assert [signal.value for signal in found.signals] == pytest.approx([expected[i][0] for i, _ in signals(found)])

    def test_a_stop_never_moves_away_from_the_price(self, bars: Bars) -> None:
        found = lines("volatility_stop", bars)
        stop, way = found["stop"][19:], found["direction"][19:]
        same = way[1:] == way[:-1]

        assert ((np.diff(stop) * way[1:])[same] >= 0.0).all()
        assert np.array_equal(bars.close[19:] >= stop, way > 0.0)

    @pytest.mark.parametrize(("length", "multiplier"), [(14, 1.0), (5, 0.3), (1, 1.0), (14, 4.0)])
    def test_renko(self, bars: Bars, length: int, multiplier: float) -> None:
        expected = renko_of(bars, length, multiplier)

        assert_lines("renko", bars, expected, length=length, multiplier=multiplier)
        assert {way for _, way, _ in expected} >= {1.0, -1.0}

    def test_bricks_by_hand(self) -> None:
        """The height is the true range: 1 at first. The brick that begins at the jump to 16 is 3 high, and falls to 8."""
        found = lines("renko", closes([10.0, 11.0, 12.0, 13.0, 16.0, 15.0, 14.0, 10.0, 8.0]), length=1)

        assert agree(found["level"], [10, 11, 12, 13, 14, 14, 14, 14, 8])
        assert agree(found["direction"], [0, 1, 1, 1, 1, 1, 1, 1, -1])
        assert agree(found["bricks"], [0, 1, 2, 3, 4, 4, 4, 4, 1])

    def test_a_reversal_needs_two_bricks(self) -> None:
        close = [10.0, 12.0, 14.0, 12.0, 10.0, 8.0, 10.0, 12.0]

        found = lines("renko", closes(close), length=1)

        assert agree(found["level"], [10, 12, 14, 14, 10, 8, 8, 12])
        assert agree(found["direction"], [0, 1, 1, 1, -1, -1, -1, 1])

    def test_a_jump_after_a_halt_is_a_few_bricks_and_no_endless_loop(self) -> None:
        moving = walk(minutes("2025-03-04T00:00Z", "2025-03-04T01:40Z"), 5).close
        halted = closes([*moving, *[moving[-1]] * 9000, moving[-1] * 2.0])

        found = lines("renko", halted)

        assert len(set(found["level"][1000:-1].tolist())) == 1
        assert found["direction"][-1] == 1.0
        assert 1.0 <= found["bricks"][-1] - (found["bricks"][-2] if found["direction"][-2] > 0 else 0.0) <= 15.0

    @pytest.mark.parametrize("percentage", [0.05, 0.3, 1.0, 2.0])
    def test_range_bars(self, bars: Bars, percentage: float) -> None:
        expected = range_bars_of(bars, percentage)

        assert_lines("range_bars", bars, expected, percentage=percentage)
        assert {way for _, way, _ in expected} >= {1.0, -1.0}

    def test_range_bars_by_hand(self) -> None:
        found = lines("range_bars", closes([100.0, 105.0, 96.0, 94.0, 106.0, 121.1]), percentage=10.0)

        # Down: 94 is at most 105 − 10. Up: 106 is at least 94 + 9.5, 121.1 is at least 103.5 × 1.1.
        assert agree(found["level"], [100.0, 100.0, 100.0, 95.0, 103.5, 113.85])
        assert agree(found["direction"], [0, 0, 0, -1, 1, 1])
        assert agree(found["count"], [0, 0, 0, 1, 1, 2])

    def test_a_jump_completes_every_bar_on_its_way(self) -> None:
        found = lines("range_bars", closes([100.0, 10000.0, 100.0]), percentage=1.0)

        assert found["count"].tolist() == [0.0, 462.0, 458.0]  # ln 100 / ln 1.01; ln 100 / −ln 0.99


# Swings


def fractals(values: list[float], depth: int) -> list[int]:
    """The bars that are above `depth` bars before and at least as high as `depth` bars after."""
    return [
        i
        for i in range(depth, len(values) - depth)
        if values[i] > max(values[i - depth : i]) and values[i] >= max(values[i + 1 : i + 1 + depth])
    ]


def gann_of(bars: Bars, turning: int) -> Rows:
    """Inside bars are taken out first; then the runs before each bar are counted back."""
    high, low = columns(bars, "high", "low")
    counted = [0]
    for i in range(1, len(high)):
        if high[i] > high[counted[-1]] or low[i] < low[counted[-1]]:
            counted.append(i)

    def run_of(place: int, sign: int, values: list[float]) -> int:
        length = 0
        while place > 0 and sign * (values[counted[place]] - values[counted[place - 1]]) > 0:
            place, length = place - 1, length + 1
        return length

    way, since = 0, 0
    tops, bottoms = [nan], [nan]
    out: Rows = []
    for i in range(len(high)):
        if i in counted:
            place = counted.index(i)
            turn = 0
            if way <= 0 and run_of(place, 1, high) >= turning:
                turn = 1
            elif way >= 0 and run_of(place, -1, low) >= turning:
                turn = -1
            if turn:
                if way > 0:
                    tops.append(max(high[since : i + 1]))
                if way < 0:
                    bottoms.append(min(low[since : i + 1]))
                way, since = turn, i
        out.append((nan, nan, nan) if i < turning else (float(way), tops[-1], bottoms[-1]))
    return out


def fibonacci_of(bars: Bars, depth: int) -> Rows:
    """The list of alternating swings is made anew from all that are known at each bar."""
    high, low = columns(bars, "high", "low")
    swings = sorted(
        [(i, 0, high[i]) for i in fractals(high, depth)]
        + [(i, 1, low[i]) for i in fractals([-each for each in low], depth)]
    )
    out: Rows = []
    for i in range(len(high)):
        legs: list[tuple[int, float]] = []
        for _, kind, price in [swing for swing in swings if swing[0] + depth <= i]:
            beyond = not legs or (price > legs[-1][1] if kind == 0 else price < legs[-1][1])
            if beyond and legs and legs[-1][0] == kind:
                legs[-1] = (kind, price)
            elif beyond:
                legs.append((kind, price))
        if len(legs) < 2:
            out.append((nan,) * 8)
            continue
        (_, start), (kind, end) = legs[-2:]
        top, bottom = max(start, end), min(start, end)
        ratios = (0.0, 0.236, 0.382, 0.5, 0.618, 0.786, 1.0)
        levels = [top - r * (top - bottom) if kind == 0 else bottom + r * (top - bottom) for r in ratios]
        out.append((*levels, 1.0 if kind == 0 else -1.0))
    return out


class TestSwings:
    @pytest.mark.parametrize("turning", [1, 2, 3, 5])
    def test_gann_swing(self, bars: Bars, turning: int) -> None:
        expected = gann_of(bars, turning)

        assert_lines("gann_swing", bars, expected, bars=turning)
        found = get("gann_swing").run(bars, bars=turning)
        assert signals(found) == turns([row[0] for row in expected], "turn_up", "turn_down")
        assert [signal.value for signal in found.signals] == [
            expected[i][2 if label == "turn_up" else 1] for i, label in signals(found)
        ]

    def test_an_inside_bar_does_not_break_a_run(self) -> None:
        high, low = [10, 9, 8, 9, 8.5, 10, 11, 10, 9], [8, 7, 6, 7, 7.5, 8, 9, 8, 7]
        time = at("2025-03-04T00:00Z") + np.arange(len(high)) * 60
        data = make(CRYPTO, Timeframe.M1, time, low, high, low, low, np.ones(len(high)))

        found = lines("gann_swing", data)

        assert agree(found["direction"], [nan, nan, -1, -1, -1, 1, 1, 1, -1])
        assert agree(found["swing_low"], [nan] * 5 + [6.0] * 4)
        assert agree(found["swing_high"], [nan] * 8 + [11.0])

    @pytest.mark.parametrize("depth", [1, 3, 10, 40])
    def test_fibonacci(self, bars: Bars, depth: int) -> None:
        assert_lines("fibonacci", bars, fibonacci_of(bars, depth), depth=depth)

    def test_a_swing_is_known_only_when_it_is_confirmed(self) -> None:
        """A low of 10 at bar 3, a high of 20 at bar 6: depth 2 confirms them at bars 5 and 8."""
        found = lines("fibonacci", closes([13, 12, 11, 10, 14, 17, 20, 18, 16, 15]), depth=2)

        assert agree(found["level_0"], [nan] * 8 + [20.0, 20.0])
        assert agree(found["level_61_8"], [nan] * 8 + [13.82, 13.82])
        assert agree(found["level_100"], [nan] * 8 + [10.0, 10.0])
        assert agree(found["direction"], [nan] * 8 + [1.0, 1.0])


# Patterns


def patterns_of(bars: Bars, depth: int, tolerance: float, longest: int) -> Rows:
    """Every pair of neighbouring tops is listed with the bars at which it forms and would fail; then they take turns."""
    high, low, close = columns(bars, "high", "low", "close")
    listed: list[tuple[int, int, float, int, list[int]]] = []
    for sign, highs, lows in ((1, high, low), (-1, [-x for x in low], [-x for x in high])):
        tops, troughs = fractals(highs, depth), fractals([-x for x in lows], depth)
        for first, second in pairwise(tops):
            between = [lows[i] for i in troughs if first < i < second]
            if between and abs(highs[second] - highs[first]) * 100 <= tolerance * abs(highs[first]):
                roof = max(highs[first], highs[second])
                formed = second + depth
                failed = [i for i in range(formed, len(close)) if sign * close[i] > roof or i - first > longest]
                broken = [i for i in range(formed, len(close)) if sign * close[i] < min(between)]
                listed.append((formed, sign, sign * min(between), [*failed, len(close)][0], broken))
    listed.sort(key=lambda row: (row[0], -row[1]))
    out: Rows = []
    waiting: dict[int, tuple[int, int, float, int, list[int]]] = {}
    for i in range(len(close)):
        for row in [row for row in listed if row[0] == i]:
            waiting[row[1]] = row
        waiting = {sign: row for sign, row in waiting.items() if row[3] > i}
        latest = sorted(waiting.values(), key=lambda row: (row[0], row[1]), reverse=True)
        passed = [row for row in latest if i in row[4]]
        if passed:
            out.append((passed[0][2], float(-passed[0][1])))
            waiting = {}
        else:
            out.append((latest[0][2] if latest else nan, 0.0 if i >= 2 * depth else nan))
    return out


class TestDoublePatterns:
    @pytest.mark.parametrize(
        ("depth", "tolerance", "longest"), [(5, 2.0, 120), (1, 0.5, 30), (2, 20.0, 1000), (3, 0.1, 60), (8, 3.0, 40)]
    )
    def test_double_pattern(self, bars: Bars, depth: int, tolerance: float, longest: int) -> None:
        expected = patterns_of(bars, depth, tolerance, longest)
        chosen = {"depth": depth, "tolerance": tolerance, "max_bars": longest}

        assert_lines("double_pattern", bars, expected, **chosen)
        found = [(i, "double_bottom" if row[1] > 0 else "double_top") for i, row in enumerate(expected) if row[1]]
        assert signals(get("double_pattern").run(bars, **chosen)) == [
            (i, label) for i, label in found if i >= 2 * depth
        ]

    def test_the_settings_of_the_test_find_both(self) -> None:
        data = walk(minutes("2025-03-04T16:00Z", "2025-03-05T02:00Z"), 2, price=245.5, step=0.004)

        assert {row[1] for row in patterns_of(data, 5, 2.0, 120)} >= {1.0, -1.0, 0.0}

    M_SHAPE = (10.0, 12.0, 14.0, 12.0, 11.0, 12.0, 13.9, 12.5, 11.5, 10.9, 10.0)

    def test_a_double_top_by_hand(self) -> None:
        """Tops at bars 2 and 6, the neckline of bar 4; bar 8 knows the second top, bar 9 closes below the neckline."""
        result = get("double_pattern").run(closes(self.M_SHAPE), depth=2)

        neckline, pattern = (line.values for line in result.lines)
        assert agree(neckline, [nan] * 8 + [11.0, 11.0, nan])
        assert agree(pattern, [nan] * 4 + [0.0] * 5 + [-1.0, 0.0])
        assert [(s.index, s.value, s.label) for s in result.signals] == [(9, 11.0, "double_top")]

    def test_its_mirror_image_is_a_double_bottom(self) -> None:
        result = get("double_pattern").run(closes(25.0 - np.array(self.M_SHAPE)), depth=2)

        assert [(s.index, s.value, s.label) for s in result.signals] == [(9, 14.0, "double_bottom")]

    @pytest.mark.parametrize(
        "chosen",
        [{"tolerance": 0.5}, {"depth": 3}],
        ids=["the tops are 0.7 % apart", "the tops are no swings of 3 bars"],
    )
    def test_without_two_near_swings_there_is_none(self, chosen: dict[str, object]) -> None:
        assert not get("double_pattern").run(closes(self.M_SHAPE), **{"depth": 2, **chosen}).signals

    def test_a_close_above_both_tops_ends_it(self) -> None:
        prices = [*self.M_SHAPE[:9], 14.5, 10.0, 10.0]

        assert not get("double_pattern").run(closes(prices), depth=2).signals

    @pytest.mark.parametrize(("silent", "found"), [(3, 1), (4, 0)])
    def test_it_takes_at_most_max_bars(self, silent: int, found: int) -> None:
        """From the first top at bar 2 to the close below the neckline."""
        prices = [*self.M_SHAPE[:9], *[11.5] * silent, 10.9]

        assert len(get("double_pattern").run(closes(prices), depth=2, max_bars=10).signals) == found


# Gaps


def gaps_of(bars: Bars, days: list[int], smallest: float) -> Rows:
    """From lists of the bars of each day; the latest gap is searched back from every bar."""
    opened, high, low, close = columns(bars, "open", "high", "low", "close")
    inside = [i for i, day in enumerate(days) if day >= 0]
    gaps = {}
    for before, i in pairwise(inside):
        if days[i] != days[before]:
            gaps[i] = (close[before], (opened[i] / close[before] - 1) * 100)
    out: Rows = []
    for i in range(len(days)):
        begun = [each for each in inside if each < i]
        gap = gaps[i][1] if i in gaps else 0.0 if begun else nan
        large = [at_bar for at_bar, (_, size) in gaps.items() if at_bar <= i and abs(size) >= smallest]
        fill = nan
        if large:
            level, size = gaps[large[-1]]
            since = [each for each in inside if large[-1] <= each <= i]
            reached = (
                min(low[each] for each in since) <= level if size > 0 else max(high[each] for each in since) >= level
            )
            fill = nan if reached else level
        out.append((gap, fill))
    return out


class TestGaps:
    @pytest.mark.parametrize("min_gap", [0.01, 0.2, 1.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_gap(self, seed: int, min_gap: float) -> None:
        """Minutes of stocks, by the exchange's calendar: extended hours, a holiday and a half day."""
        data = walk(minutes("2025-11-25T13:00Z", "2025-12-03T00:00Z")[::17], seed, STOCK, step=0.003)
        book = oracle()
        row = np.searchsorted(book.open, data.time, side="right") - 1
        days = np.where(data.time < book.close[row], row, -1).tolist()
        expected = gaps_of(data, days, min_gap)

        found = lines("gap", data, min_gap=min_gap)

        gap, fill = zip(*expected, strict=True)
        assert agree(found["gap"], gap, 1.0)
        assert agree(found["fill"], fill)
        assert len({value for value in gap if value == value and value != 0}) == 5 - 1

    def test_every_daily_bar_has_one(self) -> None:
        data = walk(at("2025-03-03T00:00Z") + np.arange(200) * 86400, 6, CRYPTO, Timeframe.D1, step=0.02)
        expected = gaps_of(data, list(range(200)), 0.5)

        found = lines("gap", data)

        assert agree(found["gap"], [gap for gap, _ in expected], 1.0)
        assert agree(found["fill"], [fill for _, fill in expected])
        assert np.count_nonzero(found["gap"][1:]) > 190

    def test_a_gap_is_open_until_the_price_is_back(self) -> None:
        day = at("2025-03-03T00:00Z") + np.arange(6) * 86400
        rows = [
            (10, 10, 10, 10),
            (11, 12, 10.5, 12),
            (12, 13, 10.2, 12),
            (12, 13, 10, 11),
            (9, 9, 8, 8),
            (8, 11, 8, 11),
        ]
        data = make(CRYPTO, Timeframe.D1, day, *zip(*rows, strict=True), np.ones(6))

        found = lines("gap", data)

        assert agree(found["gap"], [nan, 10.0, 0.0, 0.0, -200.0 / 11.0, 0.0])
        assert agree(found["fill"], [nan, 10.0, 10.0, nan, 11.0, nan])


class TestNothingMoves:
    def test_nothing_turns_and_no_brick_is_laid(self) -> None:
        flat = closes([10.1] * 300)

        assert set(lines("renko", flat)["bricks"][13:].tolist()) == {0.0}
        assert set(lines("range_bars", flat)["count"].tolist()) == {0.0}
        assert set(lines("gann_swing", flat)["direction"][2:].tolist()) == {0.0}
        assert set(lines("volatility_stop", flat)["stop"][19:].tolist()) == {10.1}
        assert np.isnan(lines("fibonacci", flat)["level_50"]).all()
        assert np.isnan(lines("gap", flat)["fill"]).all()
        for name in ("volatility_stop", "gann_swing", "double_pattern"):
            assert not get(name).run(flat).signals
