"""A kernel finds the trades of a run: at which bars, at which prices, and why each was closed.

There are two that return equal bits: `kernel_numba`, if numba is installed (the extra `fast`), and `kernel_numpy`. They know
only long positions. For short ones all prices are negated: then a higher number is a better price for both sides, and
because floats are symmetric around 0, nothing is rounded differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.backtest.rules import Factors
from openbell.backtest.trades import Indexes
from openbell.market.bars import Values

Mask = npt.NDArray[np.bool_]
Found = tuple[Indexes, Indexes, Indexes, Values, Values]
"""One value per trade: entry bar, exit bar, reason (a position in `REASONS`), entry price and exit price."""


class Series(NamedTuple):
    """The bars and conditions of a run, one value per bar."""

    opened: Values
    adverse: Values
    """The worst price of each bar: the low, or the negated high."""
    favourable: Values
    """The best price of each bar: the high, or the negated low."""
    closed: Values
    entry: Mask
    leaving: Mask


Kernel = Callable[[Series, Factors], Found]
"""Finds the trades of a run."""
