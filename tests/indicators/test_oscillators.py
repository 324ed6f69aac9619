"""Oscillators against their published definitions, in plain loops, and against TA-Lib where it was not used."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, log, log10, nan

import numpy as np
import pytest
import talib
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.registry import get
from openbell.indicators.windows import window_mean, window_sum
from openbell.market.bars import Bars, Values, make
from openbell.market.timeframes import Timeframe
from tests.indicators.references import ema, sma
from tests.market.walks import CRYPTO, at, closes, minutes, walk

MONEY = st.floats(1e-8, 1e9)


def lines(name: str, bars: Bars, **overrides: object) -> dict[str, Values]:
    result = get(name).run(bars, **overrides)
    return {line.label: line.values for line in (*result.lines, *result.histogram)}


def agree(found: Values, expected: Sequence[float] | Values, scale: float = 0.0) -> bool:
    """To 1e-9 of the value; `scale` is the size of what the value is a difference of."""
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9 * scale, equal_nan=True))


def moved(values: Sequence[float]) -> list[float]:
    return [nan, *(b - a for a, b in pairwise(values))][: len(values)]


def summed(values: Sequence[float], length: int) -> list[float]:
    return [nan if i + 1 < length else fsum(values[i + 1 - length : i + 1]) for i in range(len(values))]


@pytest.fixture(params=range(4))
def bars(request: pytest.FixtureRequest) -> Bars:
    price = [0.0000123, 4.2, 245.5, 98234.5][request.param]
    return walk(minutes("2025-03-04T20:00Z", "2025-03-05T02:00Z"), request.param, price=price, step=0.004)


@pytest.fixture
def columns(bars: Bars) -> dict[str, list[float]]:
    return {name: getattr(bars, name).tolist() for name in ("open", "high", "low", "close", "volume")}


class TestAgainstDefinitions:
    @pytest.mark.parametrize("length", [2, 14, 25])
    def test_aroon_counts_the_bars_since_the_extreme(self, bars: Bars, length: int) -> None:
        """Chande 1995: 100 × (length − bars since the extreme of length + 1 bars) / length, the oldest of ties."""
        tick = float(bars.close[0]) / 200
        high, low = (np.round(column / tick) * tick for column in (bars.high, bars.low))
        coarse = make(CRYPTO, Timeframe.M1, bars.time, low, high, low, high, bars.volume)
        up, down = [nan] * length, [nan] * length
        for i in range(length, len(bars)):
            window = range(i - length, i + 1)
            up.append(100 * (length - i + max(window, key=lambda j: (high[j], -j))) / length)
            down.append(100 * (length - i + min(window, key=lambda j: (low[j], j))) / length)

        found = lines("aroon", coarse, length=length)

        assert agree(found["Up"], up)
        assert agree(found["Down"], down)

    @pytest.mark.parametrize(("length", "signal"), [(18, 9), (1, 1), (5, 3)])
    def test_trix_is_tradingviews(self, bars: Bars, columns: dict[str, list[float]], length: int, signal: int) -> None:
        """TradingView: 10000 × change(ema(ema(ema(log(close))))); the signal is StockCharts' EMA of it."""
        triple = [log(close) for close in columns["close"]]
        for _ in range(3):
            triple = ema(triple, length)
        line = [10_000 * change for change in moved(triple)]

        found = lines("trix", bars, length=length, signal=signal)

        assert agree(found["TRIX"], line, scale=1.0)
        assert agree(found["Signal"], ema(line, signal), scale=1.0)

    def test_trix_is_about_a_hundred_times_ta_libs(self, bars: Bars) -> None:
        """Which has the rate of change of the price's average in per cent: the same but for second-order terms."""
        assert np.nanmax(np.abs(lines("trix", bars)["TRIX"] - 100 * talib.TRIX(bars.close, 18))) < 0.5

    @pytest.mark.parametrize("lengths", [(7, 14, 28), (1, 2, 3), (28, 14, 7)])
    def test_ultimate(self, bars: Bars, columns: dict[str, list[float]], lengths: tuple[int, int, int]) -> None:
        """Williams 1985, and TA-Lib's ULTOSC, which sorts its lengths."""
        high, low, close = (columns[name] for name in ("high", "low", "close"))
        pressure = [close[i] - min(low[i], close[i - 1]) for i in range(1, len(close))]
        reach = [max(high[i], close[i - 1]) - min(low[i], close[i - 1]) for i in range(1, len(close))]
        averages = [
            [a / b for a, b in zip(summed(pressure, length), summed(reach, length), strict=True)] for length in lengths
        ]
        expected = [nan, *(100 * (4 * a + 2 * b + c) / 7 for a, b, c in zip(*averages, strict=True))]

        found = lines("ultimate", bars, fast=lengths[0], middle=lengths[1], slow=lengths[2])["UO"]

        assert agree(found, expected)
        if list(lengths) == sorted(lengths):
            assert agree(found, talib.ULTOSC(bars.high, bars.low, bars.close, *lengths))

    @pytest.mark.parametrize(("fast", "slow"), [(5, 34), (2, 3), (34, 5)])
    def test_awesome(self, bars: Bars, columns: dict[str, list[float]], fast: int, slow: int) -> None:
        """Williams 1998: SMA(hl2, 5) − SMA(hl2, 34), and TA-Lib's AO."""
        middle = [(high + low) / 2 for high, low in zip(columns["high"], columns["low"], strict=True)]
        expected = [a - b for a, b in zip(sma(middle, fast), sma(middle, slow), strict=True)]

        found = lines("awesome", bars, fast=fast, slow=slow)["AO"]

        scale = float(bars.high.max())
        assert agree(found, expected, scale)
        if fast < slow:
            assert agree(found, talib.AO(bars.high, bars.low, fast, slow), scale)

    @pytest.mark.parametrize("length", [1, 2, 9, 20])
    def test_cmo(self, bars: Bars, columns: dict[str, list[float]], length: int) -> None:
        """Chande 1994, unsmoothed, and TA-Lib's CMOU."""
        changes = moved(columns["close"])[1:]
        gains, losses = (summed([max(sign * change, 0.0) for change in changes], length) for sign in (1, -1))
        expected = [nan, *(100 * (gain - loss) / (gain + loss) for gain, loss in zip(gains, losses, strict=True))]

        found = lines("cmo", bars, length=length)["CMO"]

        assert agree(found, expected, scale=100.0)
        if length > 1:
            assert agree(found, talib.CMOU(bars.close, length), scale=100.0)

    @pytest.mark.parametrize(("length", "back"), [(21, 11), (20, 11), (1, 1), (2, 2)])
    def test_dpo_is_tradingviews_without_centring(
        self, bars: Bars, columns: dict[str, list[float]], length: int, back: int
    ) -> None:
        """TradingView: close − sma(close, length)[length / 2 + 1]."""
        close, average = columns["close"], sma(columns["close"], length)
        expected = [close[i] - average[i - back] if i >= back else nan for i in range(len(close))]

        assert agree(lines("dpo", bars, length=length)["DPO"], expected, scale=float(bars.close.max()))

    @pytest.mark.parametrize(("fast", "slow", "signal"), [(12, 26, 9), (26, 12, 9), (1, 2, 1), (5, 5, 5)])
    def test_ppo(self, bars: Bars, columns: dict[str, list[float]], fast: int, slow: int, signal: int) -> None:
        """Appel: (EMA(12) − EMA(26)) / EMA(26) in per cent, its EMA(9), the difference."""
        averages = zip(ema(columns["close"], fast), ema(columns["close"], slow), strict=True)
        line = [100 * (a - b) / b for a, b in averages]
        trigger = ema(line, signal)

        found = lines("ppo", bars, fast=fast, slow=slow, signal=signal)

        assert agree(found["PPO"], line, scale=1.0)
        assert agree(found["Signal"], trigger, scale=1.0)
        assert agree(found["Histogram"], [a - b for a, b in zip(line, trigger, strict=True)], scale=1.0)

    @pytest.mark.parametrize(
        ("rates", "averages", "signal"),
        [((10, 15, 20, 30), (10, 10, 10, 15), 9), ((1, 1, 1, 1), (1, 1, 1, 1), 1), ((9, 3, 4, 2), (2, 20, 3, 4), 5)],
    )
    def test_kst(
        self,
        bars: Bars,
        columns: dict[str, list[float]],
        rates: tuple[int, ...],
        averages: tuple[int, ...],
        signal: int,
    ) -> None:
        """Pring 1992: Σ n × SMA(rate of change n), and its SMA."""
        close = columns["close"]
        line = [0.0] * len(close)
        for n in range(4):
            change = [100 * (close[i] / close[i - rates[n]] - 1) for i in range(rates[n], len(close))]
            part = [nan] * rates[n] + sma(change, averages[n])
            line = [a + (n + 1) * b for a, b in zip(line, part, strict=True)]
        known = [value for value in line if value == value]
        chosen = {f"roc{n + 1}": rates[n] for n in range(4)} | {f"sma{n + 1}": averages[n] for n in range(4)}

        found = lines("kst", bars, **chosen, signal=signal)

        assert agree(found["KST"], line, scale=1.0)
        assert agree(found["Signal"], [nan] * (len(line) - len(known)) + sma(known, signal), scale=1.0)

    @pytest.mark.parametrize("length", [1, 2, 13])
    def test_elder_ray(self, bars: Bars, columns: dict[str, list[float]], length: int) -> None:
        """Elder 1993: high and low less EMA(close, 13), and TA-Lib's ERI."""
        average = ema(columns["close"], length)
        scale = float(bars.high.max())

        found = lines("elder_ray", bars, length=length)

        for label, name, number in (("Bull", "high", 0), ("Bear", "low", 1)):
            assert agree(found[label], [a - b for a, b in zip(columns[name], average, strict=True)], scale)
            if length > 1:
                assert agree(found[label], talib.ERI(bars.high, bars.low, bars.close, length)[number], scale)

    @pytest.mark.parametrize("length", [1, 2, 13])
    def test_force(self, bars: Bars, columns: dict[str, list[float]], length: int) -> None:
        """Elder 1993: EMA of (close − previous close) × volume, and TA-Lib's EFI."""
        pushes = [a * b for a, b in zip(moved(columns["close"]), columns["volume"], strict=True)]
        scale = float(bars.close.max())

        found = lines("force", bars, length=length)["Force"]

        assert agree(found, ema(pushes, length), scale)
        if length > 1:
            assert agree(found, talib.EFI(bars.close, bars.volume, length), scale)

    @pytest.mark.parametrize(("fast", "slow", "signal"), [(34, 55, 13), (1, 2, 1), (9, 4, 3)])
    def test_klinger(self, bars: Bars, columns: dict[str, list[float]], fast: int, slow: int, signal: int) -> None:
        """TradingView: EMA(34) − EMA(55) of volume, negative where hlc3 fell and at the first bar, which has no change."""
        typical = [(h + low + c) / 3 for h, low, c in zip(*(columns[n] for n in ("high", "low", "close")), strict=True)]
        volume = columns["volume"]
        signed = [volume[i] if typical[i] >= typical[i - 1] else -volume[i] for i in range(1, len(typical))]
        signed.insert(0, -volume[0])
        line = [a - b for a, b in zip(ema(signed, fast), ema(signed, slow), strict=True)]

        found = lines("klinger", bars, fast=fast, slow=slow, signal=signal)

        assert agree(found["KVO"], line, scale=1000.0)
        assert agree(found["Signal"], ema(line, signal), scale=1000.0)

    @pytest.mark.parametrize(("fast", "length"), [(9, 25), (1, 1), (3, 10)])
    def test_mass_index(self, bars: Bars, columns: dict[str, list[float]], fast: int, length: int) -> None:
        """Dorsey 1992: Σ EMA(range) / EMA(EMA(range)), and TA-Lib's MASSI."""
        once = ema([high - low for high, low in zip(columns["high"], columns["low"], strict=True)], fast)
        ratio = [a / b for a, b in zip(once, ema(once, fast), strict=True)]
        lead = sum(value != value for value in ratio)
        expected = [nan] * lead + summed(ratio[lead:], length)

        found = lines("mass_index", bars, fast=fast, length=length)["Mass"]

        assert agree(found, expected)
        if fast > 1:
            assert agree(found, talib.MASSI(bars.high, bars.low, fast, length))

    @pytest.mark.parametrize(("bulge", "settled"), [(27.0, 26.5), (25.6, 25.1), (25.1, 25.6)])
    def test_mass_bulge(self, bars: Bars, bulge: float, settled: float) -> None:
        """Dorsey 1992: a bulge lasts from a value above the upper level until a value below the lower one."""
        mass = talib.MASSI(bars.high, bars.low, 9, 25).tolist()
        lasts = [
            any(
                value > bulge and not min(mass[begin : at + 1]) < settled
                for begin, value in enumerate(mass[: at + 1])
                if value == value
            )
            for at in range(len(mass))
        ]
        expected = [float(on) if value == value else nan for on, value in zip(lasts, mass, strict=True)]

        assert agree(lines("mass_bulge", bars, bulge=bulge, settled=settled)["bulge"], expected)
        if bulge < 27:
            assert 0.0 in expected
            assert 1.0 in expected

    @pytest.mark.parametrize("length", [1, 2, 14])
    def test_vortex(self, bars: Bars, columns: dict[str, list[float]], length: int) -> None:
        """Botes and Siepman 2010, and TA-Lib's VORTEX."""
        high, low, close = (columns[name] for name in ("high", "low", "close"))
        after = range(1, len(close))
        up, down = [abs(high[i] - low[i - 1]) for i in after], [abs(low[i] - high[i - 1]) for i in after]
        reach = [max(high[i] - low[i], abs(high[i] - close[i - 1]), abs(low[i] - close[i - 1])) for i in after]

        found = lines("vortex", bars, length=length)

        for label, moves, number in (("VI+", up, 0), ("VI-", down, 1)):
            ratios = zip(summed(moves, length), summed(reach, length), strict=True)
            assert agree(found[label], [nan, *(a / b for a, b in ratios)])
            if length > 1:
                assert agree(found[label], talib.VORTEX(bars.high, bars.low, bars.close, length)[number])

    @pytest.mark.parametrize("length", [2, 14, 50])
    def test_choppiness(self, bars: Bars, columns: dict[str, list[float]], length: int) -> None:
        """Dreiss: 100 × log10(Σ true range / (highest − lowest)) / log10(length); the first true range is high − low."""
        high, low, close = (columns[name] for name in ("high", "low", "close"))
        reach = [high[0] - low[0]]
        reach += [max(high[i], close[i - 1]) - min(low[i], close[i - 1]) for i in range(1, len(close))]
        expected = [nan] * (length - 1)
        for i in range(length - 1, len(close)):
            window = slice(i + 1 - length, i + 1)
            span = max(high[window]) - min(low[window])
            expected.append(100 * log10(fsum(reach[window]) / span) / log10(length))

        assert agree(lines("choppiness", bars, length=length)["CHOP"], expected, scale=1.0)


