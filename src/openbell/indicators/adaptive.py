"""Averages that move towards each price by a weight of its own: the weights over arrays, the steps one by one."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Values


def adaptive_average(prices: Values, weights: Values, start: int, seeds: Values) -> Values:
    """The average from the bar `start` on, where it is the seed of that bar; NaN before it."""
    out = np.full(len(prices), np.nan)
    if start < len(prices):
        value = float(seeds[start])
        steps = zip(prices[start + 1 :].tolist(), weights[start + 1 :].tolist(), strict=True)
        out[start:] = [value, *[value := value + weight * (price - value) for price, weight in steps]]
    return out
