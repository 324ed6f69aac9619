"""Dots on a panel: the bars at which something becomes true, each marked once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import Signal
from openbell.market.bars import Values

Mask = npt.NDArray[np.bool_]


def dots(label: str, where: Mask | npt.NDArray[np.intp], values: Values) -> list[Signal]:
    """A signal at each bar of a mask or of a list of bars."""
    at_bars = np.flatnonzero(where) if where.dtype == np.bool_ else where
    return [Signal(at, value, label) for at, value in zip(at_bars.tolist(), values[at_bars].tolist(), strict=True)]


def in_order(groups: Iterable[list[Signal]]) -> tuple[Signal, ...]:
    """All of them by bar; within one bar in the order of the groups."""
    return tuple(sorted(chain.from_iterable(groups), key=attrgetter("index")))
