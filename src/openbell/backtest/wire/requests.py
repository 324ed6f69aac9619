"""Jobs as requests of the gRPC backtester, and back. A job that is made of a request is fully checked."""

from __future__ import annotations

import json
from math import inf, isfinite
from typing import Any, NoReturn

from openbell.backtest.jobs import BacktestJob, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.portfolio import MOST_PARTS, Part
from openbell.backtest.rules import Setup
from openbell.backtest.walk_forward import By, Windows
from openbell.backtest.wire import backtester_pb2 as pb
from openbell.backtest.wire.arrays import (
    bars_message,
    bars_of,
    floats,
    number_messages,
    numbers_of,
    pack,
    regular_of,
)
from openbell.backtest.wire.limits import MOST_COMBINATIONS, MOST_DRAWS, MOST_RUNS, MOST_SPEC
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Spec
from openbell.strategies.writing import write_spec

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
        parts.append(Part(_strategy(each.strategy), bars, each.weight, regular_of(each, bars)))
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
