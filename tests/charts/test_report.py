"""The report as a page: well-formed, complete, without network and script, and safe against hostile specs."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from openbell.backtest.outcome import figures, monthly_returns
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.charts.report import MAX_ROWS, BacktestReport, page
from openbell.charts.themes import THEMES
from openbell.charts.trade_markers import MAX_DRAWN
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.foreign_text import UNSEEN
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from tests.strategies.specs import crossover, walk
from tests.strategies.stretches import simulated

VOID = {"meta", "br", "hr", "img", "link", "input"}
MACD = compiled(canonical()["MACD_CROSSOVER"])


class Page(HTMLParser):
    """Tags, attributes, texts and table rows of a page. Fails if tags are not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.ids: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open and self._open[-1] in {"td", "th"}:
            self.rows[-1][-1] += data


def report(strategy: Compiled, bars: Bars, setup: Setup | None = None, data: str = "simulated") -> BacktestReport:
    setup = setup or Setup()
    return BacktestReport(strategy, backtest(strategy, bars, setup), setup, data, "sim (raw), made of 1d bars")


@cache
def usual() -> tuple[BacktestReport, str]:
    made = report(MACD, simulated("AAPL", Timeframe.D1, 900).bars, Setup(5000.0, 0.002, 0.0005))
    return made, page(made)


def test_the_page_is_well_formed_and_the_same_every_time() -> None:
    made, text = usual()
    parsed = Page(text)
    assert text.startswith("<!doctype html>\n")
    assert [tag for tag, _ in parsed.tags].count("svg") == 2
    assert len(parsed.ids) == len(set(parsed.ids)) > 4, "clips of both charts have different names"
    assert page(made) == text


def test_it_needs_no_network_and_no_script() -> None:
    _, text = usual()
    parsed = Page(text)
    assert not re.search(r"https?:|//[a-z]|@import|javascript:|data:", text, re.IGNORECASE)
    assert not {"script", "link", "iframe", "img", "object", "embed", "form"} & {tag for tag, _ in parsed.tags}
    assert not [
        name for _, attributes in parsed.tags for name in attributes if name.startswith("on") or name == "style"
    ]
    for _, attributes in parsed.tags:
        assert not {"src", "href", "xlink:href", "action"} & attributes.keys()
    assert re.findall(r"url\(([^)]*)\)", text) == [
        f"#{name}" for _, name in sorted((text.index(f"url(#{each})"), each) for each in parsed.ids)
    ]


def test_the_policy_allows_only_the_style_of_the_page() -> None:
    _, text = usual()
    policy = next(
        attributes["content"] for tag, attributes in Page(text).tags if attributes.get("http-equiv") and tag == "meta"
    )
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"


def test_every_trade_is_in_the_table() -> None:
    made, text = usual()
    rows = [row for row in Page(text).rows if len(row) == 10 and row[0] != "#"]
    trades, bars = list(made.found.run.trades), made.found.bars
    assert len(rows) == len(trades) > 10
    for row, trade in zip(rows, trades, strict=True):
        assert row[1] == iso(int(bars.time[trade.entry_index]))[:10]
        assert row[3] == iso(int(bars.time[trade.exit_index]))[:10]
        assert float(row[2]) == pytest.approx(trade.entry_price, rel=1e-7)
        assert float(row[4]) == pytest.approx(trade.exit_price, rel=1e-7)
        assert float(row[7].replace(",", "")) == pytest.approx(trade.profit, abs=0.006)
        assert row[9] == trade.reason.lower().replace("_", " ")


def test_every_figure_has_its_value_and_its_meaning() -> None:
    made, text = usual()
    rows = [tuple(row) for row in Page(text).rows if len(row) == 3]
    assert set(figures(made.found)) <= set(rows)
    fields = set(type(made.found.metrics).__dataclass_fields__)
    assert len(figures(made.found)) == len(fields) + 1, "all metrics, and the return of holding"


def test_monthly_returns_are_in_their_cells() -> None:
    made, text = usual()
    rows = {row[0]: row[1:] for row in Page(text).rows if len(row) == 14 and row[0].isdigit()}
    found = monthly_returns(made.found.run.equity, made.found.bars)
    filled = sum(bool(cell) for row in rows.values() for cell in row[:12])
    assert filled == len(found) > 20
    for each in found:
        assert each.share is not None
        assert float(rows[str(each.year)][each.month - 1]) == pytest.approx(each.share * 100, abs=0.051)


def test_it_names_the_data_and_the_settings() -> None:
    made, text = usual()
    rows = {row[0]: row[1] for row in Page(text).rows if len(row) == 2}
    assert rows["data"] == "simulated, not real prices"
    assert rows["source"] == "sim (raw), made of 1d bars"
    assert rows["parameters"] == "fastPeriod = 12, slowPeriod = 26, signalPeriod = 9"
    assert (rows["fee of a fill"], rows["slippage of a fill"], rows["cash at the start"]) == (
        "0.20 %",
        "0.05 %",
        "5,000.00",
    )
    assert (rows["missing bars"], rows["bars"]) == ("0", f"{len(made.found.bars):,}")
    assert text.count("SIMULATED") == 4, "twice in each chart"
    assert "The bars are simulated, not real prices." in text


