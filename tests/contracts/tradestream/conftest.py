"""The servers of the contract on real databases: PostgreSQL, InfluxDB, and the same two when they are gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from openbell.market.clock import iso, parse_time
from tests.client import OPENBELL, Client, run
from tests.contracts.tradestream.agent import Agent
from tests.prefork import STRATEGIES
from tests.servers.desks import fresh_database
from tests.servers.reverting_market import FOUND, days_file
from tests.stores import influx_server
from tests.stores.influx_server import InfluxServer
from tests.stores.records.postgres_server import NotHere, PostgresServer
from tests.waiting import wait_for

BTC = "BTC/USD"
KNOWN = ("ATR_CCI", "BBAND_WILLIAMS_R", "MACD_CROSSOVER", "PARABOLIC_SAR", "PRICE_GAP", "RVI", "SMA_RSI")
"""The strategies that are tried; one of them has an edge, and one hardly trades."""
PLACED, SEEN = "2026-01-07T15:00:00Z", "2026-01-07T15:40:00Z"


@dataclass(frozen=True)
class Desk:
    """A home with what the servers of one desk are started with."""

    home: Path
    flags: tuple[str, ...]
    settings: dict[str, str]

    def agent(self, server: str, **settings: str) -> Agent:
        """One more server of this desk."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(STRATEGIES, ",".join(KNOWN))
            return Agent(self.home, server, *self.flags, **{**self.settings, **settings})


@pytest.fixture(scope="package")
def influx() -> Iterator[InfluxServer]:
    """A real InfluxDB."""
    with influx_server.own_server() as made:
        yield made


# Strategies, backtests and specs: imported days of a market with an edge, their records in PostgreSQL


