"""The indicators of a strategy as a chart draws them, with the levels that its conditions compare them with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isfinite

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.evaluation import Computed, IndicatorRequest
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars
from openbell.strategies.compiled import Compiled, IndicatorStep
from openbell.strategies.evaluation import Arrays, lines_over
from openbell.strategies.reachable import range_of
from openbell.strategies.spec import Comparison, Condition, ConditionGroup, LineOperand


def strategy_indicators(strategy: Compiled, bars: Bars, regular: Bars | None = None) -> list[Computed]:
    """Returns the indicators of a strategy over all bars. `regular` is as in `evaluate`.

    An average of another indicator is drawn in the panel of that indicator. Signals and divergences are left out, because
    the strategy does not use them.
    """
    arrays = lines_over(strategy, bars, regular)
    steps = {step.id: step for step in strategy.steps}
    found: list[Computed] = []
    for step in strategy.steps:
        if _host(step, steps) is None:
            added = [each for each in strategy.steps if _host(each, steps) is step]
            found.append(_drawn(strategy, step, added, bars, regular, arrays))
    return found


def _host(step: IndicatorStep, steps: dict[str, IndicatorStep]) -> IndicatorStep | None:
    """Returns the indicator in whose panel a step is drawn; None if it has its own panel or is drawn over the price."""
    source = steps.get(step.input.indicator or "") if step.input else None
    if source is None or not step.indicator.overlay:
        return None
    over_price = source.indicator.overlay and not _is_volume(source)
    return _host(source, steps) or (None if over_price else source)


def _drawn(
    strategy: Compiled,
    step: IndicatorStep,
    added: list[IndicatorStep],
    bars: Bars,
    regular: Bars | None,
    arrays: Arrays,
) -> Computed:
    if step.input is not None:
        found = _of_lines(step, arrays)
    else:
        part = regular if step.indicator.regular else None
        channels = step.indicator.run(bars, None, part, **step.settings)
        kept = replace(channels, signals=(), divlines=())
        found = Computed(IndicatorRequest(step.id, step.indicator, step.settings), kept)
    if found.request.indicator.overlay:
        return found
    levels = tuple(
        Level(each, "condition") for each in sorted(set(_levels((*strategy.entry, *strategy.exit), step.id)))
    )
    channels = replace(found.channels, hlines=levels or found.channels.hlines)
    if not added:
        return replace(found, channels=channels)
    lines = tuple(Line(_label(each), arrays[line]) for each in added for line in each.lines)
    title = " · ".join((found.request.label, *(_label(each) for each in added)))
    return plain(title, replace(channels, lines=(*channels.lines, *lines)), overlay=False, name=step.indicator.name)


def _of_lines(step: IndicatorStep, arrays: Arrays) -> Computed:
    """Returns an indicator that is computed from a line, in its declared range if it has one."""
    named = step.indicator.name
    lines = tuple(Line(line.name, arrays[line]) for line in step.lines)
    low, high = range_of(named, step.lines[0].name)
    channels = Channels(lines=lines, y_range=(low, high) if isfinite(low) and isfinite(high) else None)
    overlay = step.indicator.overlay and not _is_volume(step)
    return plain(f"{_label(step)} of {step.input}", channels, overlay=overlay, name=named)


def _is_volume(step: IndicatorStep) -> bool:
    return step.input == LineOperand(None, "volume")


def _label(step: IndicatorStep) -> str:
    return step.indicator.label(step.settings)


def _levels(conditions: Iterable[Condition], indicator: str) -> Iterator[float]:
    """Yields the numbers that conditions compare the lines of an indicator with."""
    for each in conditions:
        if isinstance(each, ConditionGroup):
            yield from _levels(each.conditions, indicator)
        elif isinstance(each, Comparison) and each.line.indicator == indicator and isinstance(each.other, int | float):
            yield float(each.other)


def plain(title: str, channels: Channels, *, overlay: bool, name: str = "") -> Computed:
    """Returns channels under a title. They are drawn as the indicator `name` is; by default as lines."""
    indicator = Indicator(
        name=name or title, title=title, description="", overlay=overlay, compute=lambda: channels, warmup=lambda: 1
    )
    return Computed(IndicatorRequest(title, indicator, {}), channels)
