"""Draws chart configs from this desk's bars: those that a config shows, with those before them that its studies need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from openbell.charts.config.model import ChartConfig
from openbell.charts.config.ranges import bounds_of
from openbell.charts.config.validation import MOST_BARS
from openbell.desk.bars.facts import bar_facts
from openbell.desk.bars.regular_bars import (
    RegularBars,
    has_extended_hours,
    newest_regular,
    without_extended_hours,
)
from openbell.desk.bars.service import MOST_CACHED, BarService
from openbell.desk.pictures.chart_image.directory_lists import full_symbol
from openbell.desk.pictures.chart_image.errors import ConfigRefused
from openbell.desk.pictures.charts import check_drawable
from openbell.desk.pictures.indicators import Evaluation, warm_up
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter, InvalidSymbol, NoData, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.provenance import BarFacts
from openbell.market.series import Series
from openbell.market.sessions import REGULAR
from openbell.market.timeframes import CHART, Timeframe
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.charts.config.plots import StudyPlot
    from openbell.desk.bars.symbol_advice import SymbolAdvice
    from openbell.desk.pictures.indicators import IndicatorService

ENGINE = "openbell"
_MOST_IGNORED = 8
DEFAULT_BARS = 200
"""The bars of a chart without a range."""
_CLOSED = 5 * 86400
"""Seconds for which a market may be closed."""
_MINUTE = 60
_NEARLY = 0.95
_LATE = 0.05
"""The part of a range after which missing bars are said."""


@dataclass(frozen=True, slots=True)
class DrawnBars:
    """The bars of a picture."""

    instrument: Instrument
    end: int
    """When the newest of them closed."""
    facts: BarFacts


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture, the bars that it shows, and what it does not show as asked."""

    data: bytes
    bars: DrawnBars
    notes: tuple[str, ...]


class OwnEngine:
    """The renderer of this desk."""

    def __init__(
        self,
        bars: Callable[[], BarService],
        indicators: Callable[[], IndicatorService],
        advice: SymbolAdvice,
        threads: Threads,
        *,
        simulated: bool,
    ) -> None:
        """`threads` draw. `simulated`: pictures say that their bars are simulated."""
        self._bars = bars
        self._indicators = indicators
        self._advice = advice
        self._threads = threads
        self._badge = "SIMULATED" if simulated else ""

    async def draw(self, config: ChartConfig) -> Drawn:
        """Returns the picture of a config. Raises `ConfigRefused` and `DataError`."""
        from openbell.charts.config.looks import unsupported
        from openbell.charts.config.plots import requests_of, undrawn

        if missing := undrawn(config):
            raise ConfigRefused([{"field": "studies", "message": f"{name} cannot be drawn here"} for name in missing])
        instrument = await self.instrument(config.symbol)
        timeframe = CHART[config.interval]
        try:
            plots = requests_of(config)
        except InvalidParameter as error:
            raise ConfigRefused([{"field": "studies", "message": error.message}]) from None
        requests = [each.request for each in plots]
        needed = warm_up(requests, timeframe)
        window = await window_of(self._bars(), config, instrument, timeframe, needed)
        shown = await self._indicators().evaluate_bars(window.bars, window.count, requests)
        check_drawable(shown.whole)
        data, outside = await self._threads.run(_draw, config, shown, plots, self._badge)
        ignored = unsupported(config)
        if len(ignored) > _MOST_IGNORED:
            ignored = [*ignored[:_MOST_IGNORED], f"and {len(ignored) - _MOST_IGNORED} more that are not supported"]
        notes = [*window.notes, *ignored, *outside, *_extra_notes(shown)]
        facts = await bar_facts(self._bars(), shown.bars)
        return Drawn(data, DrawnBars(instrument, closed_at(shown.bars), facts), tuple(notes))

    async def instrument(self, symbol: str) -> Instrument:
        """Returns the instrument of a config's symbol. Raises `ConfigRefused` if this desk has no bars of it."""
        try:
            return await self._bars().find(symbol)
        except (InvalidSymbol, UnknownSymbol):
            exchange = symbol.partition(":")[0]
            hint = await self._advice.hint(symbol, written=lambda found: full_symbol(found, exchange))
            message = f"this desk has no bars of {symbol}: get_exchanges and get_symbols list what it can draw{hint}"
            raise ConfigRefused([{"field": "symbol", "message": message}]) from None


def _extra_notes(shown: Evaluation) -> list[str]:
    return [f"{each.request.label}: {each.note}" for each in shown.indicators if each.note]


