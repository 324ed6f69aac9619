"""Jobs and their results as messages of the gRPC backtester, and back, equal to the bit.

A job that is made of a request is fully checked. A result does not repeat the bars and the strategy: the client has them in
its job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from math import inf, isfinite, isnan, nan
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from openbell.backtest.engine import Run
from openbell.backtest.jobs import BacktestJob, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.metrics import RunMetrics
from openbell.backtest.monte_carlo import MonteCarlo, Percentiles
from openbell.backtest.portfolio import MOST_PARTS, Portfolio, PortfolioPart
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, traded_bars
from openbell.backtest.trades import Trades
from openbell.backtest.walk_forward import By, WalkForward, WalkForwardWindow, Windows, tested_bars
from openbell.backtest.wire import backtester_pb2 as pb
from openbell.backtest.wire.limits import MOST_BARS, MOST_COMBINATIONS, MOST_DRAWS, MOST_RUNS, MOST_SPEC
from openbell.market.bars import COLUMNS, Bars, Values, faults
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.session_table import Times
from openbell.market.timeframes import SHORT, name_of
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Number, PositionSide, Spec
from openbell.strategies.writing import write_spec

_WHOLE = ("entry_index", "exit_index", "reason")
_FLOAT = ("entry_price", "exit_price", "quantity", "entry_fee", "exit_fee", "profit")
_SIZE = 8


# Jobs to requests


def backtest_request(job: BacktestJob) -> Any:
    """Returns the request of a job."""
    return pb.BacktestRequest(
        strategy=_strategy_message(job.strategy),
        bars=bars_message(job.bars),
        regular=_optional_bars(job.regular),
        setup=_setup_message(job.setup),
        range=_range_message(job.start, job.end),
    )


def walk_forward_request(job: WalkForwardJob) -> Any:
    """Returns the request of a job."""
    windows = job.windows
    return pb.WalkForwardRequest(
        spec=json.dumps(write_spec(job.spec)),
        combinations=[pb.Combination(parameters=number_messages(each)) for each in job.combinations],
        bars=bars_message(job.bars),
        regular=_optional_bars(job.regular),
        setup=_setup_message(job.setup),
        train=windows.train,
        test=windows.test,
        step=windows.step,
        anchored=windows.anchored,
        first=windows.first,
        by=job.by.value,
    )


def monte_carlo_request(job: MonteCarloJob) -> Any:
    """Returns the request of a job."""
    numbers = {"simulations": job.simulations, "seed": job.seed, "drawdown_limit": job.drawdown_limit}
    return pb.MonteCarloRequest(returns=pack(job.returns), **numbers)


def portfolio_request(job: PortfolioJob) -> Any:
    """Returns the request of a job."""
    parts = [
        pb.Part(
            strategy=_strategy_message(each.strategy),
            bars=bars_message(each.bars),
            regular=_optional_bars(each.regular),
            weight=each.weight,
        )
        for each in job.parts
    ]
    return pb.PortfolioRequest(parts=parts, setup=_setup_message(job.setup), range=_range_message(job.start, job.end))


def _strategy_message(strategy: Compiled) -> Any:
    return pb.Strategy(spec=json.dumps(write_spec(strategy.spec)), parameters=number_messages(strategy.parameters))


def _optional_bars(bars: Bars | None) -> Any:
    return None if bars is None else bars_message(bars)


def _setup_message(setup: Setup) -> Any:
    return pb.Setup(cash=setup.cash, fee=setup.fee, slippage=setup.slippage)


def _range_message(start: float, end: float) -> Any:
    return pb.Range(start=start if isfinite(start) else None, end=end if isfinite(end) else None)


# Requests to jobs


def backtest_job(request: Any) -> BacktestJob:
    """Returns the job of a request. Raises `InputError`."""
    bars = bars_of(request.bars)
    start, end = _range(request.range)
    regular = regular_of(request, bars)
    return BacktestJob(_strategy(request.strategy), bars, _setup(request.setup), start, end, regular)


def walk_forward_job(request: Any) -> WalkForwardJob:
    """Returns the job of a request. Raises `InputError`."""
    _check_count(len(request.combinations), MOST_COMBINATIONS, "combinations")
    step = request.step if request.HasField("step") else None
    windows = Windows(request.train, request.test, step, request.anchored, request.first)
    bars = bars_of(request.bars)
    runs = (len(bars) // windows.stride + 1) * len(request.combinations)
    if runs > MOST_RUNS:
        raise InvalidParameter(f"windows times combinations must be at most {MOST_RUNS:,}: use longer test parts")
    try:
        by = By(request.by or By.SHARPE)
    except ValueError:
        raise InvalidParameter(f"by must be one of {', '.join(By)}, not {request.by[:40]!r}") from None
    combinations = [numbers_of(each.parameters) for each in request.combinations]
    setup = _setup(request.setup)
    return WalkForwardJob(_spec(request.spec), bars, combinations, setup, windows, by, regular_of(request, bars))


def monte_carlo_job(request: Any) -> MonteCarloJob:
    """Returns the job of a request. Raises `InputError`."""
    returns = floats(request.returns, "returns")
    if len(returns) * request.simulations > MOST_DRAWS:
        raise InvalidParameter(f"trades times simulations must be at most {MOST_DRAWS:,}")
    return MonteCarloJob(returns, request.simulations, request.seed, request.drawdown_limit)


def portfolio_job(request: Any) -> PortfolioJob:
    """Returns the job of a request. Raises `InputError`."""
    _check_count(len(request.parts), MOST_PARTS, "parts")
    parts = []
    for each in request.parts:
        bars = bars_of(each.bars)
        parts.append(PortfolioPart(_strategy(each.strategy), bars, each.weight, regular_of(each, bars)))
    return PortfolioJob(parts, _setup(request.setup), *_range(request.range))


def _check_count(count: int, most: int, name: str) -> None:
    if not 1 <= count <= most:
        raise InvalidParameter(f"{name}: there must be from 1 to {most:,}, not {count:,}")


def _strategy(message: Any) -> Compiled:
    return compiled(_spec(message.spec), numbers_of(message.parameters))


def _spec(text: str) -> Spec:
    if len(text) > MOST_SPEC:
        raise InvalidParameter(f"a spec has at most {MOST_SPEC:,} characters, not {len(text):,}")
    try:
        raw = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter(f"the spec is not JSON: {str(error)[:200]}") from None
    return read_spec(raw)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _setup(message: Any) -> Setup:
    return Setup(message.cash, message.fee, message.slippage)


def _range(message: Any) -> tuple[float, float]:
    start = message.start if message.HasField("start") else -inf
    end = message.end if message.HasField("end") else inf
    if not start < end:
        raise InvalidParameter("the start must be before the end")
    return start, end


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


def _metrics_message(metrics: RunMetrics) -> Any:
    return pb.Metrics(**{each.name: getattr(metrics, each.name) for each in fields(RunMetrics)})


def _window_message(window: WalkForwardWindow) -> Any:
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


def _run(message: Any, bars: Bars, side: PositionSide) -> Backtest:
    trades = message.trades
    columns: list[Any] = [wholes(getattr(trades, name), name) for name in _WHOLE]
    columns += [floats(getattr(trades, name), name) for name in _FLOAT]
    run = Run(Trades(side, *columns), floats(message.equity, "equity"))
    return Backtest(bars, run, _metrics(message.metrics))


def _metrics(message: Any) -> RunMetrics:
    def value(name: str) -> Any:
        return getattr(message, name) if name == "trades" or message.HasField(name) else None

    return RunMetrics(**{each.name: value(each.name) for each in fields(RunMetrics)})


def _window(message: Any, job: WalkForwardJob) -> WalkForwardWindow:
    found = numbers_of(message.parameters)
    return WalkForwardWindow(
        range(message.train_start, message.train_end),
        range(message.test_start, message.test_end),
        {name: found[name] for name in job.spec.defaults()},  # messages have no order
        _metrics(message.in_sample),
        _metrics(message.out_of_sample),
    )


def pack(values: npt.NDArray[Any]) -> bytes:
    """Returns floats or whole numbers as bytes, little-endian, 8 bytes each."""
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def floats(packed: bytes, name: str) -> Values:
    """Returns packed floats. Raises `InvalidParameter`."""
    return _unpacked(packed, "<f8", name).astype(np.float64, copy=False)


def wholes(packed: bytes, name: str) -> Times:
    """Returns packed whole numbers. Raises `InvalidParameter`."""
    return _unpacked(packed, "<i8", name).astype(np.int64, copy=False)


def _unpacked(packed: bytes, kind: str, name: str) -> npt.NDArray[Any]:
    if len(packed) % _SIZE:
        raise InvalidParameter(f"{name} must have {_SIZE} bytes per value, not {len(packed)} bytes")
    return np.frombuffer(packed, dtype=kind)


def bars_message(bars: Bars) -> Any:
    """Returns the message of bars."""
    columns = {name: pack(column) for name, column in zip(COLUMNS, bars.columns(), strict=True)}
    return pb.Bars(symbol=bars.instrument.symbol, timeframe=name_of(bars.timeframe, SHORT), **columns)


def bars_of(message: Any) -> Bars:
    """Returns the bars of a message. Raises `InvalidParameter` if they cannot be bars of a market."""
    bars = _columns(message, "bars")
    if (np.diff(bars.time) <= 0).any():
        raise InvalidParameter("bars must be sorted by time, each time once")
    # No clock: a time in the future is no fault of a calculation.
    for reason, mask in faults(bars, inf):
        raise InvalidParameter(f"bar {int(mask.argmax())}: {reason}")
    return bars


def regular_of(request: Any, bars: Bars) -> Bars | None:
    """Returns the regular-hours part of bars, if a request has one; its prices may be missing."""
    if not request.HasField("regular"):
        return None
    regular = _columns(request.regular, "regular")
    if regular.series != bars.series or not np.array_equal(regular.time, bars.time):
        raise InvalidParameter("regular must have the symbol, the timeframe and the times of bars")
    if any(np.isinf(column).any() for column in regular.columns()):
        raise InvalidParameter("a value of regular is infinite")
    return regular


def _columns(message: Any, name: str) -> Bars:
    if message.timeframe not in SHORT:
        raise InvalidParameter(f"{name}: the timeframe must be one of {', '.join(SHORT)}")
    time = wholes(message.time, f"{name}.time")
    values = [floats(getattr(message, each), f"{name}.{each}") for each in COLUMNS[1:]]
    if len(time) > MOST_BARS:
        raise InvalidParameter(f"{name}: at most {MOST_BARS:,} bars, not {len(time):,}")
    if any(len(each) != len(time) for each in values):
        raise InvalidParameter(f"{name}: all columns must have {len(time)} values, as many as there are times")
    return Bars(parse(message.symbol), SHORT[message.timeframe], time, *values)


def number_messages(numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Returns the messages of parameters."""
    return {
        name: pb.Number(whole=value) if isinstance(value, int) else pb.Number(real=value)
        for name, value in numbers.items()
    }


def numbers_of(messages: Mapping[str, Any]) -> dict[str, Number]:
    """Returns the parameters of messages; one without a number is 0."""
    return {name: each.real if each.HasField("real") else each.whole for name, each in messages.items()}
