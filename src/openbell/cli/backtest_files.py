"""A backtest with the data behind it, and the files that are made of it: the picture of the equity, the report as a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openbell.cli.output_files import PICTURES

if TYPE_CHECKING:
    from openbell.backtest.rules import Setup
    from openbell.backtest.runs import Backtest
    from openbell.desk.desk import Desk
    from openbell.market.series import Series
    from openbell.strategies.compiled import Compiled

Span = tuple[int | None, int | None]
"""The first time and the time after the last, in seconds since 1970; None for the default."""
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
    remote: bool = False
    """True if the service of OPENBELL_BACKTESTER computed it."""
    overfitting: tuple[str, ...] = ()
    """How much of the figures may be luck, in sentences, if a sweep chose the parameters."""


async def run_backtest(desk: Desk, strategy: Compiled, series: Series, setup: Setup, span: Span) -> Ran:
    """Returns the backtest over the bars that open in a span, and the data behind it."""
    found = await desk.backtests.run(strategy, series, setup, *span)
    facts = await desk.facts(found.bars)
    origins = sorted({source.origin.value for source in facts.sources}) or [desk.data]
    feeds = sorted({f"{source.feed} ({source.adjustment})" for source in facts.sources}) or [desk.feed.name]
    made_of = f", made of {facts.made_of} bars" if facts.made_of else ""
    failure = f"; {facts.failure}" if facts.failure else ""
    source, remote = f"{', '.join(feeds)}{made_of}{failure}", bool(desk.settings.backtester)
    return Ran(strategy, found, setup, "+".join(origins), source, remote)


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
    from openbell.charts.report import BacktestReport, OverfittingNotes, page

    luck = OverfittingNotes(done.overfitting) if done.overfitting else None
    return page(BacktestReport(done.strategy, done.found, done.setup, done.data, done.source, luck)).encode()