class TestNothingMoves:
    NEUTRAL = (
        ("aroon", 0.0),  # the oldest of equal highs and lows counts
        ("trix", 0.0),
        ("ultimate", 50.0),
        ("awesome", 0.0),
        ("cmo", 0.0),
        ("dpo", 0.0),
        ("ppo", 0.0),
        ("kst", 0.0),
        ("elder_ray", 0.0),
        ("force", 0.0),
        ("mass_index", 10.0),
        ("vortex", 1.0),
        ("choppiness", 100.0),
    )

    @given(MONEY)
    @settings(deadline=None, max_examples=60)
    def test_every_one_is_exactly_neutral(self, price: float) -> None:
        bars = closes([price] * 140)
        for name, value in self.NEUTRAL:
            indicator = get(name)
            warm = indicator.warmup(**indicator.settings()) - 1
            for label, values in lines(name, bars).items():
                assert (values[warm:] == value).all(), (name, label)

    @given(MONEY, st.integers(0, 2**32))
    @settings(deadline=None, max_examples=60)
    def test_windows_forget_what_has_left_them(self, price: float, seed: int) -> None:
        """However the price moved before, once it stands still for a window, so do the sums."""
        before = np.random.default_rng(seed).uniform(1e-8, 1e9, 60)
        bars = closes([*before, *[price] * 40])

        assert (lines("cmo", bars)["CMO"][70:] == 0.0).all()
        assert (lines("ultimate", bars)["UO"][90:] == 50.0).all()
        assert (lines("awesome", bars)["AO"][94:] == 0.0).all()
        assert (lines("vortex", bars)["VI+"][75:] == 1.0).all()
        assert (lines("choppiness", bars)["CHOP"][74:] == 100.0).all()
        assert (lines("dpo", bars)["DPO"][92:] == 0.0).all()

    def test_klinger_without_volume_is_nothing(self) -> None:
        bars = walk(minutes("2025-03-04T20:00Z", "2025-03-04T23:00Z"))
        silent = make(CRYPTO, Timeframe.M1, *bars.columns()[:5], np.zeros(len(bars)))

        assert (lines("klinger", silent)["KVO"][55:] == 0.0).all()


