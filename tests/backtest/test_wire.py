"""The messages of the gRPC backtester: jobs and results survive them to the bit, and hostile requests are refused."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.backtest.jobs import BacktestJob
from openbell.backtest.outcome import outcome_of
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest
from openbell.backtest.wire import backtester_pb2, messages
from openbell.backtest.wire.limits import MOST_BARS
from openbell.backtest.wire.methods import METHODS, Method, method_of
from openbell.market.errors import InputError, OpenbellError
from openbell.strategies.compiled import compiled
from tests.backtest.sample_jobs import BARS, SPEC, image, jobs
from tests.counts import runs

FUZZED = runs(300, soak=10_000)
SOURCE = Path(backtester_pb2.__file__).parents[3]
JOBS = jobs()


def test_the_generated_code_is_that_of_the_proto_file(tmp_path: Path) -> None:
    proto = "openbell/backtest/wire/backtester.proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(SOURCE), f"--python_out={tmp_path}", proto]
    subprocess.run(command, check=True, timeout=60)
    made = tmp_path / proto.replace(".proto", "_pb2.py")
    assert Path(backtester_pb2.__file__).read_text() == made.read_text(), "run: make proto"


def test_every_method_of_the_proto_file_is_implemented() -> None:
    service = backtester_pb2.DESCRIPTOR.services_by_name["Backtester"]
    assert {method.name for method in service.methods} == set(METHODS)
    for method in service.methods:
        assert method.server_streaming
        found = METHODS[method.name]
        assert found.path == f"/{service.full_name}/{method.name}"
        assert (method.input_type, method.output_type) == (found.request.DESCRIPTOR, found.response.DESCRIPTOR)
        assert {each.name for each in method.output_type.oneofs_by_name["update"].fields} == {"progress", "result"}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_through_messages_has_the_same_result_to_the_bit(name: str) -> None:
    job = JOBS[name]
    method = method_of(job)
    sent = method.to_request(job).SerializeToString()
    found = method.to_job(method.request.FromString(sent)).run()
    returned = method.response(result=method.to_message(found)).SerializeToString()
    result = method.to_result(job, method.response.FromString(returned).result)
    assert image(result) == image(job.run())
    if isinstance(result, Backtest):
        assert outcome_of(result) == outcome_of(job.run())


# Hostile requests


def refused(request: Any, method: Method) -> str:
    with pytest.raises(InputError) as caught:
        method.to_job(request)
    return caught.value.message


BACKTEST = METHODS["RunBacktest"]


def request() -> Any:
    return BACKTEST.to_request(BacktestJob(compiled(SPEC), BARS, Setup()))


def test_an_empty_request_is_refused_by_every_method() -> None:
    for method in METHODS.values():
        with pytest.raises(OpenbellError):
            method.to_job(method.request()).run()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("symbol", "no symbol", "Invalid symbol"),
        ("timeframe", "7m", "timeframe"),
        ("time", b"1234567", "8 bytes per value"),
        ("close", b"", "as many as there are times"),
        ("time", messages.pack(BARS.time[::-1]), "sorted by time"),
        ("time", messages.pack(np.full(len(BARS), BARS.time[0])), "sorted by time"),
        ("time", messages.pack(BARS.time + 1), "time not on the minute"),
        ("volume", messages.pack(np.full(len(BARS), -1.0)), "volume negative"),
        ("close", messages.pack(np.full(len(BARS), np.nan)), "not finite"),
        ("close", messages.pack(np.full(len(BARS), np.inf)), "not finite"),
        ("high", messages.pack(np.full(len(BARS), 1e300)), "price above"),
        ("low", messages.pack(np.full(len(BARS), 0.0)), "price not positive"),
    ],
)
def test_bars_that_no_market_has_are_refused(field: str, value: Any, reason: str) -> None:
    wrong = request()
    setattr(wrong.bars, field, value)
    assert reason in refused(wrong, BACKTEST)


def test_more_bars_than_the_limit_are_refused() -> None:
    wrong, many = request(), np.zeros(MOST_BARS + 1)
    wrong.bars.time = messages.pack(many.astype(np.int64))
    for name in ("open", "high", "low", "close", "volume"):
        setattr(wrong.bars, name, messages.pack(many))
    assert "at most 1,000,000 bars" in refused(wrong, BACKTEST)


def test_a_regular_part_of_other_bars_is_refused() -> None:
    wrong = request()
    wrong.regular.CopyFrom(messages.bars_message(BARS.take(slice(0, 9))))
    assert "the times of bars" in refused(wrong, BACKTEST)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 99_000, "not JSON"),
        ("[]", "must be an object"),
        ('{"name": NaN}', "not JSON"),
        ('{"name": ' + "9" * 5000 + "}", "not JSON"),
        ('"' + "x" * 200_000 + '"', "100,000 characters"),
        ("{\"name\": \"__import__('os').system('true')\"}", "refused"),
    ],
    ids=range(8),
)
def test_specs_that_are_none_are_refused(spec: str, reason: str) -> None:
    wrong = request()
    wrong.strategy.spec = spec
    assert reason in refused(wrong, BACKTEST)


def test_numbers_out_of_their_ranges_are_refused() -> None:
    for part, name, value in (
        ("setup", "cash", 0.0),
        ("setup", "cash", np.nan),
        ("setup", "fee", 1.5),
        ("setup", "slippage", -1.0),
        ("range", "start", np.nan),
        ("range", "start", 1e300),
    ):
        wrong = request()
        wrong.range.end = 1e12
        setattr(getattr(wrong, part), name, value)
        refused(wrong, BACKTEST)
    wrong = request()
    wrong.strategy.parameters["smaPeriod"].real = 3.5
    assert "whole number" in refused(wrong, BACKTEST)
    wrong = request()
    wrong.strategy.parameters["other"].whole = 3
    assert "no parameter" in refused(wrong, BACKTEST)


def test_work_without_end_is_refused() -> None:
    walk, draw = METHODS["RunWalkForward"], METHODS["RunMonteCarlo"]
    wrong = walk.to_request(JOBS["walk-forward"])
    wrong.train = wrong.test = 2
    for _ in range(2000):
        wrong.combinations.add()
    assert "windows times combinations" in refused(wrong, walk)
    for _ in range(10_000):
        wrong.combinations.add()
    assert "from 1 to 10,000" in refused(wrong, walk)
    wrong = walk.to_request(JOBS["walk-forward"])
    wrong.by = "luck"
    assert "by must be one of" in refused(wrong, walk)
    wrong = draw.to_request(JOBS["monte carlo"])
    wrong.simulations = 10**9
    assert "trades times simulations" in refused(wrong, draw)
    wrong.simulations = -5
    with pytest.raises(InputError):
        draw.to_job(wrong).run()


def test_fuzzed_requests_run_or_are_refused() -> None:
    """Random bytes of real requests are changed: each is no message, is refused, or runs."""
    from google.protobuf.message import DecodeError

    chance = random.Random(0)
    small = {name: job for name, job in JOBS.items() if name in {"backtest without trades", "monte carlo"}}
    outcomes = {"no message": 0, "refused": 0, "ran": 0}
    for _ in range(FUZZED):
        job = small[chance.choice([*small])]
        method = method_of(job)
        sent = bytearray(method.to_request(job).SerializeToString())
        for _ in range(chance.randint(1, 4)):
            sent[chance.randrange(len(sent))] = chance.randrange(256)
        try:
            message = method.request.FromString(bytes(sent))
        except DecodeError:
            outcomes["no message"] += 1
            continue
        if method.name == "RunMonteCarlo":
            message.simulations = min(message.simulations, 1000)
        try:
            found = method.to_job(message).run()
        except OpenbellError:
            outcomes["refused"] += 1
        else:
            method.to_message(found).SerializeToString()
            outcomes["ran"] += 1
    assert all(outcomes.values()), outcomes
