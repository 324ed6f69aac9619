"""The tables of a report: figures, monthly returns as a heat map, settings and trades. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from openbell.backtest.figures import Figure
from openbell.backtest.outcome import monthly_returns, yearly_returns
from openbell.backtest.trades import Trade, Trades
from openbell.market.bars import Bars, Values
from openbell.market.clock import iso

MAX_ROWS = 1000
"""Trades of the table; the latest ones are shown."""
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_STEPS = (0.0, 0.01, 0.03, 0.06)
"""A return above each of them has a stronger colour."""
_TRADE_HEADS = ("#", "entry", "price", "exit", "price", "quantity", "fees", "profit", "return", "closed by")


class Row(NamedTuple):
    """A name and its text."""

    name: str
    text: str


def figure_table(shown: Sequence[Figure]) -> str:
    """Returns a row for each figure, with its meaning."""
    rows = (
        f'<tr><td class="text">{escape(each.name)}</td><td>{escape(each.text)}</td>'
        f'<td class="long">{escape(each.meaning)}</td></tr>'
        for each in shown
    )
    return _table('<th class="text">figure</th><th>value</th><th class="text">meaning</th>', rows)


def pair_table(pairs: Sequence[Row]) -> str:
    """Returns a row for each name and its text."""
    rows = (
        f'<tr><td class="text">{escape(name)}</td><td class="long">{escape(text)}</td></tr>' for name, text in pairs
    )
    return _table("", rows)


def month_table(equity: Values, bars: Bars) -> str:
    """Returns a row for each year, newest last: the return of each month and of the year, coloured by size."""
    months = {(each.year, each.month): each.share for each in monthly_returns(equity, bars)}
    years = yearly_returns(equity, bars)
    rows = []
    for year, whole in years.items():
        cells = (_month_cell(months[year, month]) if (year, month) in months else "<td></td>" for month in range(1, 13))
        rows.append(f'<tr><th class="text">{year}</th>{"".join(cells)}{_month_cell(whole)}</tr>')
    heads = "".join(f"<th>{month}</th>" for month in ("", *_MONTHS, "year"))
    return _table(heads, rows, kind="months", caption="Change of the equity in per cent.")


def _month_cell(value: float | None) -> str:
    if value is None:
        return "<td>–</td>"
    text = f"{value * 100:.1f}"
    if not text.strip("-0."):
        return "<td>0.0</td>"
    strength = sum(abs(value) > step for step in _STEPS)
    return f'<td class="{"u" if value > 0 else "d"}{strength}">{text}</td>'


def trade_table(trades: Trades, bars: Bars) -> str:
    """Returns a row for each trade, oldest first; of more than 1,000 the latest, and a caption that says so."""
    count = len(trades)
    if not count:
        return "<p>The strategy did not trade.</p>"
    first = max(0, count - MAX_ROWS)
    numbered = ((at, each) for at, each in enumerate(trades) if at >= first)
    rows = (_trade_row(at + 1, each, bars) for at, each in numbered)
    heads = "".join(f'<th class="{"text" if name in ("entry", "exit") else ""}">{name}</th>' for name in _TRADE_HEADS)
    caption = f"The latest {MAX_ROWS:,} of {count:,} trades." if first else f"All {count:,} trades."
    return _table(heads.replace(' class=""', ""), rows, caption=caption)


def _trade_row(number: int, trade: Trade, bars: Bars) -> str:
    value = trade.quantity * trade.entry_price
    kind = "up" if trade.profit > 0 else "down"
    cells = [
        f"<td>{number:,}</td>",
        f'<td class="text">{_moment(bars, trade.entry_index)}</td>',
        f"<td>{trade.entry_price:.8g}</td>",
        f'<td class="text">{_moment(bars, trade.exit_index)}</td>',
        f"<td>{trade.exit_price:.8g}</td>",
        f"<td>{trade.quantity:.6g}</td>",
        f"<td>{trade.entry_fee + trade.exit_fee:,.2f}</td>",
        f'<td class="{kind}">{trade.profit:+,.2f}</td>',
        f'<td class="{kind}">{trade.profit / value * 100:+.2f} %</td>',
        f"<td>{trade.reason.lower().replace('_', ' ')}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _moment(bars: Bars, index: int) -> str:
    """Returns the open time of a bar in UTC, to the minute; only the date of a daily or weekly bar."""
    text = iso(int(bars.time[index]))
    return text[:16].replace("T", " ") if bars.timeframe.intraday else text[:10]


def _table(heads: str, rows: Iterable[str], kind: str = "", caption: str = "") -> str:
    """Returns a table of which narrow screens show a part at a time."""
    named = f' class="{kind}"' if kind else ""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    return "\n".join((f'<div class="scroll"><table{named}>{above}{head}<tbody>', *rows, "</tbody></table></div>"))
