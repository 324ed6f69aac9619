"""Sweeps: each row is that of its backtest alone, to the bit, whatever runs it; and work that is stopped ends."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

from openbell.backtest import sweeps
from openbell.backtest.curve import bar_returns
from openbell.backtest.grids import Combination, grid
from openbell.backtest.metrics import bars_per_year
from openbell.backtest.overfitting import deflated_sharpe, skew_and_kurtosis
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.backtest.sweep_runs import LineCache
from openbell.backtest.sweeps import Sweep, sweep
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.strategies.compiled import compiled
from openbell.strategies.errors import SpecRefused
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Spec
from tests.counts import runs
from tests.strategies.specs import crossover, random_spec, walk

BARS = walk(11, 2000)
SPEC = read_spec(crossover())
GRID = grid(SPEC, {"smaPeriod": range(3, 13), "emaPeriod": (8, 12, 20, 30)}).combinations
RANDOM_SWEEPS = runs(25, soak=500)


def image(found: Sweep) -> bytes:
    return pickle.dumps([[(dict(row.parameters), row.metrics) for row in found.rows], found.overfitting])


def alone(
    spec: Spec, bars: Bars, combination: Combination, setup: Setup, start: float = -inf, end: float = inf
) -> bytes:
    """The figures of one backtest."""
    return pickle.dumps(backtest(compiled(spec, combination), bars, setup, start, end).metrics)


@pytest.fixture(params=["numpy", "numba"])
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of the work, which is otherwise chosen by its size."""
    for name in ("_NUMBA_FROM", "_NUMBA_FROM_WITH_STOPS"):
        monkeypatch.setattr(sweeps, name, 0 if request.param == "numba" else 10**18)
    return str(request.param)


def with_stops() -> Spec:
    raw: dict[str, Any] = crossover() | {"side": "SHORT"}
    stops = [
        {"type": "STOP_LOSS", "params": {"percentage": "${loss}"}},
        {"type": "TRAILING_STOP_LOSS", "params": {"percentage": 1.5}},
    ]
    raw["exitConditions"] = [{"type": "OR", "conditions": [*raw["exitConditions"], *stops]}]
    raw["parameters"].append({"name": "loss", "type": "DOUBLE", "min": 0.5, "max": 5.0, "defaultValue": 2.0})
    return read_spec(raw)


# Rows


@pytest.mark.parametrize("spec", [SPEC, with_stops()], ids=["signals", "stops"])
def test_each_row_is_its_backtest_alone(code: str, spec: Spec) -> None:
    chosen = grid(spec, most=30).combinations
    start, end = float(BARS.time[300]), float(BARS.time[1800])
    setup = Setup(fee=0.0005, slippage=0.0001)
    found = sweep(spec, BARS, chosen, setup, start, end)
    assert [row.parameters for row in found.rows] == list(chosen)
    for row in found.rows:
        assert pickle.dumps(row.metrics) == alone(spec, BARS, row.parameters, setup, start, end)
    assert found.bars.same_as(BARS.take(slice(300, 1800)))
    assert {row.metrics.trades for row in found.rows} != {0}


def random_specs(chance: random.Random) -> Iterator[Spec]:
    while True:
        with suppress(SpecRefused):  # conditions that contradict each other
            yield read_spec(random_spec(chance))


def test_random_strategies_have_the_rows_of_their_backtests(code: str) -> None:
    chance = random.Random(f"sweeps {code}")
    for spec in islice(random_specs(chance), RANDOM_SWEEPS):
        bars = walk(chance.randrange(10**6), chance.randint(2, 400))
        setup = Setup(fee=chance.choice([0.0, 0.001]))
        (row,) = sweep(spec, bars, [{}], setup).rows
        assert pickle.dumps(row.metrics) == alone(spec, bars, {}, setup)


@pytest.mark.parametrize("name", sorted(canonical()))
def test_canonical_strategies_have_the_rows_of_their_backtests(name: str) -> None:
    spec, bars = canonical()[name], walk(5, 300)
    for row in sweep(spec, bars, grid(spec, most=4).combinations, Setup()).rows:
        assert pickle.dumps(row.metrics) == alone(spec, bars, row.parameters, Setup())


