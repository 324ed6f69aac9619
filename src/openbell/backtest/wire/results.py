"""Results of jobs as messages of the gRPC backtester, and back, equal to the bit.

A message does not repeat the bars and the strategy: the client has them in its job.
"""

from __future__ import annotations

from dataclasses import fields
from math import isnan, nan
from typing import Any

from openbell.backtest.engine import Run
from openbell.backtest.jobs import BacktestJob, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.metrics import Metrics
from openbell.backtest.monte_carlo import MonteCarlo, Percentiles
from openbell.backtest.portfolio import Portfolio
from openbell.backtest.runs import Backtest, traded_bars
from openbell.backtest.trades import Trades
from openbell.backtest.walk_forward import WalkForward, Window, tested_bars
from openbell.backtest.wire import backtester_pb2 as pb
from openbell.backtest.wire.arrays import floats, number_messages, numbers_of, pack, wholes
from openbell.market.bars import Bars
from openbell.strategies.spec import Side

_WHOLE = ("entry_index", "exit_index", "reason")
_FLOAT = ("entry_price", "exit_price", "quantity", "entry_fee", "exit_fee", "profit")

# Results to messages


def run_message(found: Backtest) -> Any:
    """Returns the message of a result."""
    columns = zip((*_WHOLE, *_FLOAT), found.run.trades.columns(), strict=True)
    return pb.Run(
        metrics=_metrics_message(found.metrics),
        trades=pb.Trades(**{name: pack(column) for name, column in columns}),
        equity=pack(found.run.equity),
    )


def walk_forward_message(found: WalkForward) -> Any:
    """Returns the message of a result."""
    return pb.WalkForward(
        windows=[_window_message(each) for each in found.windows],
        out_of_sample=run_message(found.out_of_sample),
        in_sample_sharpe=found.in_sample_sharpe,
        degradation=found.degradation,
        reasons=found.reasons,
    )


def monte_carlo_message(found: MonteCarlo) -> Any:
    """Returns the message of a result."""
    return pb.MonteCarlo(**{each.name: getattr(found, each.name) for each in fields(MonteCarlo)})


def portfolio_message(found: Portfolio) -> Any:
    """Returns the message of a result."""
    rows = [[nan if value is None else value for value in row] for row in found.correlation]
    return pb.Portfolio(
        parts=[run_message(each) for each in found.parts],
        time=pack(found.time),
        equity=pack(found.equity),
        metrics=_metrics_message(found.metrics),
        correlation=[pb.CorrelationRow(values=row) for row in rows],
    )


def _metrics_message(metrics: Metrics) -> Any:
    return pb.Metrics(**{each.name: getattr(metrics, each.name) for each in fields(Metrics)})


def _window_message(window: Window) -> Any:
    return pb.Window(
        train_start=window.train.start,
        train_end=window.train.stop,
        test_start=window.test.start,
        test_end=window.test.stop,
        parameters=number_messages(window.parameters),
        in_sample=_metrics_message(window.in_sample),
        out_of_sample=_metrics_message(window.out_of_sample),
    )


# Messages to results


def backtest_result(job: BacktestJob, message: Any) -> Backtest:
    """Returns the result of a job."""
    return _run(message, traded_bars(job.bars, job.start, job.end), job.strategy.side)


def walk_forward_result(job: WalkForwardJob, message: Any) -> WalkForward:
    """Returns the result of a job."""
    windows = tuple(_window(each, job) for each in message.windows)
    traded = tested_bars(job.bars, [each.test for each in windows])
    return WalkForward(
        windows,
        _run(message.out_of_sample, traded, job.spec.side),
        message.in_sample_sharpe,
        message.degradation if message.HasField("degradation") else None,
        tuple(message.reasons),
    )


def monte_carlo_result(job: MonteCarloJob, message: Any) -> MonteCarlo:  # noqa: ARG001
    """Returns the result of a job."""
    found = {each.name: getattr(message, each.name) for each in fields(MonteCarlo)}
    shares = {name: Percentiles(*found[name]) for name in ("total_return", "max_drawdown")}
    return MonteCarlo(**{**found, **shares})


def portfolio_result(job: PortfolioJob, message: Any) -> Portfolio:
    """Returns the result of a job."""
    parts = [
        _run(each, traded_bars(part.bars, job.start, job.end), part.strategy.side)
        for part, each in zip(job.parts, message.parts, strict=True)
    ]
    rows = tuple(tuple(None if isnan(value) else value for value in row.values) for row in message.correlation)
    time, equity = wholes(message.time, "time"), floats(message.equity, "equity")
    return Portfolio(tuple(parts), time, equity, _metrics(message.metrics), rows)


def _run(message: Any, bars: Bars, side: Side) -> Backtest:
    trades = message.trades
    columns: list[Any] = [wholes(getattr(trades, name), name) for name in _WHOLE]
    columns += [floats(getattr(trades, name), name) for name in _FLOAT]
    run = Run(Trades(side, *columns), floats(message.equity, "equity"))
    return Backtest(bars, run, _metrics(message.metrics))


def _metrics(message: Any) -> Metrics:
    def value(name: str) -> Any:
        return getattr(message, name) if name == "trades" or message.HasField(name) else None

    return Metrics(**{each.name: value(each.name) for each in fields(Metrics)})


def _window(message: Any, job: WalkForwardJob) -> Window:
    found = numbers_of(message.parameters)
    return Window(
        range(message.train_start, message.train_end),
        range(message.test_start, message.test_end),
        {name: found[name] for name in job.spec.defaults()},  # messages have no order
        _metrics(message.in_sample),
        _metrics(message.out_of_sample),
    )
