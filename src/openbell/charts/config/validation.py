"""Validates a chart config for a plan: its fields, the plan's limits, and what would draw badly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from openbell.charts.config.choices import PLANS, Plan
from openbell.charts.config.model import ChartConfig
from openbell.charts.config.problems import ConfigProblem, ConfigProblems
from openbell.charts.config.ranges import bounds_of
from openbell.charts.config.reading import CONTRACT, read_config
from openbell.market.errors import InvalidParameter, InvalidSymbol
from openbell.market.instruments import parse
from openbell.market.nearest import did_you_mean
from openbell.market.timeframes import CHART
from openbell.market.trading_time import most_bars

MOST_BARS = 2000
"""The most bars that one chart shows; of a longer range, the newest."""
_FEWEST_BARS = 5
_LONGEST_TABLE = 40 * 366 * 86400
"""Seconds. Longer ranges are not counted session by session."""
_LEAST_PANEL = 60
"""Pixels of the height for each study in a panel of its own, below which its lines cannot be read."""


@dataclass(frozen=True, slots=True)
class ConfigValidation:
    """The result for one config and plan."""

    problems: tuple[ConfigProblem, ...]
    plan: Plan
    studies: int
    drawings: int
    resolution: str
    config: ChartConfig | None = field(default=None, compare=False)

    @property
    def valid(self) -> bool:
        """True if there is no error."""
        return all(each.severity != "error" for each in self.problems)

    @property
    def within_limits(self) -> bool:
        """True if the plan allows so many studies and drawings."""
        return self.studies + self.drawings <= self.plan.parameters

    @property
    def suggestions(self) -> list[str]:
        """What to change, each once."""
        return list(dict.fromkeys(text for each in self.problems for text in each.suggestions))


def plan_of(name: str) -> Plan:
    """Returns the plan of a name, in any case. Raises `InvalidParameter` if there is none."""
    found = PLANS.get(name.strip().upper()) if len(name) <= 40 else None
    if found is None:
        raise InvalidParameter(
            f"no plan {name[:40]!r}; the plans are {', '.join(PLANS)}{did_you_mean(name[:40].upper(), PLANS)}"
        )
    return found


def validate(raw: object, plan: Plan, now: datetime) -> ConfigValidation:
    """Validates a client's config. What this desk has of an instrument is not looked at."""
    reading = read_config(raw, CONTRACT)
    problems = ConfigProblems(list(reading.problems))
    width, height, studies, drawings = _counts(raw, reading.config)
    check_limits(problems, plan, width, height, studies, drawings)
    if reading.config is not None:
        _advise(problems, reading.config, now)
    return ConfigValidation(tuple(problems.found), plan, studies, drawings, f"{width}x{height}", reading.config)


def _counts(raw: object, config: ChartConfig | None) -> tuple[int, int, int, int]:
    """Returns the size and the number of studies and drawings, as far as they can be read of a faulty config."""
    if config is not None:
        return config.width, config.height, len(config.studies), len(config.drawings)
    given = raw if isinstance(raw, dict) else {}
    sides = [given.get(name) for name in ("width", "height")]
    width, height = (
        side if isinstance(side, int) and not isinstance(side, bool) and 0 < side < 10**6 else default
        for side, default in zip(sides, (CONTRACT.width, CONTRACT.height), strict=True)
    )
    lists = [given.get(name) for name in ("studies", "drawings")]
    studies, drawings = (len(each) if isinstance(each, list) else 0 for each in lists)
    return width, height, studies, drawings


