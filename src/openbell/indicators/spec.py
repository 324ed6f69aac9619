"""What an indicator is: a value that names itself, its parameters and its two ways of computing.

`compute` takes all bars at once, `stream` one bar after another; both give the same numbers (the shared test holds every
entry of the registry to that, and to never seeing the future).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from openbell.indicators.channels import BarSignal, Channels, Direction
from openbell.indicators.regular_hours import regular_part
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.extras import Extra
from openbell.market.nearest import check_one_of, did_you_mean

Number = int | float
Setting = int | float | str | bool


class Bar(NamedTuple):
    """One bar as a stream takes it; `day` is equal within a trading day (`session_days`), −1 without any time in one.

    A stream of `regular` takes what was traded in regular hours: NaN prices and no volume where nothing was.
    """

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


@runtime_checkable
class SignalStream(Stream, Protocol):
    """The running form of an indicator that emits signals."""

    def signals(self) -> tuple[BarSignal, ...]:
        """The signals that the bar of the latest `update` confirms, in the order of the array form."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that a caller may set: a number with bounds (whole if the default is), a choice, or a switch."""

    name: str
    default: Setting
    low: Number = 0
    high: Number = 0
    choices: tuple[str, ...] = ()

    def check(self, value: object) -> Setting:
        """The value, if it may stand. Raises `InvalidParameter`."""
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise InvalidParameter(f"{self.name} must be true or false, not {value!r}")
            return value
        if isinstance(self.default, str):
            check_one_of(self.name, value, self.choices)
            return str(value)
        return self._number(value)

    def _number(self, value: object) -> Number:
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
    """(bars, **parameters), each of `needs` by its name, and `regular` by its."""
    warmup: Callable[..., int]
    """How many bars the first value of the slowest line needs."""
    stream: Callable[..., Stream] | None = None
    """None for profiles, which look at a range of bars as a whole, and for what needs other data. Returns a `SignalStream`
    if the indicator has `signals`."""
    parameters: tuple[Parameter, ...] = ()
    aliases: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ("close",)
    needs: tuple[str, ...] = ()
    """Series beyond bars that the feed must have: `funding`, `open_interest`, …"""
    regular: bool = False
    """Computed on what was traded of each bar in regular hours: bars like the given ones, without prices and volume where
    nothing was."""
    by_day: bool = False
    """Its stream reads the day of each bar; other streams may get −1."""
    signals: Mapping[str, Direction] = field(default_factory=dict)
    """The labels of the signals that it can emit, and what each speaks for."""
    profile: bool = False
    """Computed on the bars that are shown, not on those before them."""
    displaced: tuple[str, ...] = ()
    """Lines that are drawn earlier than they are known, such as Ichimoku's lagging span."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The signals it can emit."""
        return tuple(self.signals)

    def settings(self, **overrides: object) -> dict[str, Setting]:
        """The parameters with a caller's overrides, checked."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in overrides:
            if name not in known:
                said = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
                raise InvalidParameter(f"{self.name} has no parameter {name[:80]!r}{said}")
        return {name: p.check(overrides[name]) if name in overrides else p.default for name, p in known.items()}

    def label(self, settings: Mapping[str, Setting]) -> str:
        """What a legend calls it: `RSI(14)`; switches and choices are left out."""
        numbers = [value for value in settings.values() if not isinstance(value, bool | str)]
        return f"{self.title}({','.join(f'{value:g}' for value in numbers)})" if numbers else self.title

    def run(
        self, bars: Bars, extras: Mapping[str, Extra] | None = None, regular: Bars | None = None, /, **overrides: object
    ) -> Channels:
        """Compute with checked parameters; `extras` holds what `needs` names.

        Without the `regular` part of the bars it is taken from the bars themselves, which raises `DataError` if they hold
        more than regular hours.
        """
        given: dict[str, Extra | Bars] = {name: (extras or {})[name] for name in self.needs}
        if self.regular:
            given["regular"] = regular_part(bars) if regular is None else regular
        return self.compute(bars, **given, **self.settings(**overrides))
