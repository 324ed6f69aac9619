"""The colours of the indicators of one panel: a theme's colours for the roles of their lines.

No hue is used twice on a panel while others are free. After that hues are used again, in a paler tone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openbell.charts.config.plots import StudyPlot
from openbell.charts.scene import Color
from openbell.charts.styles import Role, Style, roles_of, style_for
from openbell.charts.themes import Theme, mixed, ramp
from openbell.indicators.evaluation import Computed

_SOFT, _AGAIN = 0.7, 0.65
"""The share of a hue in its soft tone, and in its tone when it is used again."""


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
