"""RSI, money flow index and stochastic in one panel, with signals where they agree."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.channels import Channels, Direction, Line, bounds
from openbell.indicators.float_ties import OSCILLATOR, at_least, at_most
from openbell.indicators.oscillators import money_flow_index, stochastic
from openbell.indicators.rules import Rule, array_signals, becomes, crosses_above
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars, Values

STOCH_OVERBOUGHT, STOCH_OVERSOLD = 80.0, 20.0


def _compute(
    bars: Bars, rsi_length: int, mfi_length: int, stoch_length: int, k: int, d: int, overbought: float, oversold: float
) -> Channels:
    strength, flow = rsi(bars.close, rsi_length), money_flow_index(bars, mfi_length)
    fast, slow = stochastic(bars, stoch_length, k, d)
    return Channels(
        lines=(Line("RSI", strength), Line("MFI", flow), Line("StochK", fast), Line("StochD", slow)),
        signals=array_signals(_rules, (strength, flow, fast, slow), overbought, oversold),
        hlines=bounds(oversold, overbought),
        y_range=(0.0, 100.0),
    )


def _rules(before: Sequence[Values], now: Sequence[Values], overbought: float, oversold: float) -> Sequence[Rule]:
    """A signal where a level is reached; buy and sell where the stochastic crosses while RSI and MFI are at their levels."""
    (strength_before, _, fast_before, slow_before), (strength, flow, fast, slow) = before, now
    low_before, low = (at_most(each, oversold, OSCILLATOR) for each in (strength_before, strength))
    high_before, high = (at_least(each, overbought, OSCILLATOR) for each in (strength_before, strength))
    under_before, under = (at_most(each, STOCH_OVERSOLD, OSCILLATOR) for each in (fast_before, fast))
    over_before, over = (at_least(each, STOCH_OVERBOUGHT, OSCILLATOR) for each in (fast_before, fast))
    up = crosses_above(fast_before, slow_before, fast, slow)
    down = crosses_above(slow_before, fast_before, slow, fast)
    return (
        ("rsi_oversold", becomes(low_before, low), strength),
        ("rsi_overbought", becomes(high_before, high), strength),
        ("stoch_oversold", becomes(under_before, under), fast),
        ("stoch_overbought", becomes(over_before, over), fast),
        ("buy", up & low & at_most(flow, oversold, OSCILLATOR), fast),
        ("sell", down & high & at_least(flow, overbought, OSCILLATOR), fast),
    )


def _warmup(rsi_length: int, mfi_length: int, stoch_length: int, k: int, d: int, **_levels: float) -> int:
    return max(rsi_length + 1, mfi_length, stoch_length + k + d - 2)


INDICATOR = Indicator(
    name="rsi_mfi_stoch",
    title="RSI/MFI/Stoch",
    description="RSI, money flow index and stochastic together; buy or sell where K crosses D with RSI and MFI extreme",
    brief="RSI, money flow and stochastic together; buy or sell",
    overlay=False,
    compute=_compute,
    warmup=_warmup,
    parameters=(
        Parameter("rsi_length", 14, 1, 500),
        Parameter("mfi_length", 14, 1, 500),
        Parameter("stoch_length", 14, 1, 500, aliases=("stoch_k",)),
        Parameter("k", 3, 1, 100, aliases=("stoch_smooth",)),
        Parameter("d", 3, 1, 100, aliases=("stoch_d",)),
        Parameter("overbought", 70.0, 50.0, 100.0),
        Parameter("oversold", 30.0, 0.0, 50.0),
    ),
    aliases=("rsi_combo", "combo"),
    inputs=("high", "low", "close", "volume"),
    signals={
        "rsi_oversold": Direction.UP,
        "rsi_overbought": Direction.DOWN,
        "stoch_oversold": Direction.UP,
        "stoch_overbought": Direction.DOWN,
        "buy": Direction.UP,
        "sell": Direction.DOWN,
    },
    differs="While the price does not move each line is 50, where TradingView has 100 or no value.",
    crosses=(LinePair("StochK", "StochD"),),
)
