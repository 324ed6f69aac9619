"""How an indicator is drawn: the roles of its lines, which determine their colours, and its form if it is not plain lines.

A line's role comes from its indicator's entry in `STYLES`, or from its label, or from its position among the lines without a
role. A panel turns roles into colours of a theme. No hue is used twice on a panel while others are free; after that hues are
used again, in a paler tone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from openbell.charts.annotations.overrides import color_of, number_of
from openbell.charts.config.plots import THINNEST_LINE, WIDEST_LINE, StudyPlot
from openbell.charts.scene import Color
from openbell.charts.themes import Theme, mixed, ramp
from openbell.indicators.channels import Line
from openbell.indicators.evaluation import Computed, IndicatorRequest, parse_requests
from openbell.market.errors import InvalidParameter

Role = int | str
"""A number: a hue of the indicator's own, 0 for its main hue. `soft` is a paler tone of the main hue, `ramp` a tone of it
for each line of a ribbon. `up` and `down` are the colours of rising and falling candles, `soft up` and `soft down` paler
tones of them, `neutral` is grey, `sided` up below the price and down above it. The name of a theme's hue is that hue."""

SIDED = frozenset({"dots", "trail", "candles"})
"""Forms that are green or red at each bar."""
_DIRECTION = frozenset({"direction"})
_PIVOTS = ("P", "R1", "R2", "R3", "S1", "S2", "S3")
_BY_LABEL: Mapping[str, Role] = {
    "upper": 0,
    "lower": 0,
    "middle": "soft",
    "Up": "up",
    "Down": "down",
    "+DI": "up",
    "-DI": "down",
    "VI+": "up",
    "VI-": "down",
    "Bull": "up",
    "Bear": "down",
    "long": "up",
    "short": "down",
}
_SOFT, _AGAIN = 0.7, 0.65
"""The share of a hue in its soft tone, and in its tone when it is used again."""


@dataclass(frozen=True, slots=True)
class Style:
    """How the channels of an indicator are drawn."""

    lines: Literal["line", "dots", "trail", "candles", "levels", "retracement"] = "line"
    """`trail` is a line with a gap where it crosses the price. `dots` and `trail` are green below the price, red above it.

    `candles` draws four lines (open, high, low, close) as pale candle bodies behind the price. `levels` are horizontal lines
    with a gap where the value changes; the newest reach to the right edge. `retracement` draws the newest levels only.
    """
    hues: tuple[str, ...] = ()
    """The theme's hues that the indicator prefers, the main hue first. Others are used if they are taken."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By the label of a line."""
    fills: Literal["plain", "sided"] = "plain"
    """`sided` is green where the first line is higher, red elsewhere."""
    restarts: bool = False
    """The lines restart with each session of an intraday chart, so they have a gap there."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names written at lines, by label; settings are filled in."""
    signals: Literal["dots", "extremes", "hidden"] = "dots"
    """`extremes` draws a triangle at the bar `length` bars before the signal, beyond its high or low."""
    swings: bool = False
    """Its segments are the legs of a zigzag: each swing has its price, and a dashed leg leads to the newest extreme."""
    profile: Literal["bars", "edge"] = "bars"
    """Where horizontal bars at the right begin: at the newest bar, or at the edge of the chart beside it."""
    legend_names: bool = False
    """The legend has the label of each line before its value."""
    green: frozenset[str] = frozenset()
    """Signals without a direction that are green; other signals without a direction are red."""
    hidden: frozenset[str] = frozenset()
    """Lines that results have but charts do not draw, such as a direction of 1 or −1 among prices."""


