"""Draws chart configs from this desk's bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openbell.charts.config.model import ChartConfig
from openbell.desk.bars.facts import bar_facts
from openbell.desk.pictures.chart_image.errors import ConfigRefused
from openbell.desk.pictures.charts import check_drawable
from openbell.desk.pictures.indicators import Evaluation, warm_up
from openbell.market.bars import Bars, closed_at
from openbell.market.errors import InvalidParameter, InvalidSymbol, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.provenance import BarFacts
from openbell.market.timeframes import CHART
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.charts.config.plots import StudyPlot
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.symbol_advice import SymbolAdvice
    from openbell.desk.pictures.indicators import IndicatorService

ENGINE = "openbell"
_MOST_IGNORED = 8


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
        from openbell.desk.pictures.chart_image.window import window_of

        if missing := undrawn(config):
            raise ConfigRefused([{"field": "studies", "message": f"{name} cannot be drawn here"} for name in missing])
        instrument = await self._instrument(config)
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

    async def _instrument(self, config: ChartConfig) -> Instrument:
        try:
            return await self._bars().find(config.symbol)
        except (InvalidSymbol, UnknownSymbol):
            hint = await self._advice.hint(config.symbol)
            message = (
                f"this desk has no bars of {config.symbol}: get_exchanges and get_symbols list what it can draw{hint}"
            )
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
