"""The layout of the live view of `openbell up`: what a board shows on a screen of a given size, line by line. Pure.

From the top: what the data is and the time, the account, outages, movers, then positions, working orders, alerts and fills
where there is room (on a wide screen beside the movers), and at the bottom the state of the desk. Prices and quantities are
never cut: the account gets the columns that it needs, and a row that is wider than the screen goes on in the next line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rich.text import Text

from openbell.market.foreign_text import one_visible_line
from openbell.market.plural import counted

WIDE = 120
"""Columns from which the account stands beside the movers."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_NARROWEST = 40
_GAP = 2
_CHANGE, _RSI = 9, 5
"""Columns of the change in per cent and of the RSI."""
_SHORTEST = 8
"""Columns of the shortest sparkline beside the account."""
_SIGNALS = 30
"""Columns for sparkline and signals below which signals are left out."""
_LEAST_MOVERS = 8
"""Movers that are shown before a narrow screen has room for anything else."""
_TALL = 34
"""Lines from which the whole state of the desk is shown; on fewer, its first `_FEW` lines."""
_FEW = 3


@dataclass(frozen=True, slots=True)
class Mover:
    """A watched symbol."""

    symbol: str
    price: float | None = None
    decimals: int = 2
    """Of its price."""
    change: float | None = None
    """In per cent since the previous close; None if that is not stored."""
    closes: tuple[float, ...] = ()
    """The newest closes, for the sparkline."""
    rsi: float | None = None
    signals: str = ""
    is_open: bool = True
    """Whether its market trades now."""


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the account, such as its positions."""

    noun: str
    rows: tuple[tuple[str, ...], ...]
    total: int
    """How many there are, of which `rows` has the first."""
    right: frozenset[int] = frozenset()
    """Columns that are aligned to the right."""
    names: frozenset[int] = frozenset()
    """Columns of words, which are shortened if a row is too wide."""

    @property
    def heading(self) -> str:
        """The number of its rows and what they are."""
        return counted(self.total, self.noun)


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the view can show."""

    badge: str
    badge_style: str
    moment: str
    place: str
    """The feed and the home."""
    account: Text = field(default_factory=Text)
    outages: tuple[str, ...] = ()
    movers: tuple[Mover, ...] = ()
    closed: str = ""
    """The heading of movers whose market is closed."""
    sections: tuple[Section, ...] = ()
    """Sections without rows are left out."""
    status: tuple[str, ...] = ()
    """The state of the desk, the most important line first."""