_PLAIN = Style()
_OSCILLATOR = Style(hues=("blue", "orange"))
_STRENGTH = Style(hues=("purple",))
_CHANNEL = Style(hues=("blue",))
STYLES = {
    "adx": Style(hues=("blue",), legend_names=True),
    "alligator": Style(hues=("blue", "pink", "lime")),
    "bbands": _CHANNEL,
    "connors_rsi": _STRENGTH,
    "donchian": _CHANNEL,
    "double_pattern": Style(lines="levels", hidden=frozenset({"pattern"})),
    "ema_stack": Style(hues=("orange",), roles=dict.fromkeys(("fast", "medium", "slow", "trend"), "ramp")),
    "envelope": _CHANNEL,
    "fibonacci": Style(
        lines="retracement",
        roles={
            "level_0": "neutral",
            "level_23_6": "down",
            "level_38_2": "orange",
            "level_50": "lime",
            "level_61_8": "up",
            "level_78_6": "cyan",
            "level_100": "neutral",
        },
        hidden=_DIRECTION,
    ),
    "fractals": Style(signals="extremes", hidden=frozenset({"up", "down"})),
    "gann_swing": Style(lines="levels", roles={"swing_high": "soft down", "swing_low": "soft up"}, hidden=_DIRECTION),
    "gap": Style(lines="levels", hidden=frozenset({"gap"})),
    "heikin_ashi": Style(lines="candles"),
    "hvn_lvn": Style(hues=("cyan",), profile="edge"),
    "ichimoku": Style(
        hues=("blue", "pink", "lime"),
        roles={"Span A": "soft up", "Span B": "soft down"},
        fills="sided",
        legend_names=True,
    ),
    "keltner": _CHANNEL,
    "ma_channel": _CHANNEL,
    "macd": _OSCILLATOR,
    "mfi": _STRENGTH,
    "naked_poc": Style(hues=("cyan",)),
    "pivot": Style(
        lines="levels",
        hues=("orange",),
        roles=dict.fromkeys(_PIVOTS, 0),
        names={label: label for label in _PIVOTS},
        legend_names=True,
    ),
    "ppo": _OSCILLATOR,
    "price_channel": _CHANNEL,
    "range_bars": Style(hidden=_DIRECTION | {"count"}),
    "regression_channel": Style(hues=("blue",), hidden=frozenset({"slope"})),
    "renko": Style(hidden=_DIRECTION | {"bricks"}),
    "rolling_profile": Style(
        hues=("cyan", "orange"), roles={"poc": 0, "vah": "soft", "val": "soft", "mean": 1, "upper": 1, "lower": 1}
    ),
    "rsi": _STRENGTH,
    "sar": Style(lines="dots"),
    "session_vp": Style(hues=("cyan",)),
    "squeeze": Style(green=frozenset({"squeeze_off"})),
    "std_error_bands": _CHANNEL,
    "stoch": _OSCILLATOR,
    "stoch_rsi": _OSCILLATOR,
    "supertrend": Style(lines="trail"),
    "tpo": Style(hues=("cyan",)),
    "volatility_stop": Style(lines="trail", hidden=_DIRECTION),
    "volume_profile": Style(hues=("cyan",), profile="edge"),
    "vwap": Style(hues=("purple",), restarts=True, names={"VWAP": "VWAP"}),
    "vwap_bands": Style(
        hues=("purple",),
        roles={"middle": 0, "upper": "soft", "lower": "soft"},
        restarts=True,
        names={"upper": "+{multiplier:g} SD", "middle": "VWAP", "lower": "−{multiplier:g} SD"},
    ),
    "zigzag": Style(hues=("blue",), signals="hidden", swings=True),
}


def style_for(computed: Computed) -> Style:
    """Returns how this indicator is drawn."""
    style = STYLES.get(computed.request.indicator.name, _PLAIN)
    # The market profile of all sessions together is drawn at the edge, those of single sessions at their bars.
    return replace(style, profile="edge") if computed.request.settings.get("session") == "all" else style


def roles_of(style: Style, lines: tuple[Line, ...]) -> list[Role]:
    """Returns the role of each line. A line without one has the next hue of the indicator."""
    if style.lines in SIDED:
        return ["sided"] * len(lines)
    known = {line.label: style.roles.get(line.label, _BY_LABEL.get(line.label)) for line in lines}
    used = [-1, *(role for role in known.values() if isinstance(role, int))]
    if "soft" in known.values() or "ramp" in known.values():
        used.append(0)
    found: list[Role] = []
    for line in lines:
        role = known[line.label]
        if role is None:
            role = max(used) + 1
            used.append(role)
        found.append(role)
    return found


def drawn_lines(computed: Computed) -> Computed:
    """Returns the indicator without the lines that are not drawn."""
    hidden, channels = style_for(computed).hidden, computed.channels
    if not hidden:
        return computed
    lines = tuple(line for line in channels.lines if line.label not in hidden)
    return replace(computed, channels=replace(channels, lines=lines))


@dataclass(frozen=True, slots=True)
class IndicatorColors:
    """The colours of one indicator."""

    main: Color
    """Of fills, profiles and segments."""
    lines: Mapping[str, Color]
    """By the label of a line."""
    own: Color | None = None
    """The colour that the caller has asked for; it replaces the colours of both sides of a trail, too."""


