"""Lines that are drawn a number of bars after the bar that determines them."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Values

MAX_OFFSET = 500


def shifted_later(values: Values, by: int) -> Values:
    """The values `by` bars later, cut off at the last bar."""
    out = np.full(len(values), np.nan)
    out[by:] = values[: max(0, len(values) - by)]
    return out


def beyond_the_last(values: Values, by: int) -> Values:
    """The values that `shifted_later` cuts off: those of the `by` bars after the last one."""
    out = np.full(by, np.nan)
    kept = min(by, len(values))
    out[by - kept :] = values[len(values) - kept :]
    return out
