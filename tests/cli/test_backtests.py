"""The output of `openbell backtest` and `openbell sweep`: which bars and costs they use, and that the tools agree."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import command

AS_OF = ("--as-of", "2026-03-02T15:00:00Z")


def printed(home: Path, *words: str, **settings: str) -> str:
    """The standard output of a command that succeeds."""
    code, out, errors = command(home, *words, *AS_OF, **settings)
    assert code == 0, errors
    return out


def answered(home: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    """The data of an answer of the server backtest."""
    found: dict[str, Any] = json.loads(printed(home, "call", "backtest", tool, json.dumps(arguments)))["data"]
    return found


def figure(out: str, name: str) -> str:
    """The text of a figure of a backtest."""
    found = re.search(rf"^  {name} +(.*)$", out, re.MULTILINE)
    assert found, out
    return found[1]


def test_the_command_and_the_tool_have_the_same_costs_and_figures(tmp_path: Path) -> None:
    out = printed(tmp_path, "backtest", "MACD_CROSSOVER", "AAPL", "--from", "2020")
    found = answered(tmp_path, "run_backtest", strategy_id="MACD_CROSSOVER", symbol="AAPL", start_date="2020-01-01")
    assert figure(out, "total return") == f"{found['total_return'] * 100:,.2f} %"
    assert figure(out, "Sharpe") == f"{found['sharpe_ratio']:,.2f}"
    shares = {"of holding": "buy_and_hold_return", "annual return": "cagr", "exposure": "exposure"}
    for printed_name, field in shares.items():
        assert figure(out, printed_name) == f"{found[field] * 100:,.2f} %"
    for printed_name, field in {"profit factor": "profit_factor", "average bars": "average_bars_held"}.items():
        assert figure(out, printed_name) == f"{found[field]:,.2f}"
    assert "fee 0.100%, slippage 0.050%" in found["note"]


@pytest.mark.parametrize(
    ("symbol", "timeframe"), [("AAPL", "1h"), ("AAPL", "5m"), ("EUR/USD", "4h"), ("BTC/USD", "1d")]
)
def test_without_a_start_exactly_the_newest_1250_bars_are_traded(tmp_path: Path, symbol: str, timeframe: str) -> None:
    newest = printed(tmp_path, "backtest", "RVI", symbol, "-t", timeframe)
    assert " 1,250 simulated bars from " in newest
    since = newest.split(" bars from ")[1].split(" ")[0]
    assert printed(tmp_path, "backtest", "RVI", symbol, "-t", timeframe, "--from", since) == newest
    until = printed(tmp_path, "sweep", "RVI", symbol, "-t", timeframe, "--to", "2026-01", "--set", "period=9")
    assert "\n1 combination was tried. " in until
    assert " 1,250 simulated bars from " in until


@pytest.mark.parametrize("until", [(), ("--to", "2025-11-06")])
def test_missing_bars_are_not_counted_among_the_newest_1250(tmp_path: Path, until: tuple[str, ...]) -> None:
    """The last bar is of 2025-11-05."""
    days = [f"{day:%Y-%m-%d},1,2,1,{1 + day.day / 40},9" for day in days_from(date(2019, 1, 1), 2500) if day.month != 7]
    file = tmp_path / "BTC.csv"
    file.write_text("\n".join(["time,open,high,low,close,volume", *days]) + "\n")
    home = tmp_path / "home"
    assert command(home, "import", str(file), "--symbol", "BTC/USD", FEED="none")[0] == 0
    shown = printed(home, "backtest", "RVI", "BTC/USD", *until, FEED="none")
    first, last = days[-1250].split(",")[0], days[-1].split(",")[0]
    assert f" 1,250 imported bars from {first}T00:00:00+00:00 to {last}T00:00:00+00:00" in shown


def days_from(first: date, count: int) -> list[date]:
    return [first + timedelta(days=each) for each in range(count)]


def test_backtest_and_sweep_name_both_costs_in_the_second_line(tmp_path: Path) -> None:
    for words in (("backtest", "RVI", "BTC/USD"), ("sweep", "RVI", "BTC/USD", "--most", "2")):
        usual = printed(tmp_path, *words)
        assert usual.splitlines()[1] == "Each fill costs a fee of 0.1 % and slippage of 0.05 %."
        given = printed(tmp_path, *words, "--fee", "0.25", "--slippage", "0")
        assert given.splitlines()[1] == "Each fill costs a fee of 0.25 % and slippage of 0 %."
        settings = printed(tmp_path, *words, PAPER_FEE="0.0025", PAPER_SLIPPAGE="0")
        assert settings == given
        assert given.splitlines()[2:] != usual.splitlines()[2:]


def test_a_strategy_of_regular_hours_on_hours_of_a_stock_says_what_it_is_computed_from(tmp_path: Path) -> None:
    """The simulator has a year of minutes, from 2025-03-02 on."""
    words = ("backtest", "PIVOT", "AAPL", "-t", "1h", "--trades")
    usual = printed(tmp_path, *words)
    assert "\nPivots: computed from minutes of regular hours.\n" in usual
    long = printed(tmp_path, *words, "--from", "2024")
    assert re.search(
        r"^Pivots: computed .*; 2,\d+ of 3,\d+ bars have no minutes, and conditions on it do not", long, re.MULTILINE
    )
    entries = re.findall(r"^  (\S+) long ", long, re.MULTILINE)
    assert len(entries) > 20
    assert min(entries) >= "2025-03"
    code, out, errors = command(tmp_path, *words, "--from", "2023", "--to", "2024", *AS_OF)
    assert (code, out) == (1, "")
    assert "there are none in this time; use bars of 30 minutes or less, or import minutes" in errors
    assert "minutes of regular hours" not in printed(tmp_path, "backtest", "PIVOT", "AAPL", "-t", "30m")


@pytest.mark.parametrize(
    ("symbol", "timeframe", "start", "begins"),
    [
        ("AAPL", "1d", "2010", "2016-03-02"),
        ("AAPL", "1h", "2010", "2016-03-01"),
        ("EUR/USD", "1d", "2010", "2016-03-02"),
        ("BTC/USD", "1w", "2010", "2016-03-07"),
        ("AAPL", "1d", "2020", ""),  # 1 January is a holiday
        ("AAPL", "1h", "2020-01-01", ""),
        ("EUR/USD", "1h", "2022", ""),  # a Saturday
        ("BTC/USD", "1w", "2020", ""),
        ("EUR/USD", "1w", "2019", ""),
        ("EUR/USD", "1d", "2020-01-06", ""),  # Monday's day opens on Sunday
    ],
)
def test_bars_that_begin_after_the_start_are_named(
    tmp_path: Path, symbol: str, timeframe: str, start: str, begins: str
) -> None:
    words = ("RVI", symbol, "-t", timeframe, "--from", start)
    for command_words in (("backtest", *words), ("sweep", *words, "--most", "1")):
        shown = printed(tmp_path, *command_words)
        if begins:
            assert f"\nBars begin on {begins}, after the start.\n" in shown
        else:
            assert "after the start" not in shown


def test_the_tool_names_bars_that_begin_after_the_start(tmp_path: Path) -> None:
    wanted = {"strategy_id": "RVI", "symbol": "AAPL"}
    early = answered(tmp_path, "run_backtest", **wanted, start_date="2010-01-01")["note"]
    assert early.endswith("; bars begin on 2016-03-02, after the start")
    assert "bars begin" not in answered(tmp_path, "run_backtest", **wanted, start_date="2020-01-01")["note"]


def test_the_rating_of_a_run_is_not_called_score_and_the_two_luck_figures_are_told_apart(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    words = ("sweep", "RVI", "BTC/USD", "--most", "4", "--by", "rating", "-o", str(table))
    swept, ran = printed(tmp_path / "home", *words), printed(tmp_path / "home", "backtest", "RVI", "BTC/USD")
    assert "rating" in swept.splitlines()[3]
    assert 0 <= float(figure(ran, "rating")) <= 1
    assert "rating" in table.read_text().splitlines()[1].split(",")
    assert not any("score" in each for each in (swept, ran, table.read_text()))
    assert "\nThe best Sharpe of 4 tries is " in swept
    assert ": it can be low although none of them has an edge.\n" in swept
    assert "did you mean" in command(tmp_path / "home", *words[:-4], "--by", "ratings")[2]


NOBODY = "postgresql://desk@127.0.0.1:1/desk"


def test_canonical_strategies_are_tested_without_the_records(tmp_path: Path) -> None:
    out = printed(tmp_path, "backtest", "SMA_RSI", "AAPL", "--from", "2025", DATABASE_URL=NOBODY)
    given = json.dumps({"strategy_id": "sma rsi", "symbol": "AAPL", "start_date": "2025-01-01"})
    answer = printed(tmp_path, "call", "backtest", "run_backtest", given, DATABASE_URL=NOBODY)
    found = json.loads(answer)["data"]
    assert figure(out, "total return") == f"{found['total_return'] * 100:,.2f} %"


def test_others_are_refused_with_the_reason(tmp_path: Path) -> None:
    sentence = "MINE is no canonical strategy and is looked up in the records: no connection to PostgreSQL at "
    code, _, errors = command(tmp_path, "backtest", "MINE", "AAPL", *AS_OF, DATABASE_URL=NOBODY)
    assert (code, sentence in errors) == (1, True), errors
    given = json.dumps({"strategy_id": "MINE", "symbol": "AAPL"})
    code, out, _ = command(tmp_path, "call", "backtest", "run_backtest", given, *AS_OF, DATABASE_URL=NOBODY)
    assert (code, sentence in out) == (1, True), out