def check_limits(problems: ConfigProblems, plan: Plan, width: int, height: int, studies: int, drawings: int) -> None:
    """Adds an error for each limit of the plan that is exceeded.

    Studies are counted before drawings: the error names `studies` if they alone are too many, otherwise `drawings`.
    """
    if width > plan.width or height > plan.height:
        larger = _smallest(each for each in PLANS.values() if width <= each.width and height <= each.height)
        upgrade = (f"Upgrade to {larger.name} plan for higher resolution",) if larger else ()
        problems.error(
            "resolution",
            f"Resolution {width}x{height} exceeds {plan.name} plan limit of {plan.resolution}",
            f"Reduce width to {min(width, plan.width)} and height to {min(height, plan.height)} for {plan.name} plan",
            *upgrade,
        )
    if (parameters := studies + drawings) > plan.parameters:
        larger = _smallest(each for each in PLANS.values() if parameters <= each.parameters)
        upgrade = (f"Upgrade to {larger.name} plan for more studies and drawings",) if larger else ()
        problems.error(
            "studies" if studies > plan.parameters else "drawings",
            f"{parameters} studies and drawings exceed {plan.name} plan limit of {plan.parameters}",
            f"Remove {parameters - plan.parameters} of the studies and drawings for {plan.name} plan",
            *upgrade,
        )


def _smallest(plans: Iterable[Plan]) -> Plan | None:
    return next(iter(plans), None)


def _advise(problems: ConfigProblems, config: ChartConfig, now: datetime) -> None:
    """Adds warnings for what can be drawn, but badly."""
    _advise_range(problems, config, now)
    panels = sum(not each.study.overlay and not each.force_overlay for each in config.studies)
    if panels and config.height / (panels + 2) < _LEAST_PANEL:
        problems.warning(
            "height",
            f"{panels} studies in panels of their own need more than {config.height} pixels",
            f"Increase height to {(panels + 2) * _LEAST_PANEL}",
        )
    for at, each in enumerate(config.studies):
        for fast, slow in (("fastLength", "slowLength"), ("shortLength", "longLength")):
            names = {one.name for one in each.study.inputs}
            if {fast, slow} <= names and float(each.value(fast)) >= float(each.value(slow)):
                problems.warning(
                    f"studies[{at}].inputs.{fast}",
                    f"{each.study.title}: {fast} {each.value(fast)} is not less than {slow} {each.value(slow)}",
                    f"Exchange {fast} and {slow}",
                )


def _advise_range(problems: ConfigProblems, config: ChartConfig, now: datetime) -> None:
    if config.range is None or config.range == "ALL":
        return
    bounds = bounds_of(config.range, now)
    if bounds.start is not None and bounds.start >= now:
        problems.warning("range", f"range {config.range} is in the future: it has no bars", "Choose an earlier range")
        return
    bars = bars_in(config, now, config.interval)
    if bars > MOST_BARS:
        longer = next((name for name in CHART if bars_in(config, now, name) <= MOST_BARS), "")
        advice = (f"Set interval to {longer} to show all of range {config.range}",) if longer else ()
        problems.warning(
            "interval",
            f"range {config.range} has about {bars:,} bars of {config.interval}; the newest {MOST_BARS:,} are drawn",
            *advice,
        )
    elif bars < _FEWEST_BARS:
        shorter = [name for name in CHART if _FEWEST_BARS <= bars_in(config, now, name) <= MOST_BARS]
        advice = (
            (f"Set interval to {shorter[-1]}, or choose a longer range",) if shorter else ("Choose a longer range",)
        )
        count = "no bars" if not bars else f"{bars} {'bar' if bars == 1 else 'bars'}"
        problems.warning("interval", f"range {config.range} has {count} of {config.interval}", *advice)


def bars_in(config: ChartConfig, now: datetime, interval: str) -> int:
    """Returns how many bars of an interval the range of a config can have, by the trading hours of its instrument."""
    bounds = bounds_of(config.range or "", now)
    start, end = int((bounds.start or now).timestamp()), int(min(bounds.end, now).timestamp())
    timeframe = CHART[interval]
    try:
        instrument = parse(config.symbol)
    except InvalidSymbol:
        return max(0, end - start) // timeframe.seconds
    if end - start > _LONGEST_TABLE:
        return max(0, end - start) // timeframe.seconds
    return most_bars(instrument, timeframe, start, end)
