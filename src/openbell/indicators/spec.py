"""What an indicator is: a value that names itself, its parameters and its two ways of computing.

`compute` takes all bars at once, `stream` one bar after another; both give the same numbers (the shared test holds every
entry of the registry to that, and to never seeing the future).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from openbell.indicators.channels import Channels
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter

Number = int | float


class Bar(NamedTuple):
    """One bar as a stream takes it; `day` tells trading days apart, −1 outside them."""

    time: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    day: int


class Stream(Protocol):
    """The running form of an indicator."""

    def update(self, bar: Bar) -> tuple[float, ...]:
        """The value of each line (then of each histogram) at this bar; NaN before warm-up."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a caller may set, with its bounds; whole if the default is."""

    name: str
    default: Number
    low: Number
    high: Number

    def check(self, value: object) -> Number:
        """The value, if it may stand."""
        whole = isinstance(self.default, int)
        allowed = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise InvalidParameter(f"{self.name} must be a {'whole ' if whole else ''}number, not {value!r}")
        if not self.low <= value <= self.high:
            raise InvalidParameter(f"{self.name} must be between {self.low} and {self.high}, not {value}")
        return value if whole else float(value)


@dataclass(frozen=True, slots=True)
class Indicator:
    """One entry of the catalogue."""

    name: str
    title: str
    description: str
    overlay: bool
    """Drawn over the price; otherwise in a panel of its own."""
    compute: Callable[..., Channels]
    stream: Callable[..., Stream]
    warmup: Callable[..., int]
    """How many bars the first value of the slowest line needs."""
    parameters: tuple[Parameter, ...] = ()
    aliases: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ("close",)
    labels: tuple[str, ...] = ()
    """The signals it can emit."""

    def settings(self, **overrides: object) -> dict[str, Number]:
        """The parameters with a caller's overrides, checked."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in overrides:
            if name not in known:
                raise InvalidParameter(f"{self.name} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
        return {name: p.check(overrides[name]) if name in overrides else p.default for name, p in known.items()}

    def label(self, settings: dict[str, Number]) -> str:
        """What a legend calls it: `RSI(14)`."""
        shown = ",".join(f"{value:g}" for value in settings.values())
        return f"{self.title}({shown})" if shown else self.title

    def run(self, bars: Bars, **overrides: object) -> Channels:
        """Compute with checked parameters."""
        return self.compute(bars, **self.settings(**overrides))