@pytest.fixture(scope="package")
def research(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Desk:
    """The desk of the three servers."""
    folder = tmp_path_factory.mktemp("research")
    done = run(folder / "home", "import", str(days_file(folder)), "--symbol", BTC, FEED="none")
    assert done.returncode == 0, done.stderr
    settings = {"FEED": "none", "DATABASE_URL": fresh_database(postgres)}
    return Desk(folder / "home", ("--as-of", FOUND, "--scenario", "contract"), settings)


@pytest.fixture(scope="package")
def strategy(research: Desk) -> Iterator[Agent]:
    """strategy-mcp, after every strategy was tried on the market."""
    with research.agent("strategy") as made:

        def is_searched() -> bool:
            found = made.result("get_top_strategies", symbol=BTC, limit=100, force_refresh=True)
            return not found["isError"] and "search" not in json.dumps(found["_meta"])

        wait_for(is_searched, "the search", patience=120)
        yield made


@pytest.fixture(scope="package")
def backtest(research: Desk, strategy: Agent) -> Iterator[Agent]:
    """backtest-mcp."""
    with research.agent("backtest") as made:
        yield made


@pytest.fixture(scope="package")
def strategy_db(research: Desk, strategy: Agent) -> Iterator[Agent]:
    """strategy-db-mcp."""
    with research.agent("strategy-db") as made:
        yield made


# Market data: the simulator's bars, and a few imported ones, in InfluxDB


@pytest.fixture(scope="package")
def market_data(tmp_path_factory: pytest.TempPathFactory, influx: InfluxServer) -> Iterator[Agent]:
    """market-data-mcp."""
    home = tmp_path_factory.mktemp("market")
    with Agent(home, "market-data", "--as-of", "2026-01-07T15:00:30Z", INFLUX_URL=influx.url) as made:
        yield made


@pytest.fixture(scope="package")
def few_bars(tmp_path_factory: pytest.TempPathFactory, influx: InfluxServer) -> Desk:
    """A desk with 200 minutes of a stock, which end at 16:50 UTC; its clock is given to `agent` as AS_OF."""
    folder = tmp_path_factory.mktemp("few")
    settings = {"FEED": "none", "INFLUX_URL": influx.url, "INFLUX_DATABASE": "few"}
    import_minutes(folder, settings)
    return Desk(folder, (), settings)


def import_minutes(folder: Path, settings: dict[str, str]) -> None:
    """Import 200 minutes of AAPL from 19 September 2025, 13:30 UTC, on."""
    first = int(parse_time("2025-09-19T13:30:00Z"))
    rows = (f"{iso(first + 60 * n)},{100 + n % 7},{101 + n % 7},{99 + n % 7},{100 + n % 7},{n}" for n in range(200))
    file = folder / "AAPL.csv"
    file.write_text("\n".join(["time,open,high,low,close,volume", *rows, ""]))
    done = run(folder, "import", str(file), "--symbol", "AAPL", **settings)
    assert done.returncode == 0, done.stderr


# Portfolio and decisions: their records in PostgreSQL


@pytest.fixture(scope="package")
def account(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Desk:
    """The desk of an account with three positions."""
    home, settings = tmp_path_factory.mktemp("account"), {"DATABASE_URL": fresh_database(postgres)}
    with Client(home, command=[*OPENBELL, "mcp", "chartgen", "--trade", "--as-of", PLACED], **settings) as trading:
        trading.initialize()
        for symbol, quantity in ((BTC, "0.05"), ("ETH/USD", "1"), ("AAPL", "10")):
            order = {"symbol": symbol, "side": "buy", "type": "market", "quantity": quantity}
            placed = trading.call("place_order", order)["result"]
            assert placed["isError"] is False, placed
    return Desk(home, ("--trade", "--as-of", SEEN), settings)


@pytest.fixture(scope="package")
def portfolio(account: Desk) -> Iterator[Agent]:
    """portfolio-mcp."""
    with account.agent("portfolio") as made:
        yield made


@pytest.fixture(scope="package")
def journal(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Desk:
    """The desk of the decisions."""
    return Desk(tmp_path_factory.mktemp("journal"), (), {"DATABASE_URL": fresh_database(postgres)})


@pytest.fixture(scope="package")
def decisions(journal: Desk) -> Iterator[Agent]:
    """decisions-mcp."""
    with journal.agent("decisions") as made:
        yield made


@pytest.fixture(scope="package")
def servers(
    strategy: Agent, market_data: Agent, portfolio: Agent, backtest: Agent, decisions: Agent, strategy_db: Agent
) -> dict[str, Agent]:
    """All six."""
    every = (strategy, market_data, portfolio, backtest, decisions, strategy_db)
    return {each.name.removesuffix("-mcp"): each for each in every}


# Databases that are gone


@pytest.fixture(scope="package")
def fallen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Agent]]:
    """All six servers, with 200 minutes of AAPL. Their databases answered them once and were then killed."""
    home, other = tmp_path_factory.mktemp("fallen"), tmp_path_factory.mktemp("fallen-bars")
    with ExitStack() as stack:
        try:
            records, bars = PostgresServer(), InfluxServer()
        except (NotHere, influx_server.NotHere) as missing:
            pytest.skip(f"NOT TESTED: {missing}")
        stack.callback(records.close)
        stack.callback(bars.close)
        in_postgres = {"DATABASE_URL": records.url, "FEED": "none"}
        in_influx = {"INFLUX_URL": bars.url, "FEED": "none"}
        import_minutes(home, {"FEED": "none"})
        import_minutes(other, in_influx)
        made = {
            name: stack.enter_context(Agent(home, name, **in_postgres))
            for name in ("strategy", "portfolio", "backtest", "decisions", "strategy-db")
        }
        clock = ("--as-of", "2025-09-19T16:51:00Z")
        made["market-data"] = stack.enter_context(Agent(other, "market-data", *clock, **in_influx))
        made["strategy"].code("get_strategy_consensus", symbol="AAPL")
        made["portfolio"].data("get_balance")
        made["backtest"].code("get_historical_performance", strategy_id="MACD_CROSSOVER", symbol="AAPL")
        made["decisions"].data("get_recent_decisions", limit=1)
        made["strategy-db"].data("get_top_specs", limit=1)
        made["market-data"].data("get_candles", symbol="AAPL", timeframe="15m")
        records.kill()
        bars.kill()
        yield made
