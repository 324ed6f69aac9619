"""The rules of a run: what it starts with, what trading costs, and why a position is closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import nan
from typing import NamedTuple

from openbell.market.errors import InvalidParameter
from openbell.strategies.spec import ConditionType, PositionSide


class Reason(StrEnum):
    """Why a position was closed."""

    SIGNAL = "SIGNAL"
    """The exit conditions held at a close."""
    STOP_LOSS = "STOP_LOSS"
    TRAILING_STOP = "TRAILING_STOP"
    TARGET = "TARGET"
    END = "END"
    """The bars ended: it is valued at the last close (`Setup.closes_at_end`)."""


REASONS = tuple(Reason)
"""Kernels return positions in this tuple."""
SIGNAL, STOP_LOSS, TRAILING_STOP, TARGET, END = range(len(REASONS))


@dataclass(frozen=True, slots=True)
class Setup:
    """The cash at the start, and costs as shares. Raises `InvalidParameter`."""

    cash: float = 10_000.0
    fee: float = 0.001
    """Share of the traded value."""
    slippage: float = 0.0
    """Share of the price, always to the disadvantage of the order; targets have none."""
    closes_at_end: bool = False
    """A position that is open at the end is closed at the last close, with costs. Otherwise it is valued without them."""

    @property
    def costs(self) -> tuple[float, float]:
        """Fee and slippage."""
        return self.fee, self.slippage

    def __post_init__(self) -> None:
        if not 0 < self.cash <= 1e15:
            raise InvalidParameter(f"cash must be more than 0 and at most 1e15, not {self.cash}")
        for name in ("fee", "slippage"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidParameter(f"{name} must be a share from 0 to less than 1, not {getattr(self, name)}")


class Factors(NamedTuple):
    """Numbers by which prices are multiplied. A stop that is not used is NaN: no price reaches it."""

    enter: float
    """The open, for the price of a market order that opens."""
    leave: float
    """The open or a stop's level, for the price of an order that closes."""
    loss: float
    """The entry price, for the level of the stop loss."""
    trail: float
    """The best price since the entry, for the level of the trailing stop."""
    target: float
    """The entry price, for the level of the target."""


def factors(side: PositionSide, stops: Mapping[ConditionType, float], setup: Setup) -> Factors:
    """Returns the factors of a side, its stops in per cent and its slippage."""
    up = 1.0 if side is PositionSide.LONG else -1.0
    loss, trail, target = (stops.get(each, nan) / 100.0 for each in _STOPS)
    return Factors(
        enter=1.0 + up * setup.slippage,
        leave=1.0 - up * setup.slippage,
        loss=1.0 - up * loss,
        trail=1.0 - up * trail,
        target=1.0 + up * target,
    )


_STOPS = (ConditionType.STOP_LOSS, ConditionType.TRAILING_STOP_LOSS, ConditionType.STOP_GAIN)
