"""Charts against matplotlib and mplfinance: ratios within one run.

The fixture: 200 bars, 1200×675, Bollinger fill, three EMAs, volume, RSI, MACD, PNG encoding included. CPU time.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.charts.pictures import FIXTURE, computed, hours

from measure import row, rows
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.payload import summary
from openbell.charts.picture import picture

BARS = 200


def cpu(work: Callable[[], object], repeat: int) -> float:
    """The least CPU time of several runs, in milliseconds."""
    best = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best * 1000


def ours() -> bytes:
    bars = hours().tail(BARS)
    look = Look()
    return picture(compose(bars, DRAWN, look, "BTC/USD · 1h", "SIMULATED"), look.scale)


DRAWN = computed(hours(), FIXTURE, BARS)


def with_matplotlib() -> bytes:
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure

    bars = hours().tail(BARS)
    figure = Figure(figsize=(12, 6.75), dpi=100)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 1, height_ratios=[3, 1, 1], hspace=0.05)
    price = figure.add_subplot(grid[0])
    strength, macd = figure.add_subplot(grid[1], sharex=price), figure.add_subplot(grid[2], sharex=price)
    x = np.arange(len(bars))
    colors = np.where(bars.close >= bars.open, "#089981", "#f23645")

    def boxes(low: Any, high: Any) -> Any:
        """Rectangles as one collection: matplotlib's fast way."""
        corners = [(x - 0.35, low), (x - 0.35, high), (x + 0.35, high), (x + 0.35, low)]
        return np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)

    wicks = np.stack([np.stack((x, bars.low), axis=1), np.stack((x, bars.high), axis=1)], axis=1)
    price.add_collection(LineCollection(list(wicks), colors=colors, linewidths=1))
    price.add_collection(PolyCollection(boxes(bars.open, bars.close), facecolors=colors))
    upper, middle, lower = (line.values for line in DRAWN[0].channels.lines)
    price.fill_between(x, upper, lower, alpha=0.1)
    for values in (upper, middle, lower, *(each.channels.lines[0].values for each in DRAWN[1:4])):
        price.plot(x, values, lw=1.2)
    volume = price.twinx()
    volume.add_collection(PolyCollection(boxes(bars.volume * 0, bars.volume), facecolors=colors, alpha=0.3))
    volume.set_ylim(0, bars.volume.max() * 5)
    strength.plot(x, DRAWN[4].channels.lines[0].values)
    for level in (30, 70):
        strength.axhline(level, ls="--")
    for line in DRAWN[5].channels.lines:
        macd.plot(x, line.values)
    histogram = DRAWN[5].channels.histogram[0].values
    macd.add_collection(PolyCollection(boxes(histogram * 0, histogram)))
    sink = io.BytesIO()
    figure.savefig(sink, format="png")
    return sink.getvalue()


def with_mplfinance() -> bytes:
    import matplotlib as mpl
    import mplfinance as mpf
    import pandas as pd

    mpl.use("Agg")
    bars = hours().tail(BARS)
    columns = zip(("Open", "High", "Low", "Close", "Volume"), bars.columns()[1:], strict=True)
    frame = pd.DataFrame(dict(columns), index=pd.to_datetime(bars.time, unit="s"))
    upper, middle, lower = (line.values for line in DRAWN[0].channels.lines)
    added = [mpf.make_addplot(values) for values in (upper, middle, lower)]
    added += [mpf.make_addplot(each.channels.lines[0].values) for each in DRAWN[1:4]]
    added.append(mpf.make_addplot(DRAWN[4].channels.lines[0].values, panel=2))
    added += [mpf.make_addplot(line.values, panel=3) for line in DRAWN[5].channels.lines]
    added.append(mpf.make_addplot(DRAWN[5].channels.histogram[0].values, panel=3, type="bar"))
    sink = io.BytesIO()
    fill: dict[str, Any] = {"y1": upper, "y2": lower, "alpha": 0.1}
    mpf.plot(
        frame,
        type="candle",
        volume=True,
        addplot=added,
        fill_between=fill,
        figsize=(12, 6.75),
        savefig={"fname": sink, "dpi": 100},
    )
    return sink.getvalue()


def main() -> int:
    for work in (ours, with_matplotlib, with_mplfinance):
        work()
    mine, plain, finance = [], [], []
    for _ in range(5):
        mine.append(cpu(ours, 3))
        plain.append(cpu(with_matplotlib, 3))
        finance.append(cpu(with_mplfinance, 3))
    fast = min(mine)
    for name, other, target in (("matplotlib", min(plain), 10), ("mplfinance", min(finance), 35)):
        figure = f"{other / fast:.1f} × ({other:.0f} / {fast:.1f} ms)"
        row(f"a chart, faster than {name}", figure, f"≥ {target} ×", other / fast >= target)
    data = ours()
    row("its PNG", f"{len(data) / 1000:.1f} KB", "≤ 90 KB", len(data) <= 90_000)
    bars = hours().tail(BARS)
    text = json.dumps(summary("BTC/USD", "1h", bars, DRAWN, bars), separators=(",", ":"))
    share = len(text) / len(base64.b64encode(data))
    row("format=summary / the PNG's base64", f"{share:.3f}", "≤ 0.1", share <= 0.1)
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