def screen(board: Board, width: int, height: int) -> list[Text]:
    """Returns exactly `height` lines of at most `width` columns."""
    board = _cleaned(board)
    width, sections = max(width, _NARROWEST), [each for each in board.sections if each.rows]
    top = _top(board, width)
    chosen = board.status[: None if height >= _TALL else _FEW]
    status = [Text(part, style="dim") for line in chosen for part in _folded(line, width)]
    room = height - len(top) - len(status)
    # Three fifths for the movers, or less if the account needs more.
    left = min(width * 3 // 5, width - _GAP - max((_needed(each) for each in sections), default=0))
    if width >= WIDE and sections and left >= _least(board.movers):
        body = _beside(_movers(board, left, room), _account(sections, width - left - _GAP, room), left)
    else:
        movers = _movers(board, width, room if not sections else max(room // 2, min(room, _LEAST_MOVERS)))
        below = _account(sections, width, room - len(movers))
        body = [*_movers(board, width, room - len(below)), *below]
    lines = [*top, *body]
    lines += [Text()] * (height - len(lines) - len(status))
    for line in (lines := [*lines, *status]):
        line.truncate(width, overflow="ellipsis")
    return lines[:height]


def _cleaned(board: Board) -> Board:
    """Returns a board whose texts may come from vendors, files and the watchlist, and do not command the terminal."""
    return replace(
        board,
        place=one_visible_line(board.place),
        outages=tuple(map(one_visible_line, board.outages)),
        status=tuple(map(one_visible_line, board.status)),
        movers=tuple(replace(each, symbol=one_visible_line(each.symbol)) for each in board.movers),
        sections=tuple(
            replace(each, rows=tuple(tuple(map(one_visible_line, row)) for row in each.rows)) for each in board.sections
        ),
    )


def sparkline(values: Sequence[float], width: int) -> str:
    """Returns at most `width` blocks whose heights follow the values; each block stands for a share of them."""
    if not values or width < 1:
        return ""
    count = min(width, len(values))
    shown = [values[(number + 1) * len(values) // count - 1] for number in range(count)]
    low, high = min(shown), max(shown)
    if low == high:
        return _BLOCKS[3] * count
    return "".join(_BLOCKS[int((value - low) / (high - low) * (len(_BLOCKS) - 1) + 0.5)] for value in shown)


def percent(change: float | None) -> tuple[str, str]:
    """Returns a change in per cent and its colour."""
    if change is None:
        return "", ""
    text = f"{change:+.2f}%"
    return ("0.00%", "") if text in {"+0.00%", "-0.00%"} else (text, "green" if change > 0 else "red")


def _top(board: Board, width: int) -> list[Text]:
    first = Text.assemble((f" {board.badge} ", board.badge_style), f"  {board.moment}")
    lines = [first]
    if len(first) + len(board.place) + _GAP <= width:
        first.append(f"  {board.place}", style="dim")
    else:
        lines.append(Text(board.place, style="dim"))
    lines += _divided(board.account, width) if board.account else []
    for outage in board.outages:
        lines += [Text(part, style="bold red") for part in _folded(outage, width)]
    return lines


def _folded(text: str, width: int) -> list[str]:
    """Returns a sentence as lines of at most `width` columns: the cause of an outage is never cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _divided(text: Text, width: int) -> list[Text]:
    """Returns a styled line as lines of at most `width` columns, divided between its parts or else between words."""
    lines, rest = [], text.copy()
    while len(rest) > width:
        found = [rest.plain.rfind(gap, 0, width + 1) for gap in ("  ", " ")]
        if (space := found[0] if found[0] > 0 else found[1]) <= 0:
            break
        line, rest = rest.divide([space])
        line.rstrip()
        lines.append(line)
        rest = rest[len(rest) - len(rest.plain.lstrip()) :]
    return [*lines, rest]


def _least(movers: Sequence[Mover]) -> int:
    """Returns the columns that movers need for all numbers and a short sparkline."""
    symbol, price = (max(map(len, texts), default=0) for texts in _texts(movers))
    return symbol + price + _CHANGE + _RSI + 4 * _GAP + _SHORTEST


def _texts(movers: Sequence[Mover]) -> tuple[list[str], list[str]]:
    return [each.symbol for each in movers], [_price(each) for each in movers]


def _movers(board: Board, width: int, room: int) -> list[Text]:
    """Returns the movers, those of open markets first and each group by the size of its change; at most `room` lines."""
    if room < 2 or not board.movers:
        return []
    ordered = sorted(board.movers, key=lambda each: (not each.is_open, -abs(each.change or 0.0), each.price is None))
    symbol, price = (max(map(len, texts)) for texts in _texts(ordered))
    rest = width - symbol - price - _CHANGE - _RSI - 4 * _GAP
    spark = max(1, min(40, rest if rest < _SIGNALS else rest // 2))
    heading = (
        f"{'symbol':{symbol}}  {'price':>{price}}  {'day':>{_CHANGE}}  {'newest 8 h':{spark}.{spark}}  {'RSI':>{_RSI}}"
    )
    heading += "  signals" if rest >= _SIGNALS else ""
    lines = [Text(heading, style="bold")]
    was_open = True
    for mover in ordered:
        if was_open and not mover.is_open and board.closed:
            lines.append(Text(board.closed, style="dim italic"))
        was_open = mover.is_open
        lines.append(_mover(mover, symbol, price, spark, with_signals=rest >= _SIGNALS))
    if len(lines) <= room:
        return lines
    shown = lines[: room - 1]
    left = len(ordered) - sum(1 for line in shown[1:] if line.plain != board.closed)
    return [*shown, Text(f"{left} more", style="dim")]


def _mover(mover: Mover, symbol: int, price: int, spark: int, *, with_signals: bool) -> Text:
    """Returns the line of a mover; the numbers are the widths of columns."""
    change, colour = percent(mover.change)
    line = Text(style="" if mover.is_open else "dim")
    line.append(f"{mover.symbol:{symbol}}  {_price(mover):>{price}}  ")
    line.append(f"{change:>{_CHANGE}}", style=colour)
    line.append(f"  {sparkline(mover.closes, spark):{spark}}", style=colour)
    line.append(f"  {'' if mover.rsi is None else f'{mover.rsi:.1f}':>{_RSI}}")
    line.append(f"  {mover.signals}" if with_signals and mover.signals else "")
    return line


def _price(mover: Mover) -> str:
    return "" if mover.price is None else f"{mover.price:,.{mover.decimals}f}"


def _account(sections: Sequence[Section], width: int, room: int) -> list[Text]:
    """Returns the sections in at most `room` lines; rows are left out where they do not fit, and counted."""
    if room < 2 * len(sections):
        sections = sections[: max(0, room // 2)]
    lines: list[Text] = []
    for number, section in enumerate(sections):
        later = 2 * (len(sections) - number - 1)  # a heading and a row for each section that follows
        lines += _section(section, width, room - len(lines) - later)
    return lines


def _section(section: Section, width: int, room: int) -> list[Text]:
    widths = _widths(section, width)
    rows = [_row(row, section, widths, width) for row in section.rows]
    fits = sum(map(len, rows)) <= room - 1 and len(rows) == section.total
    if not fits:
        rows = _first(rows, room - 2)
    lines = [Text(section.heading, style="bold"), *(Text(line) for row in rows for line in row)]
    if len(rows) < section.total and room > len(lines):
        lines.append(Text(f"{section.total - len(rows)} more", style="dim"))
    return lines


def _first(rows: Sequence[list[str]], room: int) -> list[list[str]]:
    """Returns the first rows that fit into `room` lines, at least one."""
    shown = list(rows[:1])
    for row in rows[1:]:
        if sum(map(len, shown)) + len(row) > room:
            break
        shown.append(row)
    return shown


def _needed(section: Section) -> int:
    """Returns the columns in which all rows of a section fit."""
    sizes = [max(map(len, column)) for column in zip(*section.rows, strict=True)]
    return sum(sizes) + _GAP * (len(sizes) - 1)


def _widths(section: Section, width: int) -> list[int]:
    """Returns the widths of a section's columns; if they are too wide together, names are shortened."""
    sizes = [max(map(len, column)) for column in zip(*section.rows, strict=True)]
    over = sum(sizes) + _GAP * (len(sizes) - 1) - width
    for number in sorted(section.names, key=lambda each: -sizes[each]):
        taken = max(0, min(over, sizes[number] - _NAME))
        sizes[number] -= taken
        over -= taken
    return sizes


_NAME = 8
"""Columns to which a name may be shortened."""


def _row(row: tuple[str, ...], section: Section, widths: Sequence[int], width: int) -> list[str]:
    """Returns a row as lines of at most `width` columns: cells that do not fit go on in the next line."""
    lines = [""]
    for number, (text, size) in enumerate(zip(row, widths, strict=True)):
        shown = text if len(text) <= size else f"{text[: size - 1]}…"
        cell = f"{shown:>{size}}" if number in section.right else f"{shown:{size}}"
        if not lines[-1]:
            lines[-1] = cell
        elif len(f"{lines[-1]}  {cell}".rstrip()) <= width:
            lines[-1] += f"  {cell}"
        else:
            lines.append(f"  {shown}")
    return [line.rstrip() for line in lines]


def _beside(left: Sequence[Text], right: Sequence[Text], width: int) -> list[Text]:
    """Returns two columns as one; the left one has `width` columns."""
    lines = []
    for number in range(max(len(left), len(right))):
        line = left[number].copy() if number < len(left) else Text()
        line.truncate(width, overflow="ellipsis", pad=True)
        if number < len(right):
            line = Text.assemble(line, " " * _GAP, right[number])
        lines.append(line)
    return lines