def panel_colors(
    panel: Sequence[Computed], theme: Theme, plots: Mapping[str, StudyPlot], taken: Sequence[str] = ()
) -> dict[str, IndicatorColors]:
    """Returns the colours of the indicators of a panel by the keys of their requests. `taken` are hues in use already.

    Indicators that prefer hues choose before the others.
    """
    hues = _Hues(theme, taken)
    styles = {each.request.key: style_for(each) for each in panel}
    found = {}
    for each in sorted(panel, key=lambda computed: not styles[computed.request.key].hues):
        plot = plots.get(each.request.key)
        found[each.request.key] = _ink(each, styles[each.request.key], theme, hues, plot.color if plot else None)
    return found


class _Hues:
    """Hands out the hues of a theme."""

    def __init__(self, theme: Theme, taken: Sequence[str]) -> None:
        self._theme = theme
        self._free = [name for name in theme.hues if name not in taken]
        self._again = False

    def drop(self, role: Role) -> None:
        """Takes a hue that a role names."""
        if role in self._free:
            self._free.remove(str(role))

    def take(self, preferred: str = "") -> Color:
        """Returns the preferred hue if it is free, otherwise the first free one."""
        if not self._free:
            self._free, self._again = list(self._theme.hues), True
        name = preferred if preferred in self._free else self._free[0]
        self._free.remove(name)
        color = self._theme.hues[name]
        return mixed(color, self._theme.background, _AGAIN) if self._again else color


def _ink(computed: Computed, style: Style, theme: Theme, hues: _Hues, own: Color | None) -> IndicatorColors:
    lines = computed.channels.lines
    roles = roles_of(style, lines)
    numbers = {role for role in roles if isinstance(role, int)} | ({0} if _uses_main(computed, roles) else set())
    for role in roles:
        hues.drop(role)
    taken = {
        number: own if own and number == 0 else hues.take(style.hues[number] if number < len(style.hues) else "")
        for number in sorted(numbers)
    }
    main = own or taken.get(0) or theme.faint
    tones = iter(ramp(main, theme.background, roles.count("ramp")) if "ramp" in roles else ())
    colors: dict[str, Color] = {}
    for line, role in zip(lines, roles, strict=True):
        if role == "ramp":
            colors[line.label] = next(tones)
        elif own and 0 not in numbers:
            colors[line.label] = own
        else:
            colors[line.label] = _color(role, taken, theme)
    return IndicatorColors(main, colors, own)


def _uses_main(computed: Computed, roles: Sequence[Role]) -> bool:
    channels = computed.channels
    return bool({"soft", "ramp"} & set(roles)) or bool(channels.hbars or channels.fills or channels.divlines)


def _color(role: Role, taken: Mapping[int, Color], theme: Theme) -> Color:
    if isinstance(role, int):
        return taken[role]
    name = role.removeprefix("soft").strip()
    plain = {"": taken.get(0), "up": theme.up, "down": theme.down, **theme.hues}.get(name) or theme.faint
    return mixed(plain, theme.background, _SOFT) if role.startswith("soft") else plain


def parse_styled(entries: Sequence[str | dict[str, object]]) -> tuple[list[IndicatorRequest], list[StudyPlot]]:
    """Returns the requests of `parse_requests`, and how those with `color` or `width` are drawn.

    Raises `InvalidParameter` as `parse_requests` does, and for a bad colour or width.
    """
    plain: list[str | dict[str, object]] = []
    styles = []
    for entry in entries:
        settings: dict[str, object] = dict(entry) if isinstance(entry, dict) else {"name": entry}
        styles.append((_asked_color(settings.pop("color", None)), _width(settings.pop("width", None))))
        plain.append(settings)
    requests = parse_requests(plain)
    plots = [
        StudyPlot(request, at, color=color, width=width)
        for at, (request, (color, width)) in enumerate(zip(requests, styles, strict=True))
        if color or width
    ]
    return requests, plots


def _asked_color(value: object) -> Color | None:
    color = color_of(value)
    if value is not None and color is None:
        raise InvalidParameter(f"color must be like #ff9800, not {str(value)[:80]!r}")
    return color


def _width(value: object) -> float | None:
    width = number_of(value, THINNEST_LINE, WIDEST_LINE)
    if value is not None and width is None:
        raise InvalidParameter(f"width must be {THINNEST_LINE:g} to {WIDEST_LINE:g} pixels, not {str(value)[:80]!r}")
    return width
