"""Charts for tests, of simulated bars up to a fixed time."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from openbell.charts import fonts
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.scene import Label, Scene
from openbell.feeds.sim.bars import minute_bars
from openbell.indicators.evaluation import Computed, parse_requests
from openbell.market.bars import Bars, resample
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe

Kind = TypeVar("Kind")
END = 1_763_000_000 // 14400 * 14400
FIXTURE: list[str | dict[str, object]] = [
    "bbands",
    {"name": "ema_line", "length": 9},
    {"name": "ema_line", "length": 21},
    {"name": "ema_line", "length": 50},
    "rsi",
    "macd",
]


@cache
def hours(symbol: str = "BTC/USD", days: int = 40) -> Bars:
    """Returns hourly bars up to END."""
    return resample(minute_bars(parse(symbol), 7, END - days * 86400, END), Timeframe.H1, END)


def computed(bars: Bars, entries: list[str | dict[str, object]], count: int) -> list[Computed]:
    """Returns indicators at the latest `count` bars: profiles computed from these bars, others from all bars."""
    shown = bars.tail(count)
    found = []
    for wanted in parse_requests(entries):
        profile = wanted.indicator.profile
        channels = wanted.indicator.run(shown if profile else bars, **wanted.settings)
        found.append(Computed(wanted, channels if profile else channels.since(len(bars) - len(shown))))
    return found


def chart_scene(
    look: Look | None = None,
    symbol: str = "BTC/USD",
    count: int = 200,
    entries: list[str | dict[str, object]] | None = None,
    badge: str = "SIMULATED",
    bars: Bars | None = None,
) -> Scene:
    """Returns the scene of a chart; by default with the indicators of FIXTURE."""
    bars = hours(symbol) if bars is None else bars
    chosen = FIXTURE if entries is None else entries
    drawn = computed(bars, chosen, count)
    return compose(bars.tail(count), drawn, look or Look(), f"{symbol} · 1h", badge, bars)


def rescaled(bars: Bars, factor: float, power: float = 1.0) -> Bars:
    """Returns the bars with the first close at `factor` and all changes raised to `power`."""
    first = float(bars.close[0])
    prices = ((column / first) ** power * factor for column in bars.columns()[1:5])
    return Bars(bars.instrument, bars.timeframe, bars.time, *prices, bars.volume)  # type: ignore[call-arg]


def labels(scene: Scene) -> list[Label]:
    """Returns all labels in drawing order."""
    return [item for layer in scene.layers for item in layer.items if isinstance(item, Label)]


def extent(label: Label) -> tuple[float, float, float, float]:
    """Returns left, top, right and bottom of a label."""
    wide = fonts.width(label.text, label.size, label.bold)
    left = label.x - {"left": 0.0, "center": wide / 2, "right": wide}[label.anchor]
    return left, label.y - label.size / 2, left + wide, label.y + label.size / 2


def items(scene: Scene, kind: type[Kind]) -> list[Kind]:
    """Returns all items of one type in drawing order."""
    return [item for layer in scene.layers for item in layer.items if isinstance(item, kind)]


def edges(scene: Scene) -> tuple[float, list[tuple[float, float]]]:
    """Returns the right edge of the plot, and the top and bottom of each panel."""
    clips = {(layer.clip.top, layer.clip.bottom, layer.clip.right) for layer in scene.layers}
    inner = sorted(clip for clip in clips if clip[2] < scene.width)
    return inner[0][2], [(top, bottom) for top, bottom, _ in inner]


def axis(scene: Scene) -> list[list[Label]]:
    """Returns the value labels of each panel, the tag last."""
    right, panels = edges(scene)
    shown = [label for label in labels(scene) if label.x > right]
    return [[label for label in shown if top <= label.y <= bottom] for top, bottom in panels]