def test_compiled_code_and_numpy_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for enough in (0, 10**18):
        monkeypatch.setattr(sweeps, "_NUMBA_FROM", enough)
        found.append(image(sweep(SPEC, BARS, GRID, Setup())))
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_ranges_of_almost_no_bars(code: str, count: int) -> None:
    end = float(BARS.time[700 + count])
    found = sweep(SPEC, BARS, GRID[:3], Setup(), float(BARS.time[700]), end)
    assert len(found.bars) == count
    for row in found.rows:
        assert pickle.dumps(row.metrics) == alone(SPEC, BARS, row.parameters, Setup(), float(BARS.time[700]), end)
    assert found.overfitting.probability is None


def test_parameters_left_out_keep_their_defaults_and_bad_ones_are_refused() -> None:
    (row,) = sweep(SPEC, BARS, [{"smaPeriod": 7}], Setup()).rows
    assert row.parameters == {"smaPeriod": 7, "emaPeriod": 9}
    for bad in ([], [{"smaPeriod": 1}], [{"nope": 5}]):
        with pytest.raises(InvalidParameter):
            sweep(SPEC, BARS, bad, Setup())


def test_the_best_rows_are_ranked_by_a_figure() -> None:
    found = sweep(SPEC, BARS, GRID, Setup())
    assert [row.metrics.sharpe for row in found.best("sharpe", 3)] == sorted(
        (row.metrics.sharpe or 0.0 for row in found.rows), reverse=True
    )[:3]
    assert found.best("return")[0].metrics.total_return == max(row.metrics.total_return or 0.0 for row in found.rows)
    assert len(found.best("rating")) == len(GRID)
    with pytest.raises(InvalidParameter, match="did you mean 'sharpe'"):
        found.best("sharp")


# Executors


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as pool:
        yield pool


def test_processes_give_the_same_bytes(processes: Executor) -> None:
    expected = image(sweep(SPEC, BARS, GRID, Setup()))
    for chunk in (7, None):
        assert image(sweep(SPEC, BARS, GRID, Setup(), executor=processes, chunk=chunk)) == expected


@pytest.mark.parametrize("chunk", [1, 7, 40, 1000, None])
def test_chunks_and_threads_give_the_same_bytes(code: str, chunk: int | None) -> None:
    expected = image(sweep(SPEC, BARS, GRID, Setup()))
    assert image(sweep(SPEC, BARS, GRID, Setup(), chunk=chunk)) == expected
    with ThreadPoolExecutor(2) as threads:
        assert image(sweep(SPEC, BARS, GRID, Setup(), executor=threads, chunk=chunk)) == expected


class Recorder(ThreadPoolExecutor):
    """Two threads, and everything that was submitted to them."""

    def __init__(self) -> None:
        super().__init__(2)
        self.futures: list[Future[Any]] = []

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = super().submit(*args, **kwargs)
        self.futures.append(future)
        return future


def test_progress_counts_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    sweep(SPEC, BARS, GRID, Setup(), progress=lambda *each: seen.append(each))
    assert seen == [(done, 40) for done in range(1, 41)]
    seen.clear()
    sweep(SPEC, BARS, GRID, Setup(), progress=lambda *each: seen.append(each), chunk=7)
    assert seen == [(done, 40) for done in (7, 14, 21, 28, 35, 40)]
    seen.clear()
    with Recorder() as executor:
        sweep(SPEC, BARS, GRID, Setup(), executor=executor, progress=lambda *each: seen.append(each), chunk=7)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert (len(seen), seen[-1]) == (6, (40, 40))


class Stopped(Exception):
    pass


