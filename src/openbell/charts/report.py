"""A backtest as one HTML page: charts, tables and the data behind them. The page needs no network and has no script.

Every text is escaped and without characters that are not seen, because names and descriptions come from spec files. As a
second barrier, a content security policy forbids scripts, requests and every style but the page's own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources
from typing import NamedTuple

from openbell.backtest.outcome import Figure, figures, monthly_returns, ratio, share, yearly_returns
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest
from openbell.backtest.trades import Trade, Trades
from openbell.charts.backtest_charts import equity_scene, trades_scene
from openbell.charts.look import Look
from openbell.charts.scene import Scene
from openbell.charts.svg import svg
from openbell.charts.trade_markers import MAX_DRAWN
from openbell.market.bars import Bars, Values
from openbell.market.clock import iso
from openbell.market.foreign_text import without_invisible
from openbell.market.series_plan import missing
from openbell.strategies.compiled import Compiled

_LOOK = Look(width=1060, height=520, theme="light")
_KEY = ("total return", "of holding", "Sharpe", "max drawdown", "trades", "win rate")
"""The figures that are repeated at the top."""
MAX_ROWS = 1000
"""Trades of the table; the latest ones are shown."""
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_STEPS = (0.0, 0.01, 0.03, 0.06)
"""A return above each of them has a stronger colour."""
_TRADE_HEADS = ("#", "entry", "price", "exit", "price", "quantity", "fees", "profit", "return", "closed by")


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """A backtest and what it was run with."""

    strategy: Compiled
    found: Backtest
    setup: Setup
    data: str
    """The origins of the bars: `simulated`, or `imported+live`."""
    source: str
    """The feeds or files that the bars come from, and the stored bars that they are made of."""
    luck: tuple[str, ...] = ()
    """How likely it is that the figures are luck, one sentence per line."""

    @property
    def simulated(self) -> bool:
        """Returns True if any of the bars are simulated."""
        return "simulated" in self.data


def page(report: BacktestReport) -> str:
    """Returns the whole page. Raises `NotFinite` if a value is too large to be drawn."""
    found, name = report.found, report.strategy.name
    bars, badge = found.bars, "SIMULATED" if report.simulated else ""
    shown = figures(found)
    equity = equity_scene(found, _LOOK, f"{name} · {bars.series}", badge)
    trades = trades_scene(found, _LOOK, f"{bars.series}", badge)
    style = _style()
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{allowed}'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_escaped(f'{name} on {bars.series}')}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        *_head(report, shown),
        *_section("Equity and drawdown", _chart(equity, "e", "Equity beside holding, and drawdown")),
        *_section("Monthly returns", month_table(found.run.equity, bars)),
        *_section("Trades on the price", _marked(found), _chart(trades, "t", "The price with entries and exits")),
        *_section("Figures", figure_table(shown)),
        *_section("Data and settings", pair_table(_settings(report))),
        *(_section("Luck or skill", *map(_paragraph, report.luck)) if report.luck else []),
        *_section("Trades", trade_table(found.run.trades, bars)),
        *_foot(),
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    """Returns a text as the page shows it."""
    return escape(without_invisible(text))


@cache
def _style() -> str:
    return resources.files("openbell.charts").joinpath("report.css").read_text("utf-8")


def _head(report: BacktestReport, shown: Sequence[Figure]) -> list[str]:
    bars, spec = report.found.bars, report.strategy.spec
    span = f"{bars.series}, {len(bars):,} bars from {iso(int(bars.time[0]))} to {iso(int(bars.time[-1]))}"
    key = [each for each in shown if each.name in _KEY]
    cells = "".join(f"<div><dt>{_escaped(each.name)}</dt><dd>{_escaped(each.text)}</dd></div>" for each in key)
    notice = '<p class="notice">The bars are simulated, not real prices.</p>' if report.simulated else ""
    idea = f"Source of the idea: {spec.idea}" if spec.idea else ""
    return [
        "<header>",
        f"<h1>{_escaped(spec.name)}</h1>",
        _paragraph(span),
        *(f'<p class="faint">{_escaped(text)}</p>' for text in (spec.description, idea) if text),
        notice,
        f'<dl class="key">{cells}</dl>',
        "</header>",
    ]


def _section(title: str, *content: str) -> list[str]:
    return ["<section>", f"<h2>{_escaped(title)}</h2>", *filter(None, content), "</section>"]


def _paragraph(text: str) -> str:
    return f"<p>{_escaped(text)}</p>"


def _chart(scene: Scene, prefix: str, label: str) -> str:
    """Returns a chart as an element of the page, which needs no namespace."""
    drawn = svg(scene, prefix=prefix).replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{_escaped(label)}" ', 1)


def _marked(found: Backtest) -> str:
    """Returns what the arrows mean, and how many trades have none."""
    count = len(found.run.trades)
    text = "Entries are orange. Exits are green for a profit and red for a loss after fees."
    if count > MAX_DRAWN:
        text += f" {MAX_DRAWN:,} of {count:,} trades are marked: those with the largest profits and losses."
    return f'<p class="faint">{_escaped(text)}</p>'


def _settings(report: BacktestReport) -> list[TextRow]:
    bars, setup, strategy = report.found.bars, report.setup, report.strategy
    gone = missing(bars)
    rows = [
        TextRow("symbol and timeframe", str(bars.series)),
        TextRow("data", f"{report.data}{', not real prices' if report.simulated else ''}"),
        TextRow("source", report.source),
        TextRow("first bar", iso(int(bars.time[0]))),
        TextRow("last bar", iso(int(bars.time[-1]))),
        TextRow("bars", f"{len(bars):,}"),
        TextRow("missing bars", "not known for this market" if gone is None else f"{gone:,}"),
        TextRow("cash at the start", ratio(setup.cash)),
        TextRow("fee of a fill", share(setup.fee)),
        TextRow("slippage of a fill", share(setup.slippage)),
        TextRow("side", strategy.side.lower()),
        TextRow(
            "parameters", ", ".join(f"{name} = {value:g}" for name, value in strategy.parameters.items()) or "none"
        ),
        TextRow(
            "stops", ", ".join(f"{kind.lower().replace('_', ' ')} {size:g} %" for kind, size in strategy.stops.items())
        ),
        TextRow("fills", "decided at the close of a bar, filled at the next open; stops fill inside a bar"),
        TextRow("note", report.found.note),
    ]
    return [row for row in rows if row.text]


def _foot() -> list[str]:
    from openbell import __version__

    text = (
        f"Made by Openbell {__version__}. Past results do not predict future ones. Nothing here is investment advice."
    )
    return ["<footer>", _paragraph(text), "</footer>"]


class TextRow(NamedTuple):
    """A name and its text."""

    name: str
    text: str


def figure_table(shown: Sequence[Figure]) -> str:
    """Returns a row for each figure, with its meaning."""
    rows = (
        f'<tr><td class="text">{_escaped(each.name)}</td><td>{_escaped(each.text)}</td>'
        f'<td class="long">{_escaped(each.meaning)}</td></tr>'
        for each in shown
    )
    return _table('<th class="text">figure</th><th>value</th><th class="text">meaning</th>', rows)


def pair_table(pairs: Sequence[TextRow]) -> str:
    """Returns a row for each name and its text."""
    rows = (
        f'<tr><td class="text">{_escaped(name)}</td><td class="long">{_escaped(text)}</td></tr>' for name, text in pairs
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
    above = f"<caption>{_escaped(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    return "\n".join((f'<div class="scroll"><table{named}>{above}{head}<tbody>', *rows, "</tbody></table></div>"))
