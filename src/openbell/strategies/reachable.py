"""Finds conditions that can never hold together: bounds of numbers, and comparisons that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from openbell.strategies.spec import (
    Comparison,
    Condition,
    ConditionGroup,
    ConditionType,
    LineOperand,
    Number,
    Spec,
    Trend,
    Use,
)

_PER_CENT, _SIGNED, _SIGN, _NOT_NEGATIVE = (0.0, 100.0), (-100.0, 100.0), (-1.0, 1.0), (0.0, inf)
_RANGES: dict[str, tuple[float, float]] = {
    "advance_decline": _NOT_NEGATIVE,
    "adx": _PER_CENT,
    "aroon": _PER_CENT,
    "atr": _NOT_NEGATIVE,
    "bb_width": _NOT_NEGATIVE,
    "bop": _SIGN,
    "chop_zone": (-90.0, 90.0),
    "choppiness": _PER_CENT,
    "cipher_b.rsi": _PER_CENT,
    "cipher_b.stoch_d": _PER_CENT,
    "cipher_b.stoch_k": _PER_CENT,
    "cmf": _SIGN,
    "cmo": _SIGNED,
    "connors_rsi": _PER_CENT,
    "double_pattern.pattern": _SIGN,
    "fibonacci.direction": _SIGN,
    "gann_swing.direction": _SIGN,
    "histvol": _NOT_NEGATIVE,
    "majority_rule": _PER_CENT,
    "mass_bulge": (0.0, 1.0),
    "mass_index": _NOT_NEGATIVE,
    "mfi": _PER_CENT,
    "rainbow.bandwidth": _NOT_NEGATIVE,
    "range_bars.count": _NOT_NEGATIVE,
    "range_bars.direction": _SIGN,
    "relative_volume": _NOT_NEGATIVE,
    "renko.bricks": _NOT_NEGATIVE,
    "renko.direction": _SIGN,
    "rsi": _PER_CENT,
    "rsi_mfi_stoch": _PER_CENT,
    "rvi": _SIGN,
    "smi_ergodic": _SIGN,
    "std_dev": _NOT_NEGATIVE,
    "std_error": _NOT_NEGATIVE,
    "stoch": _PER_CENT,
    "stoch_rsi": _PER_CENT,
    "trend_strength": _SIGN,
    "tsi": _SIGNED,
    "ultimate": _PER_CENT,
    "volatility_close": _NOT_NEGATIVE,
    "volatility_ohlc": _NOT_NEGATIVE,
    "volatility_stop.direction": _SIGN,
    "volatility_zero_trend": _NOT_NEGATIVE,
    "volume_balance": _PER_CENT,
    "volume_spread": _NOT_NEGATIVE,
    "volume_spread.close_position": (0.0, 1.0),
    "vortex": _NOT_NEGATIVE,
    "williams_r": (-100.0, 0.0),
}
"""By indicator, or by indicator and line, the range that the values cannot leave."""
_ABOVE = frozenset({ConditionType.OVER, ConditionType.CROSSED_UP})
_BELOW = frozenset({ConditionType.UNDER, ConditionType.CROSSED_DOWN})


def contradiction(conditions: Iterable[Condition], spec: Spec) -> str:
    """Why conditions cannot hold at the same bar; empty if they may."""
    leaves = list(_all_of(conditions))
    for each in leaves:
        if isinstance(each, ConditionGroup):
            reasons = [contradiction((child,), spec) for child in each.conditions]
            if each.type is ConditionType.OR and all(reasons):
                return reasons[0]
    ranges: dict[LineOperand, tuple[float, float]] = {}
    for each in leaves:
        if isinstance(each, Comparison) and not isinstance(each.other, LineOperand):
            low, high = ranges.get(each.line) or _range(each.line, spec)
            least, most = _bounds(each.other, spec)
            low, high = (max(low, least), high) if each.type in _ABOVE else (low, min(high, most))
            if low >= high:
                return f"{each.line} cannot be {each.type} {each.other} here"
            ranges[each.line] = low, high
    return _opposite([each for each in leaves if not isinstance(each, ConditionGroup)])


def _all_of(conditions: Iterable[Condition]) -> Iterable[Condition]:
    """The conditions that must all hold, with those of nested ANDs."""
    for each in conditions:
        if isinstance(each, ConditionGroup) and each.type is ConditionType.AND:
            yield from _all_of(each.conditions)
        else:
            yield each


def _opposite(leaves: list[Comparison | Trend]) -> str:
    above = {(each.line, each.other) for each in leaves if isinstance(each, Comparison) and each.type in _ABOVE}
    below = {(each.line, each.other) for each in leaves if isinstance(each, Comparison) and each.type in _BELOW}
    for line, other in above:
        if (line, other) in below or (other, line) in above:
            return f"{line} must be above and below {other}"
    for line, other in below:
        if (other, line) in below:
            return f"{line} must be above and below {other}"
    rising = {each.line for each in leaves if isinstance(each, Trend) and each.type is ConditionType.IS_RISING}
    falling = {each.line for each in leaves if isinstance(each, Trend) and each.type is ConditionType.IS_FALLING}
    if both := rising & falling:
        return f"{next(iter(both))} must rise and fall"
    return ""


def range_of(indicator: str, line: str) -> tuple[float, float]:
    """Returns the range that a line of an indicator cannot leave; infinite if it has none."""
    return _RANGES.get(f"{indicator}.{line}") or _RANGES.get(indicator) or (-inf, inf)


def _range(line: LineOperand, spec: Spec) -> tuple[float, float]:
    if line.indicator is None:
        return _NOT_NEGATIVE
    use = next(each for each in spec.indicators if each.id == line.indicator)
    return range_of(use.indicator, line.name)


def _bounds(value: Number | Use, spec: Spec) -> tuple[float, float]:
    """The least and the largest number that a value can be."""
    if not isinstance(value, Use):
        return value, value
    parameter = next(each for each in spec.parameters if each.name == value.name)
    return parameter.low, parameter.high
