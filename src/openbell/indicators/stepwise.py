"""Lines of indicators whose next values depend on the previous ones: one step per bar, the same in both forms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values


def stepwise(step: Callable[..., tuple[float, ...]], width: int, *columns: npt.NDArray[Any]) -> tuple[Values, ...]:
    """Call `step` with the values of each bar, oldest first. Returns a line for each of the `width` values of a step."""
    steps = map(step, *(column.tolist() for column in columns))
    values = np.fromiter(chain.from_iterable(steps), np.float64)
    return tuple(np.ascontiguousarray(values.reshape(-1, width).T))