class TestKnownNumbers:
    def test_aroon_of_a_straight_rise(self) -> None:
        found = lines("aroon", closes(range(1, 40)))

        assert (found["Up"][14:] == 100.0).all()
        assert (found["Down"][14:] == 0.0).all()

    def test_dpo_is_known_at_its_own_bar(self) -> None:
        """Centred, the last values would be missing: here it is the first ones."""
        found = lines("dpo", closes([1, 2, 3, 4, 5, 6]), length=3)["DPO"]

        assert np.array_equal(found, [nan, nan, nan, nan, 3.0, 3.0], equal_nan=True)

    def test_a_fall_counts_against_klinger(self) -> None:
        bars = make(
            CRYPTO, Timeframe.M1, at("2025-03-04T00:00Z") + np.arange(4) * 60, *([[5, 6, 4, 4]] * 4), [10, 20, 30, 40]
        )

        found = lines("klinger", bars, fast=1, slow=3, signal=1)["KVO"]

        # −30 − (−10 + 20 − 30) / 3, then 40 − (40 / 2 − 20 / 3 / 2)
        assert found == pytest.approx([nan, nan, -70 / 3, 70 / 3], nan_ok=True)

    def test_the_defaults_are_the_usual_ones(self) -> None:
        assert get("aroon").settings() == {"length": 14}
        assert get("trix").settings() == {"length": 18, "signal": 9}
        assert get("ultimate").settings() == {"fast": 7, "middle": 14, "slow": 28}
        assert get("awesome").settings() == {"fast": 5, "slow": 34}
        assert get("cmo").settings() == {"length": 9}
        assert get("dpo").settings() == {"length": 21}
        assert get("ppo").settings() == {"fast": 12, "slow": 26, "signal": 9}
        assert list(get("kst").settings().values()) == [10, 15, 20, 30, 10, 10, 10, 15, 9]
        assert get("elder_ray").settings() == get("force").settings() == {"length": 13}
        assert get("klinger").settings() == {"fast": 34, "slow": 55, "signal": 13}
        assert get("mass_index").settings() == {"fast": 9, "length": 10}
        assert get("vortex").settings() == get("choppiness").settings() == {"length": 14}


class TestWindows:
    @given(st.lists(st.floats(-1e9, 1e9), max_size=60), st.integers(0, 5), st.integers(1, 20))
    @settings(deadline=None, max_examples=200)
    def test_sums_and_means_are_right(self, values: list[float], lead: int, length: int) -> None:
        padded = [nan] * lead + values
        sums, means = window_sum(np.array(padded), length), window_mean(np.array(padded), length)

        scale = max(map(abs, values), default=1.0)
        assert np.allclose(
            sums, [nan] * lead + summed(values, length), rtol=0, atol=1e-14 * length * scale, equal_nan=True
        )
        assert np.allclose(means, [nan] * lead + sma(values, length), rtol=0, atol=1e-14 * scale, equal_nan=True)

    @given(MONEY, st.lists(MONEY, max_size=30), st.integers(1, 20))
    @settings(deadline=None, max_examples=100)
    def test_the_average_of_what_does_not_move_is_exactly_that(
        self, price: float, before: list[float], length: int
    ) -> None:
        found = window_mean(np.array([*before, *[price] * 40]), length)

        assert (found[len(before) + length - 1 :] == price).all()
