"""The contracts of strategy, strategy-db and backtest: over real pipes, and in process where a pipe adds nothing."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest

from openbell.backtest.current_signals import current_signals
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.backtest.search import search
from openbell.desk.bars.watchlist import Watchlist, WatchlistFile
from openbell.desk.research.strategies import specs as spec_service
from openbell.desk.research.strategies.series_bars import SEARCHED
from openbell.desk.research.workers import Workers
from openbell.market.bars import make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.stores.records import strategies as queries
from openbell.strategies.compiled import compiled
from openbell.strategies.implementations import fingerprint_of
from openbell.strategies.library import canonical
from openbell.strategies.spec import ConditionType, Stop
from tests.client import OPENBELL, Client, run
from tests.gateway.services import Service, free_port
from tests.searches import search_only
from tests.servers.desks import (
    OTHER,
    Bench,
    awaited,
    bench_as_found,
    check_against_contract,
    data,
    error,
    fresh_database,
    with_nulls,
)
from tests.servers.reverting_market import BUYS_LOW, DAY, DAYS, FIRST, FOUND, closes, days_file
from tests.servers.test_sizes import MOST, tokens

CONTRACTS = Path(__file__).parent / "contracts"
SERVERS = ("strategy", "backtest", "strategy-db")
BTC = "BTC/USD"
COSTS = (0.001, 0.0005)
"""Fields of results beside the contract's."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imported days of a market with an edge."""
    folder = tmp_path_factory.mktemp("market")
    done = run(folder / "home", "import", str(days_file(folder)), "--symbol", BTC, FEED="none")
    assert done.returncode == 0, done.stderr
    return folder / "home"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def clients(request: pytest.FixtureRequest, home: Path) -> Iterator[dict[str, Client]]:
    """One process of each server, in one scenario."""
    settings = {"TIMEOUT": "60", "FEED": "none"}
    if request.param == "postgresql":
        settings["DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"))
    flags = ["--as-of", FOUND, "--scenario", f"on-{request.param}"]
    made = {name: Client(home, command=[*OPENBELL, "mcp", name, *flags], **settings) for name in SERVERS}
    try:
        for client in made.values():
            client.initialize()
        made["strategy"].aside = [{"source": request.param}]
        yield made
    finally:
        for client in made.values():
            client.__exit__(None, None, None)


