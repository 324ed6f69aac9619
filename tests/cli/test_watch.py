"""`openbell watch add` refuses symbols of which there are no bars, with the nearest that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client import run

BARS = "time,open,high,low,close,volume\n2025-01-02,1,2,1,2,9\n2025-01-03,2,2,1,1,8\n"


@pytest.mark.parametrize(
    ("symbol", "said"),
    [
        ("BTC", "did you mean 'BTC/USD' or 'BTC/USDT'?"),
        ("APPL", "did you mean 'AAPL'?"),
        ("XRP/EUR", "Unknown symbol XRP/EUR: neither stored nor known to the feed"),
    ],
)
def test_a_symbol_that_the_feed_lacks_is_refused_unless_it_is_forced(tmp_path: Path, symbol: str, said: str) -> None:
    done = run(tmp_path, "watch", "add", "SOL/USDT", symbol)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.endswith("(--force adds it all the same)\n")
    assert not (tmp_path / "watchlist.txt").exists(), "none of them was added"
    assert run(tmp_path, "watch", "add", symbol, "--force").stdout == f"added {symbol}\n"
    again = run(tmp_path, "watch", "add", symbol)
    assert (again.returncode, again.stderr) == (0, ""), "it is watched already"


def test_a_symbol_with_stored_bars_is_added_without_a_feed(tmp_path: Path) -> None:
    (tmp_path / "bars.csv").write_text(BARS)
    home = tmp_path / "home"
    run(home, "import", str(tmp_path / "bars.csv"), "--symbol", "ZZZZ", FEED="none")
    run(home, "watch", "remove", "ZZZZ", FEED="none")
    assert run(home, "watch", "add", "ZZZZ", FEED="none").stdout == "added ZZZZ\n"
    refused = run(home, "watch", "add", "ZZZY", FEED="none")
    assert (refused.returncode, "did you mean 'ZZZZ'?" in refused.stderr) == (1, True)


@pytest.mark.usefixtures("alpaca")
def test_a_vendor_is_asked_whether_it_lists_the_symbol(tmp_path: Path) -> None:
    refused = run(tmp_path, "watch", "add", "NFLX", FEED="alpaca")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Unknown symbol NFLX: Alpaca does not list it" in refused.stderr
    done = run(tmp_path, "watch", "add", "SOL/USDT", FEED="alpaca")
    assert (done.returncode, done.stdout, done.stderr) == (0, "added SOL/USDT\n", "")


def test_a_vendor_that_cannot_be_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA_URL", "STREAM_URL", "TRADING_URL"):
        monkeypatch.setenv(f"ALPACA_{name}", "http://127.0.0.1:9")
    monkeypatch.setenv("ALPACA_API_KEY", "key")
    monkeypatch.setenv("ALPACA_SECRET_KEY", "secret")
    done = run(tmp_path, "watch", "add", "ORCL", FEED="alpaca")
    assert (done.returncode, done.stdout) == (0, "added ORCL\n")
    assert "it could not be checked whether the feed has them: " in done.stderr
    assert "ORCL" in run(tmp_path, "watch", "list", FEED="alpaca").stdout
