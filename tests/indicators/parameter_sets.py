"""Parameters other than the defaults, with which every indicator is compared with its reference."""

from __future__ import annotations

from openbell.indicators.registry import all_indicators
from openbell.indicators.spec import Parameter, Setting

Chosen = dict[str, dict[str, Setting]]
"""Parameters by indicator; those that are not named keep their defaults."""

DEFAULTS: Chosen = {"gap": {"min_gap": 0.05}, "zigzag": {"deviation": 0.5}}
"""The defaults, but for indicators to which nothing happens on EURUSD with them."""
_SMALLER: Chosen = {
    "gap": {"min_gap": 0.02},
    "zigzag": {"deviation": 0.3, "depth": 6},
    "volume_profile": {"range_bars": 100},
    "rainbow": {"length": 3},  # with 1 every average is the close
}
_LARGER: Chosen = {
    "gap": {"min_gap": 0.1},
    "zigzag": {"deviation": 1.0, "depth": 16},
    "volume_profile": {"range_bars": 250},
    "rolling_profile": {"length": 110},
    "frama": {"length": 24},  # must be even
}


def _smaller(parameter: Parameter) -> Setting:
    """About two thirds of a number, the second choice, the switch turned."""
    default = parameter.default
    if isinstance(default, bool):
        return not default
    if isinstance(default, str):
        return parameter.choices[1]
    if isinstance(default, float):
        return max(parameter.low, 0.6 * default) if default > 0.0 else max(parameter.low, 1.4 * default)
    found = max(int(parameter.low), default * 2 // 3)
    return found if found != default else default + 1


def _larger(parameter: Parameter) -> Setting:
    """About one and a half of a number, the last choice."""
    default = parameter.default
    if isinstance(default, bool):
        return default
    if isinstance(default, str):
        return parameter.choices[-1]
    if isinstance(default, float):
        return min(parameter.high, 1.4 * default) if default > 0.0 else 0.6 * default
    return min(int(parameter.high), default * 3 // 2 + 1)


def parameter_sets() -> tuple[Chosen, Chosen]:
    """Two sets with every parameter of every indicator."""
    found = [indicator for indicator in all_indicators().values() if indicator.parameters]
    smaller, larger = (
        {each.name: {p.name: choose(p) for p in each.parameters} | given.get(each.name, {}) for each in found}
        for choose, given in ((_smaller, _SMALLER), (_larger, _LARGER))
    )
    return smaller, larger
