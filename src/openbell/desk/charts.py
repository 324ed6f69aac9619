"""Pictures of evaluated bars: what generate_chart and `openbell chart` ask."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from openbell.charts.look import Look
from openbell.desk.indicators import Evaluation
from openbell.market.bars import Bars
from openbell.market.errors import NotFinite

_SMALLEST_DRAWN, _LARGEST_DRAWN = 1e-100, 1e100
"""Prices and volumes beyond these overflow in the arithmetic of axes and paths."""


class ChartService:
    """Draws."""

    def __init__(self, worker: Executor) -> None:
        """`worker` draws, so that the event loop goes on."""
        self._worker = worker

    async def draw(self, shown: Evaluation, look: Look, title: str, badge: str, form: str = "png") -> bytes:
        """The picture as a file: `png`, `jpeg` or `svg`. Raises `NotFinite` if no axis can hold its prices or volumes."""
        check_drawable(shown.whole)
        return await asyncio.get_running_loop().run_in_executor(self._worker, _draw, shown, look, title, badge, form)


def check_drawable(bars: Bars) -> None:
    """Raises `NotFinite` if no axis can hold the prices or volumes of bars."""
    low, high, volume = (float(each) for each in (bars.low.min(), bars.high.max(), bars.volume.max()))
    if low < _SMALLEST_DRAWN or max(high, volume) > _LARGEST_DRAWN:
        raise NotFinite(
            f"prices from {low:g} to {high:g} and volumes up to {volume:g} cannot be drawn; ask for format summary or series"
        )


def _draw(shown: Evaluation, look: Look, title: str, badge: str, form: str) -> bytes:
    from openbell.charts.compose import compose
    from openbell.charts.picture import picture

    scene = compose(shown.bars, shown.indicators, look, title, badge, shown.whole)
    return picture(scene, look.scale, form)
