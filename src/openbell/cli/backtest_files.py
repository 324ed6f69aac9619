"""The files that `openbell backtest` writes: the picture of the equity, and the report as a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openbell.cli.output_files import PICTURES

if TYPE_CHECKING:
    from openbell.backtest.rules import Setup
    from openbell.backtest.runs import Backtest
    from openbell.strategies.compiled import Compiled

PAGES = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Ran:
    """A backtest that was run, and the data behind it."""

    strategy: Compiled
    found: Backtest
    setup: Setup
    data: str
    """The origins of the bars, joined by +."""
    source: str
    """Where the bars come from and what they are made of."""


def equity_picture(done: Ran, file: Path) -> bytes:
    """Returns the picture of the equity in the format of the file. Raises `NotFinite`."""
    from openbell.charts.backtest_charts import equity_scene
    from openbell.charts.look import Look
    from openbell.charts.picture import picture

    badge = "SIMULATED" if "simulated" in done.data else ""
    scene = equity_scene(done.found, Look(), f"{done.strategy.name} · {done.found.bars.series}", badge)
    return picture(scene, form=PICTURES[file.suffix.lower()])


def report_page(done: Ran, _file: Path) -> bytes:
    """Returns the page. Raises `NotFinite`."""
    from openbell.charts.report import Report, page

    return page(Report(done.strategy, done.found, done.setup, done.data, done.source)).encode()