def _draw(config: ChartConfig, shown: Evaluation, plots: list[StudyPlot], badge: str) -> tuple[bytes, list[str]]:
    """Returns the picture, and a note for each drawing of which nothing is seen."""
    from openbell.charts.compose import compose
    from openbell.charts.config.looks import look_of, options_of
    from openbell.charts.picture import picture

    look = look_of(config)
    scene = compose(
        shown.bars,
        shown.indicators,
        look,
        title_of(shown.bars, config),
        badge,
        shown.whole,
        options=options_of(config),
        plots=plots,
        drawings=config.drawings,
    )
    outside = [f"drawings[{at}] ({config.drawings[at].kind.name}) is outside the picture" for at in scene.outside]
    return picture(scene, look.scale, config.format), outside


def title_of(bars: Bars, config: ChartConfig) -> str:
    """Returns the title of a picture: this desk's instrument, not the exchange that the config names."""
    return f"{bars.instrument} · {config.interval}"


@dataclass(frozen=True, slots=True)
class BarWindow:
    """Bars, of which the newest `count` are shown."""

    bars: Bars
    count: int
    notes: tuple[str, ...] = ()


async def window_of(
    service: BarService, config: ChartConfig, instrument: Instrument, timeframe: Timeframe, warm_up: int
) -> BarWindow:
    """Returns the closed bars of a config's range, and `warm_up` bars before them. Raises `NoData` if none are shown.

    A bar is shown if it opens before the end of the range and contains its start or opens after it.
    """
    closed = service.closed_until()
    bounds = bounds_of(config.range, datetime.fromtimestamp(service.clock.epoch(), UTC)) if config.range else None
    asked = None
    if bounds is not None and bounds.start is not None:
        asked = bucket_start(instrument, timeframe, bounds.start.timestamp())
    # The vendor's clients write the last moment of a day: it belongs to the day.
    end = closed if bounds is None else min(closed, ceil(bounds.end.timestamp() / _MINUTE) * _MINUTE)
    found = await _read(service, config, Series(instrument, timeframe), _Wanted(asked, end, closed, warm_up))
    bars = found.bars.take(found.bars.time < end)
    most = MOST_BARS if bounds is not None else DEFAULT_BARS
    count = len(bars) if asked is None else int((bars.time >= asked).sum())
    # A shift moves the range to the past instead of making it shorter.
    bars = bars.take(slice(0, max(0, len(bars) - config.shift_left)))
    count = min(count, most, len(bars))
    if not count:
        raise NoData(
            f"{instrument}: there are no closed bars of {config.interval} in the range {config.range or 'asked for'}: "
            "choose a longer range or a shorter interval"
        )
    notes = [replace(found, bars=bars).note(count), _missing(bars, count, asked, config) if bounds else None]
    return BarWindow(bars, count, tuple(filter(None, notes)))


class _Wanted(NamedTuple):
    """Times as epoch seconds: where the range begins (None: anywhere) and ends, and what has closed."""

    start: int | None
    end: int
    closed: int
    warm_up: int


async def _read(service: BarService, config: ChartConfig, series: Series, wanted: _Wanted) -> RegularBars:
    """Returns the bars of a range and those before them, at most `MOST_BARS` of the range: others are not fetched."""
    instrument, timeframe = series.instrument, series.timeframe
    more, is_regular = wanted.warm_up + config.shift_left, config.session == REGULAR
    if wanted.start is None:
        count = (DEFAULT_BARS if config.range is None else MOST_BARS) + more
        if is_regular:
            return await newest_regular(service, instrument, timeframe, count)
        return RegularBars(await service.newest(instrument, timeframe, min(MOST_CACHED, count)))
    start = max(wanted.start, lookback_start(instrument, timeframe, MOST_BARS, wanted.end))
    # More bars must be read than are shown if some of them are left out.
    is_cut = is_regular and has_extended_hours(instrument, timeframe)
    if wanted.end < wanted.closed - timeframe.seconds or is_cut:
        first = lookback_start(instrument, timeframe, more, min(start, wanted.end))
        bars = await service.span(series, max(0, first), min(wanted.closed, wanted.end + timeframe.seconds))
    else:
        count = -(-max(0, wanted.end - start) // timeframe.seconds) + 1
        bars = await service.newest(instrument, timeframe, min(MOST_CACHED, count + more))
    return await without_extended_hours(service, bars) if is_regular else RegularBars(bars)


def _missing(bars: Bars, count: int, asked: int | None, config: ChartConfig) -> str | None:
    """Returns why the picture begins later than the range; None if it does not."""
    first = int(bars.time[-count])
    if len(bars) >= MOST_CACHED or count > _NEARLY * MOST_BARS:
        return (
            f"the newest {count:,} bars of range {config.range} are drawn" if asked is None or first > asked else None
        )
    if (
        asked is not None
        and not config.shift_left
        and first - asked > max(_CLOSED, (int(bars.time[-1]) - asked) * _LATE)
    ):
        return f"there are no bars before {iso(first)}"
    return None