def test_missing_bars_and_a_note_are_named() -> None:
    bars = walk(3, 300)
    gapped = bars.take(np.flatnonzero(np.arange(300) % 100 != 50))
    made = report(compiled(read_spec(crossover())), gapped)
    made = replace(made, found=replace(made.found, note="VWAP: 3 of 9 bars have no minutes"))
    rows = {row[0]: row[1] for row in Page(page(made)).rows if len(row) == 2}
    assert (rows["missing bars"], rows["note"]) == ("3", "VWAP: 3 of 9 bars have no minutes")


def test_real_data_is_not_called_simulated() -> None:
    text = page(report(compiled(read_spec(crossover())), walk(3, 300), data="imported+live"))
    assert "simulated" not in text.lower()


def test_how_much_is_luck_is_shown() -> None:
    made, text = usual()
    assert "Luck or skill" not in text
    lines = ("1,000 combinations were tried.", "The deflated Sharpe ratio is <0.5>.")
    texts = Page(page(replace(made, luck=lines))).texts
    assert {"Luck or skill", *lines} <= set(texts)


HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp; ]]> <!-- --> \x00"


def test_hostile_texts_of_a_spec_stay_text() -> None:
    raw = {**crossover(), "description": HOSTILE, "idea": HOSTILE}
    strategy = compiled(read_spec(raw))
    made = report(strategy, walk(3, 400))
    # The reader refuses such names; the page does not rely on that.
    spec = replace(strategy.spec, name=HOSTILE)
    hostile = replace(strategy, spec=spec, parameters={HOSTILE: 3})
    text = page(replace(made, strategy=hostile, source=HOSTILE, data=HOSTILE, found=replace(made.found, note=HOSTILE)))
    tags = {tag for tag, _ in Page(text).tags}
    assert not {"script", "img"} & tags
    for harmful in ("<script", "<img", "<!-- -->", "</style></title>"):
        assert harmful not in text
    assert text.count("</style>") == text.count("</title>") == 1
    assert unescape(text).count("<script>alert(1)</script>") >= 8, "it is shown, not lost"


def test_attack_hidden_text_in_a_page() -> None:
    """Nothing in a description turns the direction of reading, or is in the page without being seen."""
    raw = {
        **crossover(),
        "description": "buys \u202elles\u202c\u2066\x1b[2J\U000e0053\u200b low",
        "idea": "a \u202ekoob",
    }
    text = page(report(compiled(read_spec(raw)), walk(3, 400)))
    assert not UNSEEN.search(text)
    assert {"buys lles low", "Source of the idea: a koob"} <= set(Page(text).texts)


def test_a_run_without_trades_has_a_page() -> None:
    text = page(report(compiled(read_spec(crossover())), walk(3, 12)))
    assert "The strategy did not trade." in Page(text).texts


def test_a_page_of_ten_thousand_trades_is_bounded_and_says_what_it_leaves_out() -> None:
    made = report(compiled(read_spec(crossover())), walk(11, 190_000))
    count = len(made.found.run.trades)
    assert count > 10_000
    text = page(made)
    parsed = Page(text)
    assert len(text) < 700_000
    assert f"The latest {MAX_ROWS:,} of {count:,} trades." in parsed.texts
    assert f"{MAX_DRAWN:,} of {count:,} trades are marked: those with the largest profits and losses." in text
    numbers = [int(row[0].replace(",", "")) for row in parsed.rows if len(row) == 10 and row[0] != "#"]
    assert numbers == list(range(count - MAX_ROWS + 1, count + 1))


def test_dark_mode_maps_every_colour_of_the_light_theme_that_differs() -> None:
    _, text = usual()
    dark = text.partition("prefers-color-scheme: dark")[2].partition("@media print")[0]
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', text))
    for name in ("background", "grid", "border", "text", "faint", "highlight"):
        light, other = (f"#{bytes(getattr(THEMES[theme], name)[:3]).hex()}" for theme in ("light", "dark"))
        assert light in used, name
        assert re.search(rf'\[fill="{light}"\][^}}]*{{ fill: {other}; }}', dark), name
    assert "screen and (prefers-color-scheme: dark)" in text, "paper is white"


def test_intraday_trades_have_times() -> None:
    made = report(compiled(read_spec(crossover())), walk(3, 400))
    rows = [row for row in Page(page(made)).rows if len(row) == 10 and row[0] != "#"]
    first = next(iter(made.found.run.trades))
    assert rows[0][1] == iso(int(made.found.bars.time[first.entry_index]))[:16].replace("T", " ")