def test_work_that_is_stopped_is_cancelled() -> None:
    def stop(_done: int, _all: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        sweep(SPEC, BARS, GRID, Setup(), progress=stop)
    with Recorder() as executor:
        held = threading.Event()
        blockers = [executor.submit(held.wait, 60) for _ in range(2)]
        executor.futures.clear()
        threading.Timer(0.05, held.set).start()
        with pytest.raises(Stopped):
            sweep(SPEC, BARS, GRID * 50, Setup(), executor=executor, progress=stop, chunk=20)
        assert all(each.result() for each in blockers)
        assert sum(each.cancelled() for each in executor.futures) > 80


def test_an_executor_that_ends_before_the_work_raises_and_does_not_hang() -> None:
    with ThreadPoolExecutor(1) as executor:
        held = threading.Event()
        executor.submit(held.wait, 60)
        done: list[BaseException] = []

        def run() -> None:
            try:
                sweep(SPEC, BARS, GRID, Setup(), executor=executor, chunk=2)
            except CancelledError as error:
                done.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while executor._work_queue.qsize() < 20:
            thread.join(0.001)
        executor.shutdown(wait=False, cancel_futures=True)
        held.set()
        thread.join(60)
        assert len(done) == 1


def test_what_a_chunk_raises_is_raised_here(processes: Executor) -> None:
    broken = replace(BARS, close=BARS.close[:-1])
    with pytest.raises(ValueError, match="shape"):
        sweep(SPEC, broken, GRID, Setup(), executor=processes)


# Overfitting


def test_the_statistics_are_those_of_all_tries() -> None:
    found = sweep(SPEC, BARS, GRID, Setup())
    root = sqrt(bars_per_year(BARS))
    sharpes = [(row.metrics.sharpe or 0.0) / root for row in found.rows]
    best = found.best()[0]
    returns = bar_returns(backtest(compiled(SPEC, best.parameters), BARS, Setup()).run.equity)
    assert returns is not None
    expected = deflated_sharpe(max(sharpes), 40, float(np.var(sharpes, ddof=1)), *skew_and_kurtosis(returns), 2000)
    assert found.overfitting.deflated_sharpe == pytest.approx(expected, rel=1e-12)
    assert found.overfitting.sharpe == best.metrics.sharpe
    assert (found.overfitting.tries, found.overfitting.splits) == (40, 12_870)
    assert 0 <= (found.overfitting.probability or 0.0) <= 1


def test_one_try_has_no_probability_of_overfitting() -> None:
    found = sweep(SPEC, BARS, [{}], Setup()).overfitting
    assert (found.tries, found.probability, found.splits, found.sharpe_of_luck) == (1, None, 0, 0.0)
    assert found.deflated_sharpe is not None


def test_tries_that_do_not_trade_have_no_best() -> None:
    raw = crossover()
    raw["entryConditions"].append({"type": "OVER", "indicator": "sma", "params": {"value": 1e9}})
    found = sweep(read_spec(raw), BARS, GRID, Setup()).overfitting
    assert (found.sharpe, found.deflated_sharpe, found.probability) == (None, None, 0.5)


def test_a_market_with_an_edge_is_told_from_one_without() -> None:
    chance = np.random.default_rng(4)
    # Momentum that crossings of short averages follow: each change keeps a part of the one before.
    moves = chance.normal(0, 0.004, 4000)
    for at in range(1, 4000):
        moves[at] += 0.6 * moves[at - 1]
    close = 100 * np.exp(np.cumsum(moves))
    opened = np.concatenate(([100.0], close[:-1]))
    trending = replace(
        walk(1, 4000), open=opened, close=close, high=np.maximum(opened, close), low=np.minimum(opened, close)
    )
    fast = grid(SPEC, {"smaPeriod": range(2, 7), "emaPeriod": range(15, 31)}).combinations
    skill = sweep(SPEC, trending, fast, Setup(fee=0.0)).overfitting
    assert (skill.deflated_sharpe or 0.0) > 0.95
    assert skill.edge is not None
    assert skill.edge.proven
    assert skill.edge.tries == len(fast)
    luck = [sweep(SPEC, walk(seed, 2000), fast, Setup(fee=0.0)).overfitting for seed in range(12)]
    assert np.mean([each.deflated_sharpe for each in luck if each.deflated_sharpe is not None]) < 0.65
    assert not any(each.edge and each.edge.proven for each in luck)


# Shared lines


def test_shared_lines_are_bounded_and_the_least_used_go_first() -> None:
    cache = LineCache(3 * 800)
    for name in "abc":
        cache[name] = (np.zeros(100),)
    assert cache["a"][0].sum() == 0
    cache["d"] = (np.zeros(100),)
    assert list(cache) == ["c", "a", "d"]
    assert cache.bytes == 2400
    cache["e"] = (np.zeros(100), np.zeros(250))
    assert (list(cache), cache.bytes) == (["e"], 2800), "the newest is kept, however large"
    cache["e"] = (np.zeros(10),)
    assert (len(cache), cache.bytes, cache.get("a")) == (1, 80, None)


def test_a_small_cache_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = image(sweep(SPEC, BARS, GRID, Setup()))
    monkeypatch.setattr("openbell.backtest.sweep_runs._CACHE", 1)
    assert image(sweep(SPEC, BARS, GRID, Setup())) == expected
