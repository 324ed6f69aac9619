"""Specs for tests: one by hand, and random valid ones over the whole registry."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from openbell.indicators.registry import all_indicators
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.strategies.indicator_names import COLUMNS, known_lines, takes_line

Raw = dict[str, Any]
USABLE = [each for each in all_indicators().values() if not each.profile and not each.needs and known_lines(each)]
SINGLE = [each for each in USABLE if takes_line(each)]


def crossover() -> Raw:
    """A valid spec in the contract's form."""
    return {
        "name": "SMA_EMA_CROSSOVER",
        "description": "Long while the SMA is above the EMA",
        "complexity": "SIMPLE",
        "indicators": [
            {"id": "sma", "type": "SMA", "params": {"period": "${smaPeriod}"}},
            {"id": "ema", "type": "EMA", "input": "close", "params": {"length": "${emaPeriod}"}},
        ],
        "entryConditions": [{"type": "CROSSED_UP", "indicator": "sma", "params": {"crosses": "ema"}}],
        "exitConditions": [{"type": "CROSSED_DOWN", "indicator": "sma", "params": {"crosses": "ema"}}],
        "parameters": [
            {"name": "smaPeriod", "type": "INTEGER", "min": 2, "max": 50, "defaultValue": 5},
            {"name": "emaPeriod", "type": "INTEGER", "min": 2, "max": 50, "defaultValue": 9},
        ],
    }


def walk(seed: int, count: int, symbol: str = "BTC/USD", timeframe: Timeframe = Timeframe.H1) -> Bars:
    """Bars of a random walk."""
    chance = np.random.default_rng(seed)
    close = 100 * np.exp(np.cumsum(chance.normal(0, 0.01, count)))
    opened = np.concatenate(([100.0], close[:-1])) * np.exp(chance.normal(0, 0.002, count))
    high = np.maximum(opened, close) * (1 + chance.exponential(0.003, count))
    low = np.minimum(opened, close) * (1 - chance.exponential(0.003, count).clip(0, 0.5))
    start = 1_700_006_400 // timeframe.seconds * timeframe.seconds
    times = start + timeframe.seconds * np.arange(count)
    return make(parse(symbol), timeframe, times, opened, high, low, close, chance.lognormal(3, 1, count))


def random_spec(chance: random.Random) -> Raw:
    """A valid spec: indicators of the registry, also on each other, with nested conditions."""
    indicators: list[Raw] = []
    lines = [*COLUMNS]
    for at in range(chance.randint(1, 4)):
        on_line = bool(indicators) and chance.random() < 0.3
        kind = chance.choice(SINGLE if on_line else USABLE)
        entry: Raw = {"id": f"i{at}", "type": kind.name, "params": _settings(kind, chance)}
        if on_line:
            entry["input"] = chance.choice([each for each in lines if "." in each])
        indicators.append(entry)
        lines += [f"i{at}.{name}" for name in known_lines(kind)]
    own = [each for each in lines if "." in each]
    entry_conditions = [_condition(own, lines, chance, 0) for _ in range(chance.randint(1, 2))]
    # Every indicator is used, so that nothing is idle.
    entry_conditions.append({"type": "OR", "conditions": [_leaf(f"{each}", lines, chance) for each in own]})
    return {
        "name": f"RANDOM_{chance.randrange(10**6)}",
        "indicators": indicators,
        "entryConditions": entry_conditions,
        "exitConditions": [_condition(own, lines, chance, 0)],
        "parameters": [],
    }


def _settings(kind: Indicator, chance: random.Random) -> Raw:
    return {each.name: _small(each, chance) for each in kind.parameters if chance.random() < 0.5}


def _small(parameter: Parameter, chance: random.Random) -> object:
    if isinstance(parameter.default, bool):
        return chance.random() < 0.5
    if isinstance(parameter.default, str):
        return chance.choice(parameter.choices)
    if isinstance(parameter.default, int):
        return chance.randint(int(parameter.low), int(min(parameter.high, max(parameter.low, 30))))
    return chance.uniform(parameter.low, min(parameter.high, max(2 * parameter.default, parameter.low)))


def _condition(own: list[str], lines: list[str], chance: random.Random, depth: int) -> Raw:
    if depth < 3 and chance.random() < 0.35:
        kind = chance.choice(["AND", "OR", "NOT"])
        count = 1 if kind == "NOT" else chance.randint(1, 3)
        return {"type": kind, "conditions": [_condition(own, lines, chance, depth + 1) for _ in range(count)]}
    return _leaf(chance.choice(own), lines, chance)


def _leaf(line: str, lines: list[str], chance: random.Random) -> Raw:
    if chance.random() < 0.25:
        kind = chance.choice(["IS_RISING", "IS_FALLING"])
        return {"type": kind, "indicator": line, "params": {"barCount": chance.randint(1, 4)}}
    other: object = chance.choice([each for each in lines if each != line])
    if chance.random() < 0.4:
        other = chance.choice([0, 0.5, 30, 50, 70, 100.0])
    kind = chance.choice(["CROSSED_UP", "CROSSED_DOWN", "OVER", "UNDER"])
    return {"type": kind, "indicator": line, "params": {chance.choice(["crosses", "other", "value"]): other}}