@pytest.fixture
def three_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches three strategies, of which the last one has the edge."""
    search_only(monkeypatch, "MACD_CROSSOVER", "SMA_RSI", "BBAND_WILLIAMS_R")


# The contracts


@pytest.mark.parametrize("name", SERVERS)
def test_names_schemas_enums_limits_and_defaults_are_the_contracts(clients: dict[str, Client], name: str) -> None:
    check_against_contract(clients[name], json.loads((CONTRACTS / f"{name}.json").read_text()))


def test_results_fit_the_contracts_and_name_their_source(clients: dict[str, Client]) -> None:
    spec_id = data(clients["strategy-db"], "submit_new_spec", **{**BUYS_LOW, "name": "CONTRACT"})["spec_id"]
    ranked = data(clients["strategy"], "get_top_strategies", symbol=BTC)["items"][0]["strategy_id"]
    calls: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "strategy": [
            ("get_top_strategies", {"symbol": BTC}),
            ("get_strategy_signal", {"strategy_id": ranked, "symbol": BTC}),
            ("get_strategy_consensus", {"symbol": BTC}),
        ],
        "backtest": [
            ("run_backtest", {"strategy_id": ranked, "symbol": BTC}),
            ("get_historical_performance", {"strategy_id": ranked, "period": "1y"}),
        ],
        "strategy-db": [
            ("get_top_specs", {}),
            ("get_implementations", {"spec_id": spec_id, "status": "ALL"}),
        ],
    }
    source = clients["strategy"].aside[0]["source"]
    for name, wanted in calls.items():
        returns = {tool["name"]: tool["returns"] for tool in json.loads((CONTRACTS / f"{name}.json").read_text())}
        schemas = {tool["name"]: tool for tool in clients[name].request("tools/list")["result"]["tools"]}
        for tool, arguments in wanted:
            payload = clients[name].call(tool, arguments)["result"]["structuredContent"]
            jsonschema_rs.validate(schemas[tool]["outputSchema"], payload)
            jsonschema_rs.validate(with_nulls(returns[tool]), payload["data"])
            assert set(returns[tool]["properties"]) <= set(payload["data"]), tool
            assert tokens(payload) <= MOST, tool
            assert payload["_metadata"]["source"] == ("parquet" if tool == "run_backtest" else source)


def test_the_list_of_strategies_is_paged_and_ranked_by_the_metric(clients: dict[str, Client]) -> None:
    client = clients["strategy"]
    for metric in ("sharpe", "accuracy", "return"):
        whole = data(client, "get_top_strategies", symbol=BTC, metric=metric, limit=100)
        scores = [each["score"] for each in whole["items"]]
        assert scores == sorted(scores, reverse=True)
        if metric != "return":
            assert scores == [each[metric] for each in whole["items"]]
        page = data(client, "get_top_strategies", symbol=BTC, metric=metric, limit=3, offset=2)
        assert page["items"] == whole["items"][2:5]
        assert page["pagination"] == {
            "offset": 2,
            "limit": 3,
            "total": whole["pagination"]["total"],
            "has_more": True,
        }


def test_every_declared_error_is_raised(clients: dict[str, Client]) -> None:
    strategy, backtests, specs = (clients[name] for name in SERVERS)
    refused: list[tuple[Client, str, dict[str, Any], str]] = [
        (strategy, "get_top_strategies", {"symbol": "!!"}, "INVALID_SYMBOL"),
        (strategy, "get_top_strategies", {"symbol": "NFLX"}, "SYMBOL_NOT_FOUND"),
        (strategy, "get_top_strategies", {"symbol": BTC, "metric": "calmar"}, "INVALID_METRIC"),
        (strategy, "get_top_strategies", {"symbol": BTC, "limit": 101}, "INVALID_PARAMETER"),
        (strategy, "get_strategy_signal", {"strategy_id": "nobody", "symbol": BTC}, "STRATEGY_NOT_FOUND"),
        (strategy, "get_strategy_signal", {"strategy_id": "MACD_CROSSOVER", "symbol": "?"}, "INVALID_SYMBOL"),
        (strategy, "get_strategy_signal", {"strategy_id": "MACD_CROSSOVER", "symbol": "NFLX"}, "NO_SIGNAL"),
        (strategy, "get_strategy_consensus", {"symbol": "?"}, "INVALID_SYMBOL"),
        (strategy, "get_strategy_consensus", {"symbol": "NFLX"}, "NO_ACTIVE_STRATEGIES"),
        (backtests, "run_backtest", {"strategy_id": "nobody", "symbol": BTC}, "STRATEGY_NOT_FOUND"),
        (backtests, "run_backtest", {"strategy_id": "MACD_CROSSOVER", "symbol": "?"}, "INVALID_SYMBOL"),
        (backtests, "get_historical_performance", {"strategy_id": "nobody"}, "STRATEGY_NOT_FOUND"),
        (
            backtests,
            "get_historical_performance",
            {"strategy_id": "MACD_CROSSOVER", "symbol": BTC, "period": "2y"},
            "INVALID_PERIOD",
        ),
        (
            backtests,
            "get_historical_performance",
            {"strategy_id": "PRICE_GAP", "symbol": BTC, "period": "1w"},
            "NO_PERFORMANCE_DATA",
        ),
        (specs, "get_top_specs", {"source": "MINE"}, "INVALID_SOURCE"),
        (specs, "get_implementations", {"spec_id": "nobody"}, "SPEC_NOT_FOUND"),
        (specs, "get_implementations", {"spec_id": "MACD_CROSSOVER", "status": "BEST"}, "INVALID_STATUS"),
        (specs, "submit_new_spec", {**BUYS_LOW, "name": "!"}, "INVALID_NAME"),
        (specs, "submit_new_spec", {**BUYS_LOW, "name": "MACD_CROSSOVER"}, "DUPLICATE_NAME"),
        (specs, "submit_new_spec", {**BUYS_LOW, "parameters": [{"name": "n"}]}, "SCHEMA_VALIDATION_ERROR"),
    ]
    bad = {"start_date": "2024-01-02", "end_date": "2024-01-02"}
    for dates, code in (
        (bad, "INVALID_DATE_RANGE"),
        ({"start_date": "yesterday"}, "INVALID_DATE_RANGE"),
        ({"start_date": FOUND[:10]}, "INSUFFICIENT_DATA"),  # five minutes of that day have passed
        ({"start_date": "2025-04-02"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2999"}, "INVALID_DATE_RANGE"),
        ({"end_date": "2024"}, "INVALID_DATE_RANGE"),
        ({"start_date": "1950-01-01", "end_date": "1951-01-01"}, "INSUFFICIENT_DATA"),
    ):
        refused.append((backtests, "run_backtest", {"strategy_id": "MACD_CROSSOVER", "symbol": BTC, **dates}, code))
    for client, tool, arguments, code in refused:
        assert error(client, tool, **arguments)["code"] == code, (tool, arguments)


def test_a_start_may_be_a_year_or_a_month_as_at_the_shell(clients: dict[str, Client]) -> None:
    def note(start: str) -> str:
        wanted = {"strategy_id": "RVI", "symbol": BTC, "start_date": start}
        return str(data(clients["backtest"], "run_backtest", **wanted)["note"])

    assert note("2020") == note("2020-01-01")
    assert note("2020-06") == note("2020-06-01")


@awaited
async def test_without_a_feed_the_hint_is_to_import_bars(tmp_path: Path) -> None:
    rows = (f"{2000 + at // 12}-{at % 12 + 1:02}-01,1,2,1,{1 + at % 7 / 10},9" for at in range(120))
    (tmp_path / "few.csv").write_text("\n".join(["time,open,high,low,close,volume", *rows]) + "\n")
    done = run(tmp_path / "home", "import", str(tmp_path / "few.csv"), "--symbol", BTC, "-t", "1d", FEED="none")
    assert done.returncode == 0, done.stderr
    async with bench_as_found(tmp_path / "home", FEED="none") as desk:
        refused = await desk.refused("strategy", "get_top_strategies", symbol=BTC)
    assert refused["code"] == "SYMBOL_NOT_FOUND"
    assert refused["message"].endswith("bars (openbell import adds more)")


def test_a_refused_spec_has_every_problem_with_its_path(clients: dict[str, Client]) -> None:
    spec = {
        **BUYS_LOW,
        "name": "WRONG",
        "indicators": [{"id": "rsi", "type": "RSY", "params": {"length": "${n}"}}],
        "exit_conditions": [{"type": "CROSSES", "indicator": "rsi"}],
    }
    found = error(clients["strategy-db"], "submit_new_spec", **spec)
    assert found["code"] == "INVALID_INDICATORS"
    paths = {each["path"]: each["message"] for each in found["details"]["validation_errors"]}
    assert "rsi" in paths["indicators[0].type"].lower()
    assert "CROSSED" in paths["exit_conditions[0].type"], "the argument is named as it was given"
    conditions = {**BUYS_LOW, "name": "WRONG", "entry_conditions": [{"type": "OVER", "indicator": "ema"}]}
    assert error(clients["strategy-db"], "submit_new_spec", **conditions)["code"] == "INVALID_CONDITIONS"


@pytest.mark.parametrize(
    ("left_out", "code"),
    [
        ("name", "INVALID_NAME"),
        ("indicators", "SCHEMA_VALIDATION_ERROR"),
        ("entry_conditions", "SCHEMA_VALIDATION_ERROR"),
        ("exit_conditions", "SCHEMA_VALIDATION_ERROR"),
        ("parameters", "SCHEMA_VALIDATION_ERROR"),
    ],
)
def test_a_spec_without_a_part_has_the_contracts_code(clients: dict[str, Client], left_out: str, code: str) -> None:
    spec = {key: value for key, value in BUYS_LOW.items() if key != left_out}
    for given in (spec, {**spec, left_out: None}):
        found = error(clients["strategy-db"], "submit_new_spec", **given)
        assert found["code"] == code
        assert found["message"].endswith(f"refused: {left_out}: is required")
        assert found["details"]["validation_errors"] == [{"code": code, "path": left_out, "message": "is required"}]


def test_a_spec_without_anything_has_the_code_of_its_name_and_every_problem(clients: dict[str, Client]) -> None:
    found = error(clients["strategy-db"], "submit_new_spec")
    assert found["code"] == "INVALID_NAME"
    parts = ["name", "indicators", "entry_conditions", "exit_conditions", "parameters"]
    assert [(each["path"], each["message"]) for each in found["details"]["validation_errors"]] == [
        (part, "is required") for part in parts
    ]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("name", "INVALID_NAME"),
        ("indicators", "INVALID_INDICATORS"),
        ("entry_conditions", "INVALID_CONDITIONS"),
        ("parameters", "SCHEMA_VALIDATION_ERROR"),
    ],
)
def test_a_part_of_a_spec_of_another_type_has_the_contracts_code(
    clients: dict[str, Client], part: str, code: str
) -> None:
    assert error(clients["strategy-db"], "submit_new_spec", **{**BUYS_LOW, part: 5})["code"] == code


def test_a_name_is_taken_once(clients: dict[str, Client]) -> None:
    spec = {**BUYS_LOW, "name": "ONLY_ONCE"}
    made = data(clients["strategy-db"], "submit_new_spec", **spec)
    assert made["created"] is True
    assert made["validation_errors"] == []
    again = error(clients["strategy-db"], "submit_new_spec", **{**spec, "name": "only once"})
    assert again["code"] == "DUPLICATE_NAME"
    assert again["details"]["spec_id"] == made["spec_id"]
    listed = data(clients["strategy-db"], "get_top_specs", source="LLM_GENERATED", limit=100, force_refresh=True)[
        "items"
    ]
    assert [each["source"] for each in listed if each["spec_id"] == made["spec_id"]] == ["LLM_GENERATED"]


# Figures


def test_a_backtest_honours_its_dates_to_the_bar_and_equals_the_engine(clients: dict[str, Client]) -> None:
    close = closes()
    opened = np.concatenate(([100.0], close[:-1]))
    high, low = (np.round(edge, 4) for edge in (np.maximum(opened, close) * 1.001, np.minimum(opened, close) * 0.999))
    times = FIRST + DAY * np.arange(len(close))
    bars = make(parse(BTC), Timeframe.D1, times, opened, high, low, close, np.full(len(close), 1e6))
    start = int(datetime(2021, 3, 1, tzinfo=UTC).timestamp())
    end = int(datetime(2022, 3, 2, tzinfo=UTC).timestamp())
    strategy = compiled(canonical()["SMA_RSI"])
    expected = backtest(strategy, bars, Setup(10_000.0, 0.001, 0.0005), start, end).metrics
    found = data(
        clients["backtest"],
        "run_backtest",
        strategy_id="SMA_RSI",
        symbol="btcusd",
        start_date="2021-03-01",
        end_date="2022-03-01",
    )
    assert found["trades"] == expected.trades
    assert found["total_return"] == pytest.approx(expected.total_return, rel=1e-6)
    assert "366 1d bars from 2021-03-01" in found["note"]
    assert (found["start"], found["end"]) == ("2021-03-01T00:00:00+00:00", "2022-03-01T00:00:00+00:00")
    first, last = (bars.time.searchsorted(each) for each in (start, end))
    assert found["buy_and_hold_return"] == pytest.approx(close[last - 1] / opened[first] - 1, rel=1e-6)
    assert found["beats_buy_and_hold"] is (found["total_return"] > found["buy_and_hold_return"])
    assert found["final_equity"] == pytest.approx(found["initial_equity"] * (1 + found["total_return"]), rel=1e-8)
    assert (found["timeframe"], found["parameters"]) == ("1d", dict(strategy.parameters))


def test_figures_that_do_not_exist_are_null(clients: dict[str, Client]) -> None:
    quiet = {"strategy_id": "MACD_CROSSOVER", "symbol": BTC, "start_date": "2024-01-02", "end_date": "2024-01-04"}
    run = data(clients["backtest"], "run_backtest", **quiet)
    assert (run["trades"], run["total_return"]) == (0, 0)
    for name in ("sharpe_ratio", "win_rate", "profit_factor", "average_trade_return", "best_trade", "worst_trade"):
        assert run[name] is None, name
    untried = data(clients["strategy-db"], "submit_new_spec", **{**BUYS_LOW, "name": "UNTRIED"})["spec_id"]
    listed = data(clients["strategy-db"], "get_top_specs", source="LLM_GENERATED", limit=100, force_refresh=True)
    assert {each["spec_id"]: each["avg_sharpe"] for each in listed["items"]}[untried] is None
    found = data(clients["strategy-db"], "get_implementations", spec_id="MACD_CROSSOVER", status="ALL")["items"]
    assert found
    for each in found:
        assert each["forward_signals"] == 0, "it was found just now"
        assert (each["forward_sharpe"], each["forward_accuracy"]) == (None, None)


def test_a_backtest_at_the_service_names_it_and_the_store_of_the_bars(home: Path, tmp_path: Path) -> None:
    asked = {"strategy_id": "MACD_CROSSOVER", "symbol": BTC}
    command = [*OPENBELL, "mcp", "backtest", "--as-of", FOUND]
    with (
        Service(tmp_path, workers=1) as service,
        Client(home, command=command, FEED="none", TIMEOUT="60", BACKTESTER=service.address) as client,
    ):
        client.initialize()
        result = client.call("run_backtest", asked)["result"]
    assert result["structuredContent"]["_metadata"]["source"] == "grpc"
    assert result["_meta"]["openbell/truth"]["note"] == "the bars were read from parquet"


def test_a_backtest_of_an_implementation_names_the_bars_on_which_its_parameters_were_chosen(
    clients: dict[str, Client],
) -> None:
    (best,) = data(clients["strategy"], "get_top_strategies", symbol=BTC, limit=1)["items"]
    wanted = {"strategy_id": best["strategy_id"], "symbol": BTC}
    note = data(clients["backtest"], "get_historical_performance", **wanted, period="1y")["note"]
    known = note.split("; ")[1].split(". ")[0]
    assert known.startswith("its parameters were chosen on bars before 20")
    since = known.rpartition(" ")[2]

    whole = data(clients["backtest"], "run_backtest", **wanted)["note"]
    later = data(clients["backtest"], "run_backtest", **wanted, start_date=since[:10])["note"]
    default = data(clients["backtest"], "run_backtest", strategy_id=best["name"], symbol=BTC)["note"]

    before = (datetime.fromisoformat(since) - datetime.fromisoformat(whole.split(" from ")[1].split(" ")[0])).days
    assert f"; {known} ({before:,} of these 1,250)" in whole
    assert f"; {known}" in later
    assert "of these" not in later
    assert "chosen" not in default


def test_a_parameter_is_the_same_number_in_every_tool(clients: dict[str, Client]) -> None:
    """Whole numbers are 17 and not 17.0."""
    (best,) = data(clients["strategy"], "get_top_strategies", symbol=BTC, limit=1)["items"]
    wanted = {"strategy_id": best["strategy_id"], "symbol": BTC}
    listed = data(clients["strategy-db"], "get_implementations", spec_id=best["name"], status="ALL")["items"]
    (own,) = (each["parameters"] for each in listed if each["impl_id"] == best["strategy_id"])
    assert any(isinstance(each, int) for each in own.values())
    told = [json.dumps(own, sort_keys=True)] + [
        json.dumps(data(clients[server], tool, **wanted, **more)["parameters"], sort_keys=True)
        for server, tool, more in (
            ("strategy", "get_strategy_signal", {}),
            ("backtest", "run_backtest", {}),
            ("backtest", "get_historical_performance", {"period": "1y"}),
        )
    ]
    assert len(set(told)) == 1, told


def test_performance_depends_on_the_period_and_adds_up_by_month(clients: dict[str, Client]) -> None:
    client = clients["backtest"]
    year, quarter = (
        data(client, "get_historical_performance", strategy_id="BBAND_WILLIAMS_R", symbol=BTC, period=period)
        for period in ("1y", "3m")
    )
    assert year["total_signals"] > quarter["total_signals"]
    assert sum(each["total_signals"] for each in year["performance_by_month"]) == year["total_signals"]
    months = [each["month"] for each in year["performance_by_month"]]
    assert months == sorted(months)
    assert (months[0], months[-1]) == ("2024-04", "2025-03")
    for found in (year, quarter):
        returns = {each["month"]: each["total_return"] for each in found["performance_by_month"]}
        assert found["total_return"] == pytest.approx(prod(1 + each for each in returns.values()) - 1, rel=1e-8)
        for name, pick in (("best_month", max), ("worst_month", min)):
            month = pick(returns, key=lambda each: returns[each])
            assert found[name] == {"month": month, "total_return": returns[month]}
        assert (found["start"][:7], found["end"][:7]) == (min(returns), max(returns))


def test_the_walk_forward_sharpe_and_the_one_since_training_have_their_own_names(clients: dict[str, Client]) -> None:
    specs, reasons = clients["strategy-db"], []
    for name in ("MACD_CROSSOVER", "SMA_RSI", "BBAND_WILLIAMS_R", "PARABOLIC_SAR", "RVI"):
        page = data(specs, "get_implementations", spec_id=name, status="ALL")
        assert page["note"].startswith("sharpe is since training; edge_ and the reason are of all five walk-forward")
        reasons += [each["reason"] for each in page["items"]]
    assert any("walk-forward Sharpe is" in each for each in reasons), reasons
    assert not any("sample" in each for each in reasons), reasons
    best = data(clients["strategy"], "get_top_strategies", symbol=BTC, limit=1)["items"][0]["strategy_id"]
    note = data(clients["strategy"], "get_strategy_signal", strategy_id=best, symbol=BTC)["note"]
    assert " trades closed since training, which ended at 20" in note


def test_a_signal_explains_its_confidence(clients: dict[str, Client]) -> None:
    ranked = data(clients["strategy"], "get_top_strategies", symbol=BTC, limit=1)["items"][0]
    found = data(clients["strategy"], "get_strategy_signal", strategy_id=ranked["strategy_id"], symbol=BTC)
    right, closed = (int(each) for each in found["note"].split(": ")[1].split(" trades")[0].split(" of "))
    assert found["confidence"] == pytest.approx((right + 1) / (closed + 2))
    assert found["triggered_at"] <= FOUND


def test_a_ranking_has_the_signal_of_each_strategy_and_the_price_since(clients: dict[str, Client]) -> None:
    client, close = clients["strategy"], closes()
    ranking = data(client, "get_top_strategies", symbol=BTC)["items"]
    newest = int((datetime.fromisoformat(FOUND).timestamp() - FIRST) // DAY) - 1
    for item in ranking:
        found = data(client, "get_strategy_signal", strategy_id=item["strategy_id"], symbol=BTC)
        for name in ("strategy_id", "signal", "timeframe", "status"):
            assert found[name] == item[name], name
        assert item["since"] == found["triggered_at"]
        # The bar that closed then opened a day before.
        decided = int((datetime.fromisoformat(item["since"]).timestamp() - FIRST) // DAY) - 1
        assert (found["price_at_signal"], found["price"]) == (close[decided], close[newest])
        change = (close[newest] / close[decided] - 1) * 100
        assert found["change_since_signal_pct"] == pytest.approx(change, rel=1e-8, abs=1e-8)


def test_specs_say_how_they_trade(clients: dict[str, Client]) -> None:
    items = data(clients["strategy-db"], "get_top_specs", limit=100, source="CANONICAL")["items"]
    assert {each["name"]: each["description"] for each in items} == {
        name: " ".join(spec.description.split()) for name, spec in canonical().items()
    }


@pytest.mark.usefixtures("three_strategies")
@pytest.mark.parametrize(
    ("stays", "told"),
    [
        (True, "searched: ask again; the search continues while this server runs"),
        (
            False,
            (
                "searched, and a search that is cut off begins anew: set OPENBELL_TIMEOUT to 120, or run openbell up, which "
                "searches in the background"
            ),
        ),
    ],
)
@awaited
async def test_a_call_that_is_too_early_says_how_far_the_search_is_and_a_later_one_answers(
    home: Path, monkeypatch: pytest.MonkeyPatch, stays: bool, told: str
) -> None:
    messages = []
    async with bench_as_found(home, FOUND, SCENARIO=f"late-{stays}".lower(), FEED="none", TIMEOUT="1") as desk:
        desk.desk.answers_early = stays
        compute, asked_once = Workers.run, asyncio.Event()

        async def compute_later(self: Workers, *given: Any) -> Any:
            await asked_once.wait()
            return await compute(self, *given)

        monkeypatch.setattr(Workers, "run", compute_later)
        deadline = time.monotonic() + 120
        while (reply := await desk.reply("strategy", "get_top_strategies", {"symbol": BTC})).is_error:
            assert reply.payload["error"]["code"] == "TIMEOUT", reply.payload
            messages.append(reply.payload["error"]["message"])
            if "tried" in messages[-1]:
                asked_once.set()
            assert time.monotonic() < deadline, messages
    assert reply.payload["data"]["items"]
    assert (
        "get_top_strategies took longer than 1 s (OPENBELL_TIMEOUT); strategies on 1d bars (0 of 3 tried) are still being "
        + told
    ) in messages, messages


# Answers that do not wait


@pytest.fixture
def own_home(home: Path, tmp_path: Path) -> Path:
    """A copy whose present may be written."""
    return Path(shutil.copytree(home, tmp_path / "home"))


def hold(monkeypatch: pytest.MonkeyPatch, held: Callable[..., Any]) -> asyncio.Event:
    """Let a calculation wait for the event that is returned."""
    compute, released = Workers.run, asyncio.Event()

    async def compute_later(self: Workers, work: Any, *given: Any) -> Any:
        if work is held:
            await released.wait()
        return await compute(self, work, *given)

    monkeypatch.setattr(Workers, "run", compute_later)
    return released


async def asked_until(desk: Bench, server: str, tool: str, wanted: Callable[[Any], bool], **given: Any) -> Any:
    """The first result of a kind; none before it is cached."""
    deadline = time.monotonic() + 60
    while True:
        payload = (await desk.reply(server, tool, given)).payload
        if wanted(payload):
            return payload
        assert payload["_metadata"].get("cached") is not True, payload
        assert time.monotonic() < deadline, payload


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_a_server_answers_before_the_first_search_of_a_symbol_ends(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = hold(monkeypatch, search)
    async with bench_as_found(own_home, FEED="none") as desk:
        desk.desk.answers_early = True
        early = "strategies on 1d bars (0 of 3 tried) are still being searched: ask again"

        def is_early(payload: Any) -> bool:
            # Within a second, which leaves time to load what the first call of a process needs.
            return "(0 of" in payload["data"]["note"] and payload["_metadata"]["latency_ms"] < 1000

        page = await asked_until(desk, "strategy", "get_top_strategies", is_early, symbol=BTC)
        assert (page["data"]["items"], page["data"]["pagination"]["total"], page["data"]["note"]) == ([], 0, early)
        signal = await desk.refused("strategy", "get_strategy_signal", strategy_id="SMA_RSI", symbol=BTC)
        assert (signal["code"], signal["message"]) == ("NO_SIGNAL", early)
        votes = await desk.refused("strategy", "get_strategy_consensus", symbol=BTC)
        assert (votes["code"], votes["message"]) == ("NO_ACTIVE_STRATEGIES", early)
        specs = await desk.ask("strategy-db", "get_top_specs")
        assert (specs["note"], specs["items"][0]["avg_sharpe"]) == (early, None)
        released.set()
        await asked_until(desk, "strategy", "get_top_strategies", lambda each: each["data"]["items"], symbol=BTC)


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_specs_are_listed_before_all_figures_are_computed(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = hold(monkeypatch, current_signals)
    async with bench_as_found(own_home, FEED="none") as desk:
        desk.desk.answers_early = True
        found = await asked_until(
            desk, "strategy-db", "get_top_specs", lambda each: "figures of 0 of 3" in each["data"].get("note", "")
        )
        assert [each["avg_sharpe"] for each in found["data"]["items"]] == [None] * 3
        assert sum(each["implementations_count"] for each in found["data"]["items"]) == 3
        made = await desk.ask("strategy-db", "get_implementations", spec_id="SMA_RSI", status="ALL")
        assert (made["note"], made["items"][0]["sharpe"]) == (found["data"]["note"], None)
        released.set()
        whole = await asked_until(desk, "strategy-db", "get_top_specs", lambda each: "note" not in each["data"])
        assert all(each["avg_sharpe"] is not None for each in whole["data"]["items"])


@pytest.mark.parametrize("feed", ["none", "sim"])
@awaited
async def test_a_ranking_and_a_consensus_say_when_nothing_has_passed_validation(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, feed: str
) -> None:
    search_only(monkeypatch, "MACD_CROSSOVER", "SMA_RSI", "RSI_EMA_CROSSOVER")  # without an edge in either market
    if feed == "sim":  # computes every minute of its bars
        monkeypatch.setitem(SEARCHED, Timeframe.D1, 300)
        monkeypatch.setitem(SEARCHED, Timeframe.H1, 3000)
    async with bench_as_found(own_home, FOUND, FEED=feed) as desk:
        page = await desk.ask("strategy", "get_top_strategies", symbol=BTC)
        votes = await desk.refused("strategy", "get_strategy_consensus", symbol=BTC)
    total = page["pagination"]["total"]
    expected = ", as is expected on simulated prices" if feed == "sim" else ""
    assert {each["status"] for each in page["items"]} == {"CANDIDATE"}
    assert page["note"] == f"none of {total} strateg{'y' if total == 1 else 'ies'} has passed validation{expected}"
    assert votes["code"] == "NO_ACTIVE_STRATEGIES"
    assert f"has passed validation{expected}; " in votes["message"]


# Who sees what, and when


def files_in(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_file())


def test_attack_a_spec_of_24_chained_indicators_does_not_end_the_desk(home: Path) -> None:
    """It is searched like any other, in processes that may have 6 GB of addresses."""
    chain = [{"id": "i0", "type": "SMA", "params": {"length": 9}}]
    chain += [{"id": f"i{at}", "type": "SMA", "input": f"i{at - 1}", "params": {"length": 2}} for at in range(1, 24)]
    condition = {"type": "OVER", "indicator": "i23", "params": {"other": "close"}}
    spec = {**BUYS_LOW, "name": "CHAIN", "indicators": chain, "entry_conditions": [condition], "parameters": []}
    spec["exit_conditions"] = [{"type": "STOP_LOSS", "params": {"percentage": 5}}]
    limited = ["bash", "-c", 'ulimit -v 6000000 && exec "$@"', "limited", *OPENBELL, "mcp"]
    flags, settings = ["--as-of", FOUND, "--scenario", "chain"], {"FEED": "none", "TIMEOUT": "60"}
    with (
        Client(home, command=[*limited, "strategy-db", *flags], **settings) as specs,
        Client(home, command=[*limited, "strategy", *flags], **settings) as strategies,
    ):
        specs.initialize()
        strategies.initialize()
        spec_id = data(specs, "submit_new_spec", **spec)["spec_id"]
        data(strategies, "get_top_strategies", symbol=BTC)
        (found,) = data(specs, "get_implementations", spec_id=spec_id, status="CANDIDATE")["items"]
        assert found["symbol"] == BTC


async def submitted(desk: Bench, name: str) -> str:
    found = await desk.ask("strategy-db", "submit_new_spec", **{**BUYS_LOW, "name": name})
    return str(found["spec_id"])


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_nobody_sees_the_specs_of_another(home: Path) -> None:
    async with bench_as_found(home, FOUND, SCENARIO="apart", FEED="none") as desk:
        spec_id = await submitted(desk, "MINE")
        unseen = await desk.refused("strategy-db", "get_implementations", OTHER, spec_id=spec_id)
        assert unseen["code"] == "SPEC_NOT_FOUND"
        mine = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100)
        others = await desk.ask("strategy", "get_top_strategies", OTHER, symbol=BTC, limit=100)
        assert {each["name"] for each in mine["items"]} - {each["name"] for each in others["items"]} == {"MINE"}
        (own,) = [each["strategy_id"] for each in mine["items"] if each["name"] == "MINE"]
        hidden = await desk.refused("strategy", "get_strategy_signal", OTHER, strategy_id=own, symbol=BTC)
        assert hidden["code"] == "STRATEGY_NOT_FOUND"
        again = await desk.ask("strategy-db", "submit_new_spec", OTHER, **{**BUYS_LOW, "name": "MINE"})
        assert again["spec_id"] != spec_id


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_a_desk_that_may_not_write_searches_in_memory_and_has_the_same_answer(home: Path) -> None:
    answers = []
    before = files_in(home)
    for settings in ({"READ_ONLY": "1", "TRADE": ""}, {"TRADE": ""}):
        async with bench_as_found(home, FOUND, FEED="none", **settings) as desk:
            answers.append(await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100))
            refused = await desk.refused("strategy-db", "submit_new_spec", **BUYS_LOW)
            assert refused["code"] == "UNAUTHORIZED"
    assert answers[0] == answers[1]
    assert files_in(home) == before


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_the_past_shows_what_the_records_knew_then(home: Path) -> None:
    async with bench_as_found(home, FOUND, SCENARIO="steps", FEED="none") as desk:
        early = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100)
        await submitted(desk, "LATE")
    async with bench_as_found(home, "2025-06-01T00:05:00Z", SCENARIO="steps", FEED="none") as desk:
        later = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100)
    assert "LATE" in {each["name"] for each in later["items"]}
    assert "LATE" not in {each["name"] for each in early["items"]}
    ids = {each["strategy_id"] for each in early["items"]}
    assert ids <= {each["strategy_id"] for each in later["items"]} | ids
    counts = {each["strategy_id"]: each["signals_count"] for each in later["items"]}
    assert any(counts.get(each["strategy_id"], 0) > each["signals_count"] for each in early["items"])


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_steps_do_not_depend_on_when_they_are_looked_for(home: Path) -> None:
    """One desk jumps nine months, another looks between: both record the same step at the bar of 21 December."""
    steps: dict[str, list[tuple[str, str, float]]] = {}
    for scenario, times in (("jumps", []), ("walks", ["2025-07-20", "2025-10-01", "2025-12-26"])):
        for as_of in (FOUND, *(f"{each}T00:05:00Z" for each in times), "2025-12-31T00:05:00Z"):
            async with bench_as_found(home, as_of, SCENARIO=scenario, FEED="none") as desk:
                await desk.ask("strategy", "get_top_strategies", symbol=BTC)
                records = desk.desk.trading.records
                found = await records.read(lambda view: queries.implementations_of(view, "local", COSTS, symbol=BTC))
        # Candidates are searched again now and then; what is followed goes its own way.
        steps[scenario] = sorted((each.id, each.status.value, each.changed_at) for each in found if each.status.active)
    assert steps["jumps"] == steps["walks"]
    assert "DEPLOYED" in {status for _, status, _ in steps["walks"]}


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_a_changed_spec_begins_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench_as_found(home, FOUND, SCENARIO="changed", FEED="none") as desk:
        with monkeypatch.context() as patch:
            patch.setattr(WatchlistFile, "read", lambda _file: Watchlist(()))  # otherwise the first symbol is searched
            before = await desk.ask("strategy-db", "get_implementations", spec_id="SMA_RSI", status="ALL")
        assert before["pagination"]["total"] == 0, "nothing was searched yet"
        await desk.ask("strategy", "get_top_strategies", symbol=BTC)
        (old,) = (
            await desk.ask("strategy-db", "get_implementations", spec_id="SMA_RSI", status="ALL", force_refresh=True)
        )["items"]
    known = spec_service.canonical_specs()
    changed = replace(canonical()["SMA_RSI"], stops=(Stop(ConditionType.STOP_LOSS, 7.0),))
    new = replace(
        next(each for each in known if each.id == "SMA_RSI"), spec=changed, fingerprint=fingerprint_of(changed)
    )
    rest = tuple(each for each in known if each.id != "SMA_RSI")
    for module in ("specs", "searching"):
        monkeypatch.setattr(f"openbell.desk.research.strategies.{module}.canonical_specs", lambda: (*rest, new))
    async with bench_as_found(home, FOUND, SCENARIO="changed", FEED="none") as desk:
        await desk.ask("strategy", "get_top_strategies", symbol=BTC)
        listed = await desk.ask("strategy-db", "get_implementations", spec_id="SMA_RSI", status="ALL")
        items = {each["impl_id"]: each for each in listed["items"]}
        assert items[old["impl_id"]]["status"] == "RETIRED"
        assert "changed" in items[old["impl_id"]]["reason"]
        (begun,) = [each for name, each in items.items() if name != old["impl_id"]]
        assert begun["status"] in {"CANDIDATE", "VALIDATED"}


def rewritten(folder: Path, name: str, change: Any) -> Path:
    """The file of days with its rows changed."""
    path = days_file(folder, name)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *change(rows), ""]))
    return path


def imported(home: Path, path: Path) -> None:
    done = run(home, "import", str(path), "--symbol", BTC, FEED="none")
    assert done.returncode == 0, done.stderr


async def statuses(home: Path, as_of: str) -> tuple[set[str], dict[str, int]]:
    """The ids of the ranking of a scenario, and how many implementations of a spec have each status."""
    async with bench_as_found(home, as_of, SCENARIO="s", FEED="none") as desk:
        ranked = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100)
        listed = await desk.ask("strategy-db", "get_implementations", spec_id="BBAND_WILLIAMS_R", status="ALL")
        specs = await desk.ask("strategy-db", "get_top_specs", limit=100)
        (spec,) = [each for each in specs["items"] if each["spec_id"] == "BBAND_WILLIAMS_R"]
        current = [each for each in listed["items"] if each["status"] != "RETIRED"]
        assert spec["avg_sharpe"] == pytest.approx(current[0]["sharpe"]), "two tools must not contradict each other"
        counts: dict[str, int] = {}
        for each in listed["items"]:
            counts[each["status"]] = counts.get(each["status"], 0) + 1
        return {each["strategy_id"] for each in ranked["items"]}, counts


@pytest.mark.usefixtures("three_strategies")
@pytest.mark.parametrize("cause", ["corrected bars", "more history"])
def test_a_series_is_judged_again_when_its_bars_change(tmp_path: Path, cause: str) -> None:
    home = tmp_path / "home"
    whole = days_file(tmp_path)
    if cause == "more history":
        imported(home, rewritten(tmp_path, "late.csv", lambda rows: rows[2600:]))
    else:
        imported(home, whole)
    first, counts = asyncio.run(statuses(home, FOUND))
    assert "RETIRED" not in counts
    if cause == "corrected bars":
        # The second half of the time runs in another order: nothing of it can be predicted from the first search.
        corrected = rewritten(tmp_path, "new.csv", lambda rows: [*rows[:1500], *_shuffled(rows[1500:])])
        imported(home, corrected)
    else:
        imported(home, whole)
    again, counts = asyncio.run(statuses(home, FOUND))
    assert counts["RETIRED"] == 1
    assert sum(counts.values()) == 2
    assert not first & again
    same, repeated = asyncio.run(statuses(home, FOUND))
    assert (same, repeated) == (again, counts), "it is judged once"
    assert run(home, "verify", "--scenario", "s", FEED="none").returncode == 0


def _shuffled(rows: list[str]) -> list[str]:
    """The same days with the prices of other days."""
    prices = [row.partition(",")[2] for row in rows]
    order = np.random.default_rng(3).permutation(len(rows)).tolist()
    return [f"{row.partition(',')[0]},{prices[at]}" for row, at in zip(rows, order, strict=True)]


@awaited
async def test_days_that_are_old_do_not_hide_the_votes_of_hours(
    tmp_path: Path, quick_search: None, unseen_bars: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call after both were imported waits for the strategies that can vote."""
    # Hours of a coin make its days, which are as new then. Of a stock they do not, but its hours are hard to make up.
    monkeypatch.setattr(
        "openbell.desk.research.strategies.strategy_advice.is_current",
        lambda series, *_times: series.timeframe is Timeframe.H1,
    )
    home = tmp_path / "home"
    now = int(datetime.now(UTC).timestamp()) // 3600 * 3600
    imported(home, days_file(tmp_path))
    imported(home, days_file(tmp_path, "BTC_USD_1h.csv", now - 3600 * DAYS, 3600))
    async with bench_as_found(home, FEED="none") as desk:
        await submitted(desk, "BUYS_LOW")
        votes = await desk.ask("strategy", "get_strategy_consensus", symbol=BTC)
        voters = (await desk.ask("strategy-db", "get_implementations", spec_id="BUYS_LOW", status="ALL"))["items"]
    assert sum(votes[side] for side in ("bullish_count", "bearish_count", "neutral_count")) == 1, votes
    assert {each["timeframe"] for each in voters} == {"1d", "1h"}


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_signals_of_old_bars_do_not_count(home: Path) -> None:
    """The file ends on 14 January 2026: a week later nothing can be said any more."""
    async with bench_as_found(home, "2026-01-10T00:05:00Z", SCENARIO="old", FEED="none") as desk:
        votes = await desk.ask("strategy", "get_strategy_consensus", symbol=BTC)
        assert votes["data_source"] == "Imported bars"
        ranked = (await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=1))["items"][0]["strategy_id"]
    async with bench_as_found(home, "2026-02-01T00:05:00Z", SCENARIO="old", FEED="none") as desk:
        refused = await desk.refused("strategy", "get_strategy_consensus", symbol=BTC)
        assert refused["code"] == "NO_ACTIVE_STRATEGIES"
        assert "2026-01-14" in refused["message"]
        signal = await desk.refused("strategy", "get_strategy_signal", strategy_id=ranked, symbol=BTC)
        assert signal["code"] == "NO_SIGNAL"
        (item,) = (await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=1))["items"]
        assert (item["signal"], item["signal_note"]) == (None, signal["message"])
        assert "since" not in item


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_a_scenario_that_has_gone_on_still_answers_at_an_earlier_time(home: Path) -> None:
    for as_of in (FOUND, "2025-06-01T00:05:00Z"):
        async with bench_as_found(home, as_of, SCENARIO="gone-on", FEED="none") as desk:
            found = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100)
            if as_of == FOUND:
                before = found
    async with bench_as_found(home, FOUND, SCENARIO="gone-on", FEED="none") as desk:
        assert await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100) == before


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_ids_are_valid_in_every_process_of_a_desk_that_may_not_write(home: Path) -> None:
    settings = {"READ_ONLY": "1", "TRADE": "", "FEED": "none"}
    async with bench_as_found(home, FOUND, **settings) as desk:
        ranked = (await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=1))["items"][0]["strategy_id"]
    async with bench_as_found(home, FOUND, **settings) as desk:
        assert (await desk.ask("backtest", "run_backtest", strategy_id=ranked, symbol=BTC))["trades"] > 0
    async with bench_as_found(home, FOUND, **settings) as desk:
        one, two = [
            await desk.ask("strategy-db", "get_implementations", spec_id="SMA_RSI", status="ALL", force_refresh=True)
            for _ in range(2)
        ]
        assert one == two


