"""Pictures of evaluated bars: what generate_chart and `openbell chart` ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from openbell.charts.look import Look
from openbell.desk.pictures.indicators import Evaluation
from openbell.market.bars import Bars
from openbell.market.errors import NotFinite
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.charts.account.overlay import AccountOverlay
    from openbell.charts.config.plots import StudyPlot

_SMALLEST_DRAWN, _LARGEST_DRAWN = 1e-100, 1e100
"""Prices and volumes beyond these overflow in the arithmetic of axes and paths."""


class ChartService:
    """Draws."""

    def __init__(self, threads: Threads) -> None:
        """`threads` draw, so that the event loop goes on."""
        self._threads = threads

    async def draw(
        self,
        shown: Evaluation,
        look: Look,
        title: str,
        badge: str,
        form: str = "png",
        plots: Sequence[StudyPlot] = (),
        *,
        overlay: AccountOverlay | None = None,
        zone: tzinfo | None = None,
    ) -> bytes:
        """The picture as a file: `png`, `jpeg` or `svg`. Raises `NotFinite` if no axis can hold its prices or volumes.

        `plots` say how single indicators are drawn. `overlay` is what is drawn of an account. `zone` is the time zone of the
        axis; None for that of the market.
        """
        check_drawable(shown.whole)
        return await self._threads.run(_draw, shown, look, title, badge, form, plots, overlay, zone)


def title_of(shown: Evaluation, interval: str) -> str:
    """Returns the title of a chart; `interval` is the timeframe as it was asked for."""
    parts = [str(shown.bars.instrument), interval, f"{shown.hours} hours" if shown.hours else ""]
    return " · ".join(filter(None, parts))


def check_drawable(bars: Bars) -> None:
    """Raises `NotFinite` if no axis can hold the prices or volumes of bars."""
    low, high, volume = (float(each) for each in (bars.low.min(), bars.high.max(), bars.volume.max()))
    if low < _SMALLEST_DRAWN or max(high, volume) > _LARGEST_DRAWN:
        raise NotFinite(
            f"prices from {low:g} to {high:g} and volumes up to {volume:g} cannot be drawn; ask for format summary or series"
        )


def _draw(
    shown: Evaluation,
    look: Look,
    title: str,
    badge: str,
    form: str,
    plots: Sequence[StudyPlot],
    overlay: AccountOverlay | None,
    zone: tzinfo | None,
) -> bytes:
    from openbell.charts.compose import compose
    from openbell.charts.look import ChartOptions
    from openbell.charts.picture import picture

    options = ChartOptions(zone=zone)
    if overlay is None:
        scene = compose(shown.bars, shown.indicators, look, title, badge, shown.whole, options=options, plots=plots)
        return picture(scene, look.scale, form)
    from openbell.charts.account.paint import marks_of, painter_of
    from openbell.charts.themes import THEMES

    scene = compose(
        shown.bars,
        shown.indicators,
        look,
        title,
        badge,
        shown.whole,
        painter_of(overlay),
        options=options,
        plots=plots,
        marks=marks_of(overlay, THEMES[look.theme]),
        notes=[overlay.legend],
    )
    return picture(scene, look.scale, form)
