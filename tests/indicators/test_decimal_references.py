"""Comparisons that tie on real prices, against the definitions in decimals: there a tie is exact.

Prices are a few ticks apart, as those of a currency or of a stock: equal typical prices and equal moves are frequent.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, getcontext
from math import nan

import numpy as np
import pytest

from openbell.indicators.registry import get
from openbell.market.bars import Bars, Values
from tests.indicators.test_float_ties import SERIES

getcontext().prec = 60
ZERO = Decimal(0)


def decimals(values: Values) -> list[Decimal]:
    """The prices as they were quoted."""
    return [Decimal(repr(value)) for value in values.tolist()]


def typical(bars: Bars) -> list[Decimal]:
    high, low, close = (decimals(column) for column in (bars.high, bars.low, bars.close))
    return [(h + w + c) / 3 for h, w, c in zip(high, low, close, strict=True)]


def smoothed(values: Sequence[Decimal | None], length: int, weight: Decimal) -> list[Decimal | None]:
    """Starts with the simple average of the first `length` known values."""
    out: list[Decimal | None] = []
    known: list[Decimal] = []
    level: Decimal | None = None
    for value in values:
        if value is not None:
            known.append(value)
            if level is not None:
                level += weight * (value - level)
            elif len(known) == length:
                level = sum(known, ZERO) / length
        out.append(level if value is not None else None)
    return out


def ema(values: Sequence[Decimal | None], length: int) -> list[Decimal | None]:
    return smoothed(values, length, Decimal(2) / (length + 1))


def wilder(values: Sequence[Decimal | None], length: int) -> list[Decimal | None]:
    return smoothed(values, length, Decimal(1) / length)


def floats(values: Sequence[Decimal | None]) -> list[float]:
    return [nan if value is None else float(value) for value in values]


def mfi(bars: Bars, length: int) -> list[float]:
    """TradingView's: the first bar, which has no change, is on both sides."""
    price, volume = typical(bars), decimals(bars.volume)
    flow = [p * v for p, v in zip(price, volume, strict=True)]
    rose = [flow[0]] + [flow[i] if price[i] > price[i - 1] else ZERO for i in range(1, len(flow))]
    fell = [flow[0]] + [flow[i] if price[i] < price[i - 1] else ZERO for i in range(1, len(flow))]
    out = [nan] * (length - 1)
    for end in range(length, len(flow) + 1):
        up, down = (sum(side[end - length : end], ZERO) for side in (rose, fell))
        out.append(float(100 * up / (up + down)) if up + down else 50.0)
    return out


def klinger(bars: Bars, fast: int, slow: int) -> list[float]:
    """EMA(34) − EMA(55) of volume, negative where the typical price fell and at the first bar."""
    price, volume = typical(bars), decimals(bars.volume)
    signed = [-volume[0]] + [volume[i] if price[i] >= price[i - 1] else -volume[i] for i in range(1, len(price))]
    pairs = zip(ema(signed, fast), ema(signed, slow), strict=True)
    return [nan if a is None or b is None else float(a - b) for a, b in pairs]


def directional(bars: Bars, length: int) -> tuple[list[float], list[float], list[float]]:
    """ta.dmi: ADX, +DI and −DI. Equal moves are neither up nor down."""
    high, low, close = (decimals(column) for column in (bars.high, bars.low, bars.close))
    up: list[Decimal | None] = [None]
    down: list[Decimal | None] = [None]
    reach: list[Decimal | None] = [None]
    for i in range(1, len(high)):
        rise, fall = high[i] - high[i - 1], low[i - 1] - low[i]
        up.append(rise if rise > fall and rise > 0 else ZERO)
        down.append(fall if fall > rise and fall > 0 else ZERO)
        reach.append(max(high[i], close[i - 1]) - min(low[i], close[i - 1]))
    whole = wilder(reach, length)

    def share(part: Decimal | None, of: Decimal | None) -> Decimal | None:
        return None if part is None or of is None else 100 * part / of if of else ZERO

    plus, minus = ([share(a, b) for a, b in zip(wilder(side, length), whole, strict=True)] for side in (up, down))
    apart = [None if a is None or b is None else share(abs(a - b), a + b) for a, b in zip(plus, minus, strict=True)]
    return floats(wilder(apart, length)), floats(plus), floats(minus)


def flips(bars: Bars) -> list[tuple[int, str]]:
    """Heikin-Ashi candles whose body changes its colour; candles without a body are passed over."""
    opened, high, low, close = (decimals(column) for column in bars.columns()[1:5])
    out = []
    before, side = (opened[0] + close[0]) / 2, 0
    for i in range(len(close)):
        end = (opened[i] + high[i] + low[i] + close[i]) / 4
        # A tie is equal to 50 digits: halves of halves are not finite in 60 digits for ever.
        away = round(end - before, 50)
        now = (away > 0) - (away < 0) or side
        if side and now != side:
            out.append((i, "flip_up" if now > 0 else "flip_down"))
        before, side = (before + end) / 2, now
    return out


def close_to(found: Values, expected: Sequence[float]) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.nanmax(np.abs(expected)), equal_nan=True))


@pytest.mark.parametrize("name", SERIES)
class TestInDecimals:
    def test_typical_prices_tie_and_floats_do_not_show_it(self, name: str) -> None:
        bars = SERIES[name]()
        price = typical(bars)
        rounded = (bars.high + bars.low + bars.close) / 3.0
        ties = [i for i in range(1, len(price)) if price[i] == price[i - 1] and rounded[i] != rounded[i - 1]]

        assert len(ties) >= 5

    def test_mfi(self, name: str) -> None:
        bars = SERIES[name]()

        assert close_to(get("mfi").run(bars).lines[0].values, mfi(bars, 14))
        assert close_to(get("rsi_mfi_stoch").run(bars, mfi_length=9).lines[1].values, mfi(bars, 9))

    def test_klinger(self, name: str) -> None:
        bars = SERIES[name]()

        assert close_to(get("klinger").run(bars).lines[0].values, klinger(bars, 34, 55))

    def test_adx(self, name: str) -> None:
        bars = SERIES[name]()

        for line, expected in zip(get("adx").run(bars).lines, directional(bars, 14), strict=True):
            assert close_to(line.values, expected)

    def test_heikin_ashi(self, name: str) -> None:
        bars = SERIES[name]()

        found = get("heikin_ashi").run(bars).signals

        assert [(signal.index, signal.label) for signal in found] == flips(bars)