@awaited
async def test_a_name_cannot_pass_for_an_id(home: Path) -> None:
    async with bench_as_found(home, FOUND, SCENARIO="names", FEED="none") as desk:
        spec_id = await submitted(desk, "VICTIM")
        refused = await desk.refused("strategy-db", "submit_new_spec", **{**BUYS_LOW, "name": spec_id})
        assert refused["code"] == "INVALID_NAME"


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_an_id_that_is_in_the_memory_of_another_process_needs_its_symbol(home: Path) -> None:
    settings = {"READ_ONLY": "1", "TRADE": "", "FEED": "none"}
    async with bench_as_found(home, FOUND, **settings) as desk:
        ranked = (await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=1))["items"][0]["strategy_id"]
        asked: dict[str, Any] = {"strategy_id": ranked, "period": "1y"}
        found = await desk.ask("backtest", "get_historical_performance", **asked)
    async with bench_as_found(home, FOUND, **settings) as desk:
        refused = await desk.refused("backtest", "get_historical_performance", **asked)
        assert refused["code"] == "STRATEGY_NOT_FOUND"
        assert "name its symbol too" in refused["message"]
        assert await desk.ask("backtest", "get_historical_performance", **asked, symbol=BTC) == found


# The backtester


@awaited
async def test_an_end_in_the_future_is_the_newest_bar(home: Path) -> None:
    async with bench_as_found(home, FOUND, FEED="none") as desk:
        asked: dict[str, Any] = {"strategy_id": "SMA_RSI", "symbol": BTC}
        newest = await desk.ask("backtest", "run_backtest", **asked)
        future = await desk.ask("backtest", "run_backtest", **asked, end_date="2027-06-01")
    assert newest == future
    assert "1250 1d bars" in newest["note"]


@pytest.mark.usefixtures("three_strategies")
@awaited
async def test_notes_say_which_trades_are_counted(home: Path) -> None:
    asked: dict[str, Any] = {"strategy_id": "BBAND_WILLIAMS_R", "symbol": BTC}
    async with bench_as_found(home, FOUND, SCENARIO="counted", FEED="none") as desk:
        year = await desk.ask("backtest", "get_historical_performance", **asked, period="1y")
        runs = [
            await desk.ask("backtest", "run_backtest", **asked, start_date="2024-04-01", end_date=f"2025-03-{day}")
            for day in range(10, 32)
        ]
    assert "Trades that were entered in the period are counted" in year["note"]
    assert "a position from before the period, which run_backtest does not have" in year["note"]
    assert all("it begins without a position" in each["note"] for each in runs)
    assert {"its last trade is open" in each["note"] for each in runs} == {True, False}


@awaited
async def test_a_backtester_that_is_not_there_or_too_slow_has_the_contracts_codes(home: Path) -> None:
    asked: dict[str, Any] = {"strategy_id": "SMA_RSI", "symbol": BTC}
    async with bench_as_found(home, FOUND, FEED="none", BACKTESTER=f"127.0.0.1:{free_port()}") as desk:
        refused = await desk.refused("backtest", "run_backtest", **asked)
        assert refused["code"] == "GRPC_ERROR", refused
    async with bench_as_found(home, FOUND, FEED="none", BACKTEST_TIMEOUT="0.000001") as desk:
        refused = await desk.refused("backtest", "run_backtest", **asked)
        assert refused["code"] == "BACKTEST_TIMEOUT", refused


@awaited
async def test_the_same_backtest_twice_has_the_same_bytes(home: Path) -> None:
    answers = []
    for _ in range(2):
        async with bench_as_found(home, FOUND, FEED="none") as desk:
            answers.append(json.dumps(await desk.ask("backtest", "run_backtest", strategy_id="ATR_CCI", symbol=BTC)))
    assert answers[0] == answers[1]


@awaited
async def test_a_timeout_inside_of_a_call_is_not_reported_as_the_limit_of_calls(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench_as_found(home, FOUND, FEED="none", TIMEOUT="0") as desk:

        async def times_out(*_given: Any, **_more: Any) -> Any:
            raise TimeoutError("a socket")

        monkeypatch.setattr(desk.desk.strategies.specs, "all", times_out)
        reply = await desk.reply("strategy", "get_top_strategies", {"symbol": BTC})
        assert reply.is_error
        assert "OPENBELL_TIMEOUT" not in f"{reply.payload}"
        assert reply.payload["error"]["code"] == "INTERNAL_ERROR"
